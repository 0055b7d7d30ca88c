"""Outputs that were due and never came: their latency is at least what they had waited when the trial ended.

Without them a system that hangs would have the latencies of its good seconds alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from streamgauge.run.assemble import MISSING
from streamgauge.run.tell import KIND_NUMBER, LATENCIES, STAMPS, Cells, cells, latency_rows
from streamgauge.store.journal import Journal
from streamgauge.workloads.base import Workload

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Missing:
    """Rows of the answer that did not come until ``end``. Times in microseconds since 1970."""

    answer: Mapping[str, Ints]
    absent: Ints
    end: int
    origin: int

    def keep(self, folder: Path, workload: Workload, last: int) -> None:
        """Write them down. Windows that begin after ``last`` could not be out."""
        stamp, start = STAMPS["event-time"], workload.identity[0]
        if stamp not in self.answer:
            return
        due = self.absent[self.answer[start][self.absent] <= last]
        found = [self._cells("missing", self.answer[stamp][due], self.answer[stamp][due])] if len(due) else []
        if len(due) and not workload.one_to_one:
            found += self._windows(start, due)
        found = [each for each in found if len(each[2])]
        if found:
            with Journal(folder / MISSING, LATENCIES) as journal:
                journal.append(latency_rows(found))

    def _windows(self, start: str, due: Ints) -> list[Cells]:
        """The windows of which not one row came."""
        came = np.ones(len(self.answer[start]), bool)
        came[self.absent] = False
        alone = due[~np.isin(self.answer[start][due], self.answer[start][came])]
        if not len(alone):
            return []
        windows, place = np.unique(self.answer[start][alone], return_inverse=True)
        stamps = self.answer[STAMPS["event-time"]][alone]
        last, first = np.full(len(windows), stamps.min()), np.full(len(windows), stamps.max())
        np.maximum.at(last, place, stamps)
        np.minimum.at(first, place, stamps)
        return [self._cells("missing-windows", last, first)]

    def _cells(self, kind: str, due: Ints, since: Ints) -> Cells:
        """Counts by the second of ``due``; an output has waited ``since`` its latest event."""
        return cells(KIND_NUMBER[kind], due, self.end - since, self.origin)  # type: ignore[index]
