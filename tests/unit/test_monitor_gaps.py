"""Seconds of a trial that the monitor did not see: a late look leaves nothing out, missing rows do."""

from pathlib import Path

import pytest

from streamgauge.model.units import SECOND
from streamgauge.run.assemble import unwatched
from streamgauge.run.monitor import CORES
from streamgauge.store.journal import Journal


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
