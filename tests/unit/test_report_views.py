"""What a report says of a run, on the terminal and in its document. Made from values alone."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from streamgauge.judge import measure
from streamgauge.model.finding import End, Finding
from streamgauge.model.measurement import LatencySummary, Verdict, VerdictKind
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Kind, Seconds
from streamgauge.model.trial import Ask, Purpose, Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.report.document import run_document
from streamgauge.report.encode import encode
from streamgauge.report.terminal import render_run
from streamgauge.report.view import Judged, Story, view_run


def judged(number: int, load: float, kind: VerdictKind, purpose: Purpose = "probe", reason: str = "") -> Judged:
    trial = Trial(
        number=number,
        ask=Ask("load", load, purpose),
        workload="windowed-aggregation",
        params={},
        engine="simulated",
        options={},
        instances=1,
        profile=constant(load),
        duration=30 * SECOND,
        limit=60 * SECOND,
        warmup=5 * SECOND,
        warmup_limit=5 * SECOND,
        queue_bound=0,
        seed=number,
    )
    each = np.full(35, round(load), np.int64)
    seconds = Seconds(0, dict.fromkeys(("offered", "published", "served", "acknowledged"), each))
    latencies: dict[Kind, LatencySummary] = {"event-time": LatencySummary(10, 10, 5e6, 1e6, math.inf, {"p50": 4e6})}
    measurement = replace(measure(Recording(trial, seconds)), latencies=latencies)
    return Judged(trial, measurement, Verdict(kind, (reason or "the queue grows by 0/s",)), 35)


FINDING = Finding(
    line="",
    engine="simulated",
    dimension="load",
    unit="rate",
    status="bracketed",
    holds=End(100_000.0, (2,)),
    fails=End(104_000.0, (3,)),
    sentence="holds 100k/s and fails at 104k/s (4.0% apart)",
    notes=("102k/s could not be decided (trial 4)",),
    trials=3,
)
STORY = Story(
    run="20260101-120000-x-ab",
    experiment="x",
    findings=(FINDING,),
    trials=(
        judged(1, 1e6, VerdictKind.OVERLOADED, "estimate", "the queue grows by 900k/s [of 1M/s]"),
        judged(2, 1e5, VerdictKind.SUSTAINED, "confirm"),
        judged(3, 1.04e5, VerdictKind.OVERLOADED, "confirm", "the queue grows by 4k/s"),
    ),
)

SHOWN = """\
Holds 100k/s and fails at 104k/s (4.0% apart).
  holds at 100k/s (trial 2)
  fails at 104k/s (trial 3)
  3 trials, 1m 45s of trial time
  note: 102k/s could not be decided (trial 4)

trial for        load time verdict    because
    1 estimate   1M/s  35s OVERLOADED the queue grows by 900k/s [of 1M/s]
    2 confirm  100k/s  35s SUSTAINED  [holds] the queue grows by 0/s
    3 confirm  104k/s  35s OVERLOADED [fails] the queue grows by 4k/s

run 20260101-120000-x-ab
"""


def shown(story: Story, width: int = 80, colours: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=colours, highlight=False).print(render_run(view_run(story)))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_the_answer_comes_first_then_the_bracket_then_every_trial() -> None:
    assert shown(STORY) == SHOWN


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    long = replace(STORY, trials=(judged(1, 1e6, VerdictKind.OVERLOADED, reason="word " * 60 + "end"),))
    lines = shown(long, width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.endswith("end") for line in lines)


def test_several_engines_are_told_apart() -> None:
    both = replace(STORY, findings=(FINDING, replace(FINDING, engine="other")))
    lines = shown(both).splitlines()
    assert "simulated" in lines
    assert "other" in lines


def test_an_early_end_is_said() -> None:
    assert "Ended early: the budget of 1m is spent." in shown(replace(STORY, ended="the budget of 1m is spent"))


def test_the_document_is_strict_json_and_names_what_proves_each_end() -> None:
    document = json.loads(encode(run_document(STORY)), parse_constant=pytest.fail)
    assert (document["format"], document["exit_code"], document["run"]) == (1, 0, STORY.run)
    finding = document["findings"][0]
    assert finding["holds"] == {"value": 100_000.0, "unit": "events/s", "trials": [2]}
    assert finding["fails"] == {"value": 104_000.0, "unit": "events/s", "trials": [3]}
    assert finding["precision"] == pytest.approx(0.04)
    assert (finding["trials"], finding["seconds"]) == (3, 105)
    assert [t["verdict"] for t in document["trials"]] == ["OVERLOADED", "SUSTAINED", "OVERLOADED"]
    assert document["trials"][0]["measured"]["latencies"]["event-time"]["most"] is None


def test_a_plain_measurement_has_the_trials_of_its_value_alone() -> None:
    points = tuple(
        replace(FINDING, line=f"load={value:g}", status="measured", holds=None, fails=None) for value in (1e5, 1e6)
    )
    rows = [[row.number for row in f.rows] for f in view_run(replace(STORY, findings=points)).findings]
    assert rows == [[2], [1]]
