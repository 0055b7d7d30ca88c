"""Seconds of a trial that the monitor did not see: a late look leaves nothing out, missing rows do."""

from pathlib import Path

import pytest
from judge_samples import LAG, recording

from streamgauge.judge import decide, measure
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import Monitor
from streamgauge.run.trial.assemble import unwatched
from streamgauge.run.trial.drain import unmonitored
from streamgauge.store.journal import CORES, Journal


def looks(folder: Path, *spans: tuple[float, float]) -> None:
    """Rows of two cores, each for the time from one moment to another, in seconds."""
    rows = [(begin, end, core) for begin, end in spans for core in (0, 1)]
    columns = {name: [0] * len(rows) for name in CORES.names}
    columns["time"] = [round(end * SECOND) for _, end, _ in rows]
    columns["span_us"] = [round((end - begin) * 1_000_000) for begin, end, _ in rows]
    columns["core"] = [core for *_, core in rows]
    with Journal(folder / "monitor-cores", CORES) as journal:
        journal.append(columns)


@pytest.mark.parametrize(
    ("spans", "missing"),
    [
        ([(0, 1), (1, 2), (2, 3), (3, 4.2)], 0.0),
        ([(0, 1), (1, 3.7), (3.7, 4)], 0.0),
        ([(0.3, 1), (1, 2), (2, 3), (3, 4)], 0.3),
        ([(0, 1), (1, 2)], 2.0),
        ([(0, 1), (3, 4)], 2.0),
        ([(0, 1), (2.5, 3)], 2.5),
        ([(-0.1, 0.9), (0.9, 4.5), (4.5, 5.5)], 0.0),
        ([(5, 6)], 4.0),
    ],
    ids=["whole", "a late look", "a late start", "no end", "a gap", "a gap and no end", "longer", "only later"],
)
def test_what_no_row_covers_is_missing(spans: list[tuple[float, float]], missing: float, tmp_path: Path) -> None:
    looks(tmp_path, *spans)
    assert unwatched(tmp_path, 4) == pytest.approx(missing)


def test_without_a_journal_or_rows_all_is_missing(tmp_path: Path) -> None:
    assert unwatched(tmp_path, 4) == 4.0
    Journal(tmp_path / "monitor-cores", CORES).close()
    assert unwatched(tmp_path, 4) == 4.0


def test_of_no_seconds_none_is_missing(tmp_path: Path) -> None:
    assert unwatched(tmp_path, 0) == 0.0


def monitor(folder: Path) -> Monitor:
    """A monitor that ended without an error; what it recorded is in another folder."""
    (folder / "unused").mkdir()
    ended = Monitor((), folder / "unused")
    ended.stop()
    assert ended.error is None
    return ended


def test_a_trial_with_missing_monitoring_rows_is_invalid_even_if_the_monitor_reported_no_error(tmp_path: Path) -> None:
    looks(tmp_path, (0, 20), (22.5, 60))
    said = unmonitored(monitor(tmp_path), tmp_path, 60)
    sentence = (
        "the monitor recorded nothing for 2.5 s of 60 s (limit 1 s), "
        "so the CPU time of other processes is unknown; repeat the trial"
    )
    assert said == (sentence,)
    happened = recording(disturbances=said)
    verdict = decide(happened, measure(happened), (LAG,))
    assert verdict.kind is VerdictKind.INVALID
    assert sentence in verdict.reasons
    quiet = recording()
    assert decide(quiet, measure(quiet), (LAG,)).kind is VerdictKind.SUSTAINED, "the gap alone decides"


def test_without_any_row_the_whole_trial_is_missing(tmp_path: Path) -> None:
    (said,) = unmonitored(monitor(tmp_path), tmp_path, 60)
    assert said.startswith("the monitor recorded nothing for 60.0 s of 60 s (limit 1 s)")


def test_a_first_look_that_is_late_and_a_machine_that_cannot_be_watched_are_no_fault(tmp_path: Path) -> None:
    looks(tmp_path, (0.9, 60))
    assert unmonitored(monitor(tmp_path), tmp_path, 60) == ()
    assert unmonitored(None, tmp_path / "nothing", 60) == ()
