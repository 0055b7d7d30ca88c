"""Outputs by attempt, until one of each is committed. Pure: it gets the time of arrival.

A task that is retried sends its outputs again under another attempt; only what the commit of its batch names
counts, and only once. What arrives for a batch that is already committed is discarded, so that
an engine that runs its last batch again after a restart continues, and the repetition is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa


class Attempt(NamedTuple):
    """One try of one task at one batch of one query."""

    query: str
    batch: int
    partition: int
    attempt: int


class StampedRows(NamedTuple):
    """Rows that came together: they share one moment of arrival, in µs since 1970 on the load driver's clock."""

    rows: pa.RecordBatch
    emitted_us: int


class AttemptError(ValueError):
    """Something that cannot be put or committed; the message gives the reason."""


@dataclass(slots=True)
class _PendingAttempt:
    arrivals: list[StampedRows] = field(default_factory=list)
    finished: bool = False


@dataclass(slots=True)
class AttemptCounts:
    """Rows and commits so far."""

    arrived: int = 0
    committed: int = 0
    repeated: int = 0
    """Rows of batches that were committed before."""
    discarded: int = 0
    """Rows of attempts that lost, broke off or were aborted."""
    commits: int = 0
    repeated_commits: int = 0
    refused: int = 0


class Attempts:
    """Distinguishes the attempts. Not safe for threads by itself: its server holds a lock."""

    def __init__(self) -> None:
        self.counts = AttemptCounts()
        self._pending: dict[Attempt, _PendingAttempt] = {}
        self._committed: dict[tuple[str, int], frozenset[tuple[int, int]]] = {}

    def open(self, attempt: Attempt) -> bool:
        """Outputs of an attempt begin to come. False: its batch is committed, they will be discarded."""
        if attempt[:2] in self._committed:
            return False
        before = self._pending.get(attempt)
        if before is not None and before.finished:
            self.counts.refused += 1
            raise AttemptError(f"{attempt} has sent its outputs before: a retry needs a separate attempt number")
        if before is not None:  # its connection broke, and it begins again
            self._discard(attempt)
        self._pending[attempt] = _PendingAttempt()
        return True

    def add(self, attempt: Attempt, rows: pa.RecordBatch, emitted_us: int) -> None:
        """Rows have arrived."""
        self.counts.arrived += rows.num_rows
        pending = self._pending.get(attempt)
        if pending is None:
            self.counts.repeated += rows.num_rows
        else:
            pending.arrivals.append(StampedRows(rows, emitted_us))

    def finish(self, attempt: Attempt) -> None:
        """All rows of the attempt are there."""
        if attempt in self._pending:
            self._pending[attempt].finished = True

    def _discard(self, attempt: Attempt) -> None:
        pending = self._pending.pop(attempt, None)
        if pending is not None:
            self.counts.discarded += sum(a.rows.num_rows for a in pending.arrivals)

    def discard(self, attempt: Attempt) -> None:
        """The attempt broke off: its rows never count."""
        self._discard(attempt)

    def commit(self, query: str, batch: int, parts: Sequence[tuple[int, int]]) -> list[StampedRows]:
        """Exactly these (partition, attempt) of the batch count, from now on and once. Their rows."""
        named = frozenset(parts)
        if len({partition for partition, _ in named}) < len(parts):
            self.counts.refused += 1
            raise AttemptError(f"batch {batch} of {query}: a commit names one attempt of each partition, not {parts}")
        before = self._committed.get((query, batch))
        if before is not None:
            self.counts.repeated_commits += 1
            return []
        keys = [Attempt(query, batch, partition, attempt) for partition, attempt in sorted(named)]
        missing = [key for key in keys if key not in self._pending or not self._pending[key].finished]
        if missing:
            self.counts.refused += 1
            raise AttemptError(f"cannot commit batch {batch} of {query}: not all rows of {missing[0]} have arrived")
        arrivals = [arrival for key in keys for arrival in self._pending.pop(key).arrivals]
        for loser in [key for key in self._pending if key[:2] == (query, batch)]:
            self._discard(loser)
        self._committed[query, batch] = named
        self.counts.commits += 1
        self.counts.committed += sum(a.rows.num_rows for a in arrivals)
        return arrivals

    def abort(self, query: str, batch: int) -> None:
        """The batch will not be committed as it is: its attempts never count."""
        for key in [key for key in self._pending if key[:2] == (query, batch)]:
            self._discard(key)

    @property
    def waiting(self) -> int:
        """Rows that have arrived and are not committed."""
        return sum(a.rows.num_rows for pending in self._pending.values() for a in pending.arrivals)
