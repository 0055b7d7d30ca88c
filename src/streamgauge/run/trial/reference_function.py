"""Calls the user's reference function with all events, or with slices of event time.

Rows with a ``window_end`` depend only on the events of their window. If that is so, the reference is called once
per slice, with all events of the windows that end in it, so that memory stays bounded at any load and length. Whether
it is so, and how long the windows are, is found out with samples of the events: a reference whose rows depend on
more than their window (a running total, a session, a comparison with the window before) gets all events together.
"""

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.engines.contract import ReferenceFunction, UserCodeFailed
from streamgauge.judge.comparable_rows import CannotCompareError, timestamps
from streamgauge.model.profile import Plan
from streamgauge.model.streams import WINDOW_END, schema_of
from streamgauge.run.trial.custom_result import CustomResult, UserReferenceError
from streamgauge.workloads.contract import EventSource, Stream

ONE_CALL = 8_000_000
"""So many events at most are given to the reference together if slices are possible: about 200 MB."""
_STEP = 1_000_000
_LINES = 30
_PROBES, _PROBE = 32, 500
"""The length of windows is read from so many short stretches of so many events each."""
_MARGIN = 1.5
"""A slice begins so many lengths of a window early: the stretches may have missed the longest one a little."""
_SAMPLE, _SAMPLE_SLICES = 40, 7
"""A sample with which slices are tried has this part of the events of one call, and is tried in so many slices."""


@dataclass(frozen=True)
class UserReference:
    """The user's reference, and the events of one trial."""

    expected: ReferenceFunction
    stream: Stream
    source: EventSource
    plan: Plan
    origin: int
    params: dict[str, Any]
    one_call: int = ONE_CALL

    def whole(self, count: int) -> pa.Table:
        """What it returns for the first ``count`` events, in one call."""
        return self._call_reference(self._events(0, count))

    def answer(self, count: int) -> pa.Table:
        """What it returns for the first ``count`` events, in slices if there are many and slices are possible."""
        if count > self.one_call:
            length = self._window_length(count)
            if length and self._slices_agree(count, length):
                span = max(2 * length, self.one_call * int(self.plan.due(count - 1)) // count - int(_MARGIN * length))
                try:
                    return _joined(self._slices(count, length, span))
                except (UserCodeFailed, pa.ArrowException, _NoSlicesError):
                    pass  # all events together: the error is reported then
        return self.whole(count)

    def _slices(self, count: int, length: int, span: int, stride: int = 1) -> Iterator[pa.Table]:
        """The rows of the windows that end in each ``span`` of event-time, from all events of these windows."""
        last, begin = int(self.plan.due(count - 1)), 0
        while begin <= last:
            end = begin + span
            first = int(self.plan.count(max(0, begin - int(_MARGIN * length))))
            final = count if end > last else int(self.plan.count(end))
            rows = self._call_reference(self._events(first, final, stride))
            yield _ending(rows, self.origin + begin if begin else None, self.origin + end if end <= last else None)
            begin = end

    def _window_length(self, count: int) -> int:
        """The longest time from an event to the end of a window that contains it; 0 if unknown."""
        longest, measured = 0, 0
        for start in np.linspace(0, count - _PROBE, _PROBES).astype(int).tolist():
            try:
                ends = _ends(self._call_reference(self._events(start, start + _PROBE)))
            except (UserCodeFailed, _NoSlicesError):
                return 0
            if not ends:
                continue
            first, final = (self.origin + int(self.plan.due(n)) for n in (start, start + _PROBE - 1))
            if min(ends) < first // 1_000 * 1_000:
                return 0
            measured, longest = measured + 1, max(longest, max(ends) - first)
            if longest > final - first + int(self.plan.due(count - 1)):
                return 0  # as long as the trial: nothing is gained
        return longest if measured >= _PROBES // 2 else 0

    def _slices_agree(self, count: int, length: int) -> bool:
        """Whether slices give the same rows as one call, of events from the whole trial and of the first ones."""
        sample = self.one_call // _SAMPLE
        return self._same(count, length, -(-count // sample)) and self._same(sample, length, 1)

    def _same(self, count: int, length: int, stride: int) -> bool:
        span = max(1_000, int(self.plan.due(count - 1)) // _SAMPLE_SLICES)
        try:
            at_once = self._call_reference(self._events(0, count, stride))
            sliced = _joined(self._slices(count, length, span, stride))
            found = CustomResult(at_once, closed=max(_ends(at_once), default=0) // 1_000).account(sliced)
        except (UserCodeFailed, pa.ArrowException, _NoSlicesError):
            return False
        return found.checked and not (found.lost or found.duplicate or found.wrong)

    def _events(self, start: int, stop: int, stride: int = 1) -> pa.Table:
        return events(self.stream, self.source, start, stop, stride)

    def _call_reference(self, table: pa.Table) -> pa.Table:
        return call_reference(self.expected, table, self.params)


class _NoSlicesError(Exception):
    """Rows that cannot be assigned to a slice."""


def _ends(rows: pa.Table) -> list[int]:
    """The ends of windows in nanoseconds."""
    if rows.column_names.count(WINDOW_END) != 1:
        raise _NoSlicesError
    try:
        ends = timestamps(rows, WINDOW_END)
    except CannotCompareError as error:
        raise _NoSlicesError from error
    if None in ends:
        raise _NoSlicesError
    return [end for end in ends if end is not None]


def _ending(rows: pa.Table, after: int | None, until: int | None) -> pa.Table:
    """The rows whose windows end after one moment and not after another, in nanoseconds."""
    try:
        ends = np.array(_ends(rows), np.int64)
    except OverflowError as error:  # a timestamp of the year 9999 has no nanoseconds in 64 bits
        raise _NoSlicesError from error
    keep = np.ones(len(ends), bool) if after is None else ends > after
    return rows.filter(pa.array(keep if until is None else keep & (ends <= until)))


def _joined(parts: Iterator[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(parts))


def events(stream: Stream, source: EventSource, start: int, stop: int, stride: int = 1) -> pa.Table:
    """These events of a trial as a table, as the user's pipeline gets them: those whose number ``stride`` divides."""
    schema = schema_of(stream.schema)
    batches = _batches(schema, source, range(-(-start // stride) * stride, stop, stride))
    return pa.Table.from_batches(list(batches), schema)


def _batches(schema: pa.Schema, source: EventSource, numbers: range) -> Iterator[pa.RecordBatch]:
    for low in range(0, len(numbers), _STEP):
        part = numbers[low : low + _STEP]
        columns = source.events(part.start, part.stop, part.step)
        arrays = [pa.array(np.asarray(columns[field.name])).view(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def call_reference(expected: ReferenceFunction, table: pa.Table, params: dict[str, Any]) -> pa.Table:
    """What the user's reference returns; anything it raises is the user's, SystemExit included."""
    try:
        answer = expected(table, params)
    # The user's code may fail in any way.
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error)).splitlines()
        raise UserReferenceError(f"your reference failed: {type(error).__name__}: {error}", trace[-_LINES:]) from error
    if not isinstance(answer, pa.Table):
        raise UserReferenceError(f"your reference returned {type(answer).__name__}; it must return a pyarrow.Table")
    return answer
