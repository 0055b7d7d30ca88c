"""After a trial: its outputs, compared with the reference result of the workload or of the user."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.engines.contract import CustomJob, ReferenceFunction, Watermark
from streamgauge.judge.compare_columns import Values, columns_of
from streamgauge.judge.outputs import EMITTED, closed_until, compare_outputs
from streamgauge.model.options import Params
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account
from streamgauge.model.streams import MAX_DUE, WINDOW_END
from streamgauge.model.trial import Trial
from streamgauge.run.collector.counts import countable
from streamgauge.run.trial.custom_result import CustomResult, UserReferenceError
from streamgauge.run.trial.missing_outputs import Missing, of_users
from streamgauge.run.trial.processes import plan_length
from streamgauge.run.trial.reference_function import ONE_CALL, UserReference
from streamgauge.run.trial.setup import TrialSetup
from streamgauge.store.journal import read_parts
from streamgauge.workloads.contract import (
    STREAM,
    Columns,
    Inputs,
    OutputContract,
    Stream,
    Workload,
    plans_of,
    rows_of_job,
)
from streamgauge.workloads.parameters import Windowed, watermark_of

Ints = npt.NDArray[np.int64]
ARRIVAL = "emitted_us"
"""The column that the collector adds to outputs: when they came."""
MICRO = 1000
_NEVER = 1 << 62
_CONFIRMED = 50_000_000
"""Up to so many events, faults that were found in slices of them are confirmed with all of them together."""


def plans_of_trial(setup: TrialSetup, drain_ns: int) -> dict[str, Plan]:
    """The plan of each stream of a trial, as its load drivers have it."""
    return plans_of(setup.workload.streams(setup.params), setup.trial.profile, plan_length(setup.trial, drain_ns))


@dataclass(frozen=True)
class OutputCheck:
    """The reference result of one trial, once it is known how many events were acknowledged and published.

    What was acknowledged decides which windows must be out; a system may be further than it has acknowledged, so the
    result goes as far as events were published.
    """

    workload: Workload[Any]
    trial: Trial
    params: Params
    plans: Mapping[str, Plan]
    custom: CustomJob | None = None
    updates: bool = False
    """A window may be emitted many times, and its last row must be right."""
    origin: int = 0
    acknowledged: Mapping[str, int] = field(default_factory=dict)
    published: Mapping[str, int] = field(default_factory=dict)
    reference_function: ReferenceFunction | None = None
    early: bool = False
    """Rows may be emitted before their window is complete."""

    @classmethod
    def of(cls, setup: TrialSetup, plans: Mapping[str, Plan]) -> "OutputCheck":
        """The check of a trial that is to begin. Raises UserCodeFailed if the user's reference cannot be imported."""
        custom = setup.traits.custom if setup.check_outputs else None
        function = custom.load_reference() if custom and custom.load_reference else None
        return cls(
            setup.workload,
            setup.trial,
            setup.params,
            plans,
            setup.traits.custom,
            setup.traits.updates,
            reference_function=function,
            early=setup.traits.emits_early,
        )

    def at(self, origin: int, acknowledged: Mapping[str, int], published: Mapping[str, int]) -> "OutputCheck":
        """The same, once the load is over. ``origin`` is when it began, in nanoseconds since 1970."""
        return replace(self, origin=origin, acknowledged=acknowledged, published=published)

    @cached_property
    def _contract(self) -> OutputContract:
        return self.workload.output(self.params)

    @cached_property
    def _only_stream(self) -> Stream:
        """The stream of events, where a check is possible for one stream only."""
        streams = self.workload.streams(self.params)
        if len(streams) > 1:
            raise UserReferenceError(
                f"a reference function supports one stream of events, and {self.workload.name} has {len(streams)}; "
                "remove engine.reference"
            )
        return streams[0]

    @property
    def _plan(self) -> Plan:
        return self.plans[self._only_stream.name]

    @property
    def _events_acknowledged(self) -> int:
        return self.acknowledged[self._only_stream.name]

    @property
    def _events_published(self) -> int:
        return self.published[self._only_stream.name]

    @property
    def _inputs(self) -> Inputs:
        return Inputs(self.plans, self.trial.seed, self.origin)

    @cached_property
    def _expected(self) -> Columns | None:
        result = None if self.custom else self.workload.reference(self.params, self._inputs)
        return rows_of_job(result.until(self.published), early=self.early) if result else None

    @cached_property
    def _reference(self) -> UserReference | None:
        if self.reference_function is None:
            return None
        stream = self._only_stream
        source = self.workload.events(self.params, stream.name, self._inputs)
        return UserReference(self.reference_function, stream, source, self._plan, self.origin, self.trial.params)

    @cached_property
    def _custom(self) -> CustomResult | None:
        """The result of the user's reference: of all that was published, required as far as it was acknowledged."""
        reference = self._reference
        return None if reference is None else self._custom_result(reference, reference.answer(self._events_published))

    def _custom_result(self, reference: UserReference, rows: pa.Table) -> CustomResult:
        early, keys = None, self.custom.keys if self.custom else ()
        if WINDOW_END not in rows.column_names and self._events_acknowledged < self._events_published:
            early = reference.whole(self._events_acknowledged)
        complete = closed_until(self._plan, self.origin, self._events_published, 0)
        result = CustomResult(
            rows, self._closed_until, early, complete, last_row_wins=self.updates, keys=self._keys(rows)
        )
        if self.updates and not keys:
            result.check_keys(reference.answer(self._events_published // 2))
        return result

    def _keys(self, rows: pa.Table) -> tuple[str, ...]:
        """The key columns of the user's outputs: as the user names them, else those that the events have too."""
        named = ("window_start", *(name for name, _ in self._only_stream.schema))
        keys = self.custom.keys if self.custom else ()
        return keys or tuple(name for name in rows.column_names if name in named)

    @property
    def _watermark(self) -> int:
        return watermark_of(self.params)

    @property
    def _window(self) -> int:
        """Microseconds; for outputs with the number of an event, this one event."""
        if self._contract.numbered or not isinstance(self.params, Windowed):
            return 1
        return self.params.window // MICRO

    @property
    def _closed_until(self) -> int:
        """End of the last window of a user's job that must be out."""
        return self._closed_by(self.acknowledged)

    def _closed(self, answer: Columns, events: Mapping[str, int]) -> int | Ints:
        """End of the last window that must be out if so many events were processed.

        For outputs with numbers, how many must be out: of each stream, or of what needs an event of every stream.
        """
        if not self._contract.numbered:
            return self._closed_by(events)
        if STREAM not in self._contract.identity:
            return min(events.values())
        counts = np.zeros(len(answer[STREAM]), np.int64)
        for name, count in events.items():
            counts[np.asarray(answer[STREAM] == name, bool)] = count
        return counts

    def rows_due(self, reported: Watermark | None = None) -> int:
        """How many rows must be out by now; 0 without a reference. ``reported`` is the watermark of the job itself."""
        if self._custom is not None:
            closed = self._closed_until
            if reported is not None:
                closed = closed_until(self._plan, self.origin, self._events_acknowledged, reported.delay * MICRO)
            return len(replace(self._custom, closed=closed).rows_due())
        if self._expected is None:
            return 0
        out = self._closed(self._expected, self.acknowledged)
        return int(np.count_nonzero(self._expected[self._contract.identity[0]] + self._window <= out))

    def account(self, folder: Path, reported: Watermark | None = None, end: int | None = None) -> Account:
        """Count what is lost, duplicate, wrong or late. Without a reference nothing is checked.

        A user's job must have emitted what the watermark has passed that it ``reported``. Outputs that never came are
        recorded with the time that they had waited at ``end``, nanoseconds after the load began.
        """
        table = _outputs(folder)
        if self._custom is not None and self._reference is not None:
            return self._custom_account(folder, table, reported, end)
        if self._expected is None:
            return Account(observed=len(table) if table is not None else 0)
        observed = _observed(table, self._expected, self._contract)
        # a row of update mode may come again with a new value; an event that is passed on comes once in any mode
        updated = self.updates and not self._contract.numbered
        found = compare_outputs(
            self._expected,
            observed,
            window=self._window,
            closed=self._closed(self._expected, self.acknowledged),
            watermark=self._watermark // MICRO,
            # later than a stall after its window could close, an output is late
            lateness=None if updated or self._contract.numbered else self.trial.stall // MICRO,
            last_row_wins=updated,
            all_acknowledged=self.acknowledged == self.published,
            identity=self._contract.identity,
            tolerance=self._contract.tolerance,
        )
        if end is not None and MAX_DUE in self._expected:
            self._missing(self._expected, found.absent, end).keep(folder)
        return replace(found.account, first_close=self._first_close(self._expected))

    def _missing(self, answer: Columns, absent: Ints, end: int) -> Missing:
        """The expected rows of the workload that did not come, without windows that could not be out."""
        starts, stamps = answer[self._contract.identity[0]], answer[MAX_DUE]
        due = np.broadcast_to(self._closed(answer, self.published), starts.shape)
        came = np.ones(len(starts), bool)
        came[absent] = False
        out = absent[starts[absent] <= due[absent] - self._window]
        windows = None if self._contract.numbered else starts
        return Missing(windows, stamps, stamps, out, came, self._ended(end), self.origin // MICRO)

    def _ended(self, end: int) -> int:
        """Microseconds since 1970 of a moment in nanoseconds after the load began."""
        return self.origin // MICRO + end // MICRO

    def _custom_account(
        self, folder: Path, table: pa.Table | None, reported: Watermark | None, end: int | None
    ) -> Account:
        reference, custom = self._reference, self._custom
        assert reference is not None
        assert custom is not None
        closed = reported.passed if reported else self._closed_until
        if self.updates and self.acknowledged == self.published:
            closed = _NEVER  # all is acknowledged, so the last rows are final: no window has to close
        found = replace(custom, closed=closed).account(table)
        if (found.lost or found.duplicate or found.wrong) and ONE_CALL < self._events_published <= _CONFIRMED:
            # that slices are possible was shown on samples only: a fault counts once all events confirm it
            custom = self._custom_result(reference, reference.whole(self._events_published))
            found = replace(custom, closed=closed).account(table)
        delay = reported.delay if reported else self._watermark // MICRO
        if end is not None and (found.lost or found.not_reached) and _stamped(table):
            due = closed_until(self._plan, self.origin, self._events_published, delay * MICRO)
            of_users(custom.rows, custom.absent(table), due, self._ended(end), self.origin // MICRO).keep(folder)
        first = custom.first_window()
        return found if first is None else replace(found, first_close=max(0, first + delay * MICRO - self.origin))

    def _closed_by(self, events: Mapping[str, int]) -> int:
        """A window closes once the slowest stream has passed its end."""
        return min(closed_until(self.plans[name], self.origin, n, self._watermark) for name, n in events.items())

    def _first_close(self, answer: Columns) -> int:
        """Nanoseconds after the load began at which the first window closes; 0 where there are none."""
        starts = answer[self._contract.identity[0]]
        if self._contract.numbered or not len(starts):
            return 0
        return max(0, (int(starts.min()) + self._window) * MICRO + self._watermark - self.origin)


def stored_rows(folder: Path) -> int:
    """How many rows of output were stored."""
    table = _outputs(folder)
    return 0 if table is None else len(table)


def _outputs(folder: Path) -> pa.Table | None:
    """The outputs of all queries in the order of their arrival."""
    tables = [t for query in sorted((folder / "outputs").glob("*")) if (t := read_parts(query)) is not None]
    return pa.concat_tables(tables) if tables else None


def _stamped(table: pa.Table | None) -> bool:
    """Whether outputs have the due time of their latest event, or none came: otherwise no latency of those that came is
    known, and those that never came would be all there are."""
    return table is None or MAX_DUE in countable(table)[0].column_names


def _observed(table: pa.Table | None, expected: Columns, contract: OutputContract) -> Columns:
    """The outputs as columns that can be compared; no rows if there are none."""
    if table is None:
        return {name: column[:0] for name, column in expected.items()}
    columns: dict[str, Values] = columns_of(table, [*expected, ARRIVAL], contract.digested)
    if ARRIVAL in columns:
        columns[EMITTED] = columns.pop(ARRIVAL)
    unknown = np.ma.array(np.zeros(len(table), np.int64), mask=True)  # without these columns no row is an expected one
    return dict.fromkeys(contract.identity, unknown) | columns
