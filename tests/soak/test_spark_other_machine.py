"""A run of Spark that was copied to another machine: its folder alone gives the same report there."""

import os
import shutil
from pathlib import Path

import pytest
from cli_session import start, streamgauge, write
from other_machine import OtherMachine
from real_run import calibrated
from real_trial import PLACEMENT

from streamgauge.run.monitor.monitor import available
from streamgauge.store import Store

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

EXPERIMENT = """\
name: sent-on
workload: {name: windowed-aggregation, window: 1s, slide: 1s}
engine: {name: spark, trigger: 500ms, warm_limit: 10s}
find: sustainable-throughput
load: {values: [50k/s, 700k/s]}
objective: [lag-trend <= 1%, lost == 0]
search: {strategy: full}
trial: {duration: 6s, warmup: 1s, limit: 6s}
"""


def test_a_run_is_reported_the_same_on_another_machine(tmp_path: Path) -> None:
    made = tmp_path / "runs"
    ran = start("run", write(tmp_path, EXPERIMENT), "--out", calibrated(made), "--json")
    _, err = ran.communicate(timeout=600)
    run = Store(made).find("@last")
    assert run.conclusion() is not None, err
    page, verdicts = run.report.read_bytes(), [(t.trial.number, t.verdict.kind.value) for t in run.trials()]
    assert len(verdicts) >= 2, err
    shown = streamgauge("show", "--out", made, "--json").document

    sent = tmp_path / "sent on"
    sent.mkdir()
    shutil.move(run.path, sent)  # nothing is left where it was made
    bare = OtherMachine(tmp_path / "home")
    assert bare.streamgauge("show", "--out", sent, "--json").document == shown
    assert bare.streamgauge("report", "--out", sent, "--html", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").read_bytes() == page

    bare.tools = os.defpath
    again = bare.streamgauge("show", "--recompute", "--out", sent, "--json")
    trials = again.document["recomputed"]
    assert [(t["number"], t["verdict"]) for t in trials] == verdicts
    assert [(t["from"], t["differences"]) for t in trials] == [("journals", [])] * len(trials)
    assert list(bare.home.iterdir()) == []
