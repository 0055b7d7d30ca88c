"""``streamgauge run`` on a real engine: its document, its recording and the account of its outputs are whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_session import CommandResult, start, streamgauge, write
from real_run import EXPERIMENT, calibrated
from real_trial import PLACEMENT, disturbance

from streamgauge.model.seconds import COLUMNS
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available
from streamgauge.run.trial.assemble import assemble
from streamgauge.store import Run, Store
from streamgauge.store.journal import read_parts, read_rows

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores")


@dataclass(frozen=True)
class Made:
    """A run that is over."""

    said: CommandResult
    runs: Path
    drivers: int
    partitions: int

    @property
    def run(self) -> Run:
        return Store(self.runs).find("@last")

    @property
    def folder(self) -> Path:
        """Where the last trial lies."""
        return self.run.trial(self.run.trial_count()).path

    @property
    def last(self) -> dict[str, Any]:
        """The last trial in the document."""
        found = self.said.document["trials"][-1]
        assert isinstance(found, dict)
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three partitions of two drivers; one of one is what all the other tests run."""
    partitions, drivers = 3, 2
    folder = tmp_path_factory.mktemp("made")
    text = EXPERIMENT.replace("warmup: 1s", f"warmup: 1s, partitions: {partitions}, drivers: {drivers}")
    process = start("run", write(folder, text), "--out", calibrated(folder / "runs"), "--json")
    out, err = process.communicate(timeout=120)
    return Made(CommandResult(process.returncode, out, err), folder / "runs", drivers, partitions)


def test_it_ends_well_or_the_machine_shows_why_it_cannot(made: Made) -> None:
    document = made.said.document
    assert document["exit_code"] == made.said.code
    if made.said.code == 3:  # every repetition was disturbed
        causes = [disturbance(stored.path, stored.seconds) for stored in made.run.trials()]
        assert any(causes), made.said.out
    else:
        # 3 s are short for a trend
        assert (made.said.code, made.last["verdict"]) in ((0, "SUSTAINED"), (6, "UNDECIDED")), made.said.err
    assert document["findings"][0]["status"] in ("measured", "invalid")


def test_its_outputs_were_all_checked_and_are_exact(made: Made) -> None:
    account = made.last["measured"]["account"]
    assert account["checked"] is True
    assert (account["lost"], account["duplicate"], account["wrong"]) == (0, 0, 0)
    assert account["observed"] == account["expected"] - account["not_reached"]
    assert account["observed"] >= 4 * 5 * 100, "4 s of windows of 200 ms, 100 gem packs each"
    table = read_parts(made.folder / "outputs" / "windowed-aggregation")
    assert table is not None
    assert table.num_rows == account["observed"]


def test_its_recording_equals_the_raw_logs_in_its_folder(made: Made) -> None:
    recording = made.run.recording(made.run.trial_count())
    assert recording.outcome.ending == "completed"
    assert recording.seconds.stop == 4
    again = assemble(made.folder, made.drivers, PLACEMENT, 4)
    for name in COLUMNS:
        assert recording.seconds[name].tolist() == again[name].tolist(), name
    kept, found = (s.latency("event-time") for s in (recording.seconds, again))
    assert kept.count.sum() == found.count.sum() > 0
    assert "the driver on core" in recording.facts.placement


def test_its_journals_agree_with_each_other_and_with_the_plan(made: Made) -> None:
    ticks = [read_rows(made.folder / f"ticks-{n}") for n in range(made.drivers)]
    acks = [read_rows(made.folder / f"acks-{n}") for n in range(made.drivers)]
    published = [int(t["count"].to_numpy().sum()) for t in ticks]
    assert [a["acknowledged"].to_pylist()[-1] for a in acks] == published, "the tail was worked off"
    intended = [t["intended"].to_numpy() for t in ticks]
    assert all(np.array_equal(intended[0], other) for other in intended), "drivers are in step"
    assert sum(published) == pytest.approx(100_000 * intended[0][-1] / SECOND, abs=1)
    shares = [len(range(n, made.partitions, made.drivers)) / made.partitions for n in range(made.drivers)]
    assert [p / sum(published) for p in published] == pytest.approx(shares, abs=0.001)


def test_it_can_be_shown_and_listed_afterwards(made: Made) -> None:
    shown = streamgauge("show", "--out", made.runs, "--json")
    assert shown.document["trials"] == made.said.document["trials"]
    assert streamgauge("show", "--out", made.runs).code == 0
    (listed,) = streamgauge("list", "--out", made.runs, "--json").document["runs"]
    assert listed["state"] == "finished"
