"""Outputs that were due and never came: their latency is at least what they had waited when the trial ended.

Without them a system that hangs would have only the latencies of its good seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.judge.comparable_rows import CannotCompareError, timestamps
from streamgauge.model.streams import MAX_DUE, WINDOW_END
from streamgauge.run.collector.counts import KIND_NUMBER, Cells, bucket_counts, latency_rows
from streamgauge.run.trial.assemble import MISSING
from streamgauge.store.journal import LATENCIES, Journal

Ints = npt.NDArray[np.int64]
_MICRO = 1_000


@dataclass(frozen=True, eq=False, slots=True)
class Missing:
    """Rows of the expected outputs that did not come until ``end``. Times in microseconds since 1970."""

    window: Ints | None
    """Identifies the window of each expected row; None if rows have no window."""
    due: Ints
    """When each row was due: its latency counts in this second."""
    since: Ints
    """From when on its latency is counted."""
    absent: Ints
    """The rows that did not come although they could have been out."""
    came: npt.NDArray[np.bool_]
    """Of each row whether it came."""
    end: int
    origin: int

    def keep(self, folder: Path) -> None:
        """Write them."""
        found = [self._cells("missing", self.due[self.absent], self.since[self.absent]), *self._windows()]
        found = [each for each in found if len(each[2])]
        if found:
            with Journal(folder / MISSING, LATENCIES) as journal:
                journal.append(latency_rows(found))

    def _windows(self) -> list[Cells]:
        """The windows of which not one row came."""
        if self.window is None:
            return []
        alone = self.absent[~np.isin(self.window[self.absent], self.window[self.came])]
        if not len(alone):
            return []
        windows, place = np.unique(self.window[alone], return_inverse=True)
        due, since = self.due[alone], self.since[alone]
        last, first = np.full(len(windows), due.min()), np.full(len(windows), since.max())
        np.maximum.at(last, place, due)
        np.minimum.at(first, place, since)
        return [self._cells("missing-windows", last, first)]

    def _cells(self, kind: str, due: Ints, since: Ints) -> Cells:
        """Counts by the second of ``due``; an output has waited ``since`` its latest event."""
        return bucket_counts(KIND_NUMBER[kind], due, self.end - since, self.origin)  # type: ignore[index]


def of_users(rows: pa.Table, absent: Sequence[int], closed: int, end: int, origin: int) -> Missing:
    """Those of the user's own reference, as far as its rows have ``max_due`` or ``window_end``.

    Without ``max_due``, the latest event of a row was due before its window ended: the latency is longer than the time
    since then. Windows that end after ``closed`` could not be out.
    """
    stamp, ends = (_micros(rows, name) for name in (MAX_DUE, WINDOW_END))
    nowhere = np.full(len(rows), -1, np.int64)
    known = nowhere if stamp is None else stamp
    until = nowhere if ends is None else ends
    due, since = np.where(known >= 0, known, until - 1), np.where(known >= 0, known, until)
    came = np.ones(len(rows), bool)
    came[np.asarray(absent, np.int64)] = False
    out = ~came & (since >= 0)
    if ends is not None:
        out &= (ends >= 0) & (ends <= closed)
    return Missing(ends, due, since, np.flatnonzero(out), came, end, origin)


def _micros(rows: pa.Table, name: str) -> Ints | None:
    """A column of moments, −1 where it has no value; None if there is no such column."""
    if name not in rows.column_names:
        return None
    try:
        found = timestamps(rows, name)
    except CannotCompareError:
        return None
    return np.array([-1 if moment is None else moment // _MICRO for moment in found], np.int64)
