"""After a trial: what came out, against the reference answer."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.engines.contract import Promise, Watermark
from streamgauge.judge.outputs import closed_until, compare
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial
from streamgauge.run.collector.counts import STAMPS, countable
from streamgauge.run.trial.custom_result import WINDOW_END, OwnAnswer
from streamgauge.run.trial.missing_outputs import Missing, of_users
from streamgauge.run.trial.reference_function import ONE_CALL, Reference
from streamgauge.store.journal import read_parts
from streamgauge.workloads.contract import Columns, Inputs, OutputContract, Stream, Workload
from streamgauge.workloads.parameters import Windowed

Ints = npt.NDArray[np.int64]
MICRO = 1000
_NEVER = 1 << 62
_CONFIRMED = 50_000_000
"""Up to so many events, faults that were found in slices of them are confirmed with all of them at once."""


@dataclass(frozen=True)
class OutputCheck:
    """The reference result of one trial, once it is known how many events were acknowledged and published.

    What was acknowledged says which windows must be out; a system may be further than it has said, so the result
    goes as far as events were published. The events are those of one stream.
    """

    workload: Workload[Any]
    trial: Trial
    plan: Plan
    promise: Promise = Promise()
    origin: int = 0
    acknowledged: int = 0
    published: int = 0

    @cached_property
    def _params(self) -> Any:  # noqa: ANN401 - the parameters of any workload
        return self.workload.params.from_resolved(self.trial.params)

    @cached_property
    def _contract(self) -> OutputContract:
        return self.workload.output(self._params)

    @cached_property
    def _stream(self) -> Stream:
        (stream,) = self.workload.streams(self._params)
        return stream

    @property
    def _inputs(self) -> Inputs:
        return Inputs({self._stream.name: self.plan}, self.trial.seed, self.origin)

    @cached_property
    def _answer(self) -> Columns | None:
        result = None if self.promise.own else self.workload.reference(self._params, self._inputs)
        return result.until({self._stream.name: self.published}) if result else None

    @cached_property
    def _reference(self) -> Reference | None:
        expected = self.promise.expected
        if expected is None:
            return None
        source = self.workload.events(self._params, self._stream.name, self._inputs)
        return Reference(expected, self._stream, source, self.plan, self.origin, self.trial.params)

    @cached_property
    def _own(self) -> OwnAnswer | None:
        """What the user's own reference says: of all that was published, required as far as it was acknowledged."""
        reference = self._reference
        return None if reference is None else self._own_answer(reference, reference.answer(self.published))

    def _own_answer(self, reference: Reference, said: pa.Table) -> OwnAnswer:
        early, wins = None, self.promise.last_row_wins
        if WINDOW_END not in said.column_names and self.acknowledged < self.published:
            early = reference.whole(self.acknowledged)
        complete = closed_until(self.plan, self.origin, self.published, 0)
        answer = OwnAnswer(said, self._closed, early, complete, last_row_wins=wins, keys=self._keys(said))
        if wins and not self.promise.keys:
            answer.check_keys(reference.answer(self.published // 2))
        return answer

    def _keys(self, said: pa.Table) -> tuple[str, ...]:
        """The key columns of the user's outputs: as the user names them, else those that the events have too."""
        named = ("window_start", *(name for name, _ in self._stream.schema))
        return self.promise.keys or tuple(name for name in said.column_names if name in named)

    @property
    def _watermark(self) -> int:
        return self._params.watermark if isinstance(self._params, Windowed) else 0

    @property
    def _window(self) -> int:
        """Microseconds; where every event is an output of its own, the one event that it holds."""
        return self._params.window // MICRO if isinstance(self._params, Windowed) else 1

    @property
    def _closed(self) -> int:
        """End of the last window that must be out; where there are none, how many events must be."""
        if self._contract.one_output_per_event and not self.promise.own:
            return self.acknowledged
        return self._closed_by(self.acknowledged)

    def closed_rows(self, reported: Watermark | None = None) -> int:
        """How many rows must be out by now; 0 where there is no answer. ``reported`` is the job's own watermark."""
        if self._own is not None:
            closed = self._closed
            if reported is not None:
                closed = closed_until(self.plan, self.origin, self.acknowledged, reported.delay * MICRO)
            return len(replace(self._own, closed=closed).must())
        if self._answer is None:
            return 0
        return int(np.count_nonzero(self._answer[self._contract.identity[0]] + self._window <= self._closed))

    def account(self, folder: Path, reported: Watermark | None = None, end: int | None = None) -> Account:
        """Count what is lost, double, wrong or late. Without an answer nothing is checked, and that is said.

        A job of the user's own must have put out what the watermark has passed that it ``reported``. Outputs that never
        came are written down with what they had waited at ``end``, nanoseconds after the load began.
        """
        table = _outputs(folder)
        if self._own is not None and self._reference is not None:
            return self._own_account(folder, table, reported, end)
        if self._answer is None:
            return Account(observed=len(table) if table is not None else 0)
        observed = _observed(table)
        if not observed:
            observed = {name: np.zeros(0, np.int64) for name in self._answer}
        # a row of update mode may come again with a new value; an event that is handed on comes once in any mode
        updated = self.promise.last_row_wins and not self._contract.one_output_per_event
        found = compare(
            self._answer,
            observed,
            window=self._window,
            closed=self._closed,
            watermark=self._watermark // MICRO,
            # later than a stall after its window could close, an output is late
            lateness=None if updated or self._contract.one_output_per_event else self.trial.stall // MICRO,
            last_row_wins=updated,
            settled=self.acknowledged == self.published,
            identity=self._contract.identity,
        )
        if end is not None and STAMPS["event-time"] in self._answer:
            self._missing(self._answer, found.absent, end).keep(folder)
        return replace(found.account, first_close=self._first_close(self._answer))

    def _missing(self, answer: Columns, absent: Ints, end: int) -> Missing:
        """The rows of the workload's own answer that did not come; windows that could not be out are left out."""
        starts, stamps = answer[self._contract.identity[0]], answer[STAMPS["event-time"]]
        due = self.published if self._contract.one_output_per_event else self._closed_by(self.published)
        came = np.ones(len(starts), bool)
        came[absent] = False
        out = absent[starts[absent] <= due - self._window]
        windows = None if self._contract.one_output_per_event else starts
        return Missing(windows, stamps, stamps, out, came, self._ended(end), self.origin // MICRO)

    def _ended(self, end: int) -> int:
        """Microseconds since 1970 of a moment in nanoseconds after the load began."""
        return self.origin // MICRO + end // MICRO

    def _own_account(
        self, folder: Path, table: pa.Table | None, reported: Watermark | None, end: int | None
    ) -> Account:
        reference, own = self._reference, self._own
        assert reference is not None
        assert own is not None
        closed = reported.passed if reported else self._closed
        if self.promise.last_row_wins and self.acknowledged == self.published:
            closed = _NEVER  # all is acknowledged, so the last rows are final: no window has to close
        found = replace(own, closed=closed).account(table)
        if (found.lost or found.duplicate or found.wrong) and ONE_CALL < self.published <= _CONFIRMED:
            # that slices are possible was shown on samples only: a fault counts once all events confirm it
            own = self._own_answer(reference, reference.whole(self.published))
            found = replace(own, closed=closed).account(table)
        delay = reported.delay if reported else self._watermark // MICRO
        if end is not None and (found.lost or found.not_reached) and _stamped(table):
            due = closed_until(self.plan, self.origin, self.published, delay * MICRO)
            of_users(own.rows, own.absent(table), due, self._ended(end), self.origin // MICRO).keep(folder)
        first = own.first_window()
        return found if first is None else replace(found, first_close=max(0, first + delay * MICRO - self.origin))

    def _closed_by(self, events: int) -> int:
        return closed_until(self.plan, self.origin, events, self._watermark)

    def _first_close(self, answer: Columns) -> int:
        """Nanoseconds after the load began at which the first window closes; 0 where there are none."""
        starts = answer[self._contract.identity[0]]
        if self._contract.one_output_per_event or not len(starts):
            return 0
        return max(0, (int(starts.min()) + self._window) * MICRO + self._watermark - self.origin)


def _outputs(folder: Path) -> pa.Table | None:
    """The outputs of all queries in the order of their arrival."""
    tables = [t for query in sorted((folder / "outputs").glob("*")) if (t := read_parts(query)) is not None]
    return pa.concat_tables(tables) if tables else None


def _stamped(table: pa.Table | None) -> bool:
    """Whether outputs have the due time of their latest event, or none came: otherwise no latency of those that came is
    known, and those that never came would be all there are."""
    return table is None or STAMPS["event-time"] in countable(table)[0].column_names


def _observed(table: pa.Table | None) -> dict[str, Ints]:
    """The columns of outputs as whole numbers."""
    if table is None:
        return {}
    columns = {}
    for name in table.schema.names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        if pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type):
            columns["emitted" if name == "emitted_us" else name] = column.cast(pa.int64()).to_numpy()
    return columns
