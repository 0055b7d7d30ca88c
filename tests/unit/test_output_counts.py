"""Committed outputs become counts: latencies in buckets, rows and window results of each second."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.run.collector.counts import KIND_NUMBER, OutputCounts, count_outputs, countable
from streamgauge.stats import buckets
from streamgauge.transports.queue.attempts import StampedRows
from streamgauge.transports.queue.outputs import committed_rows

STAMP = pa.timestamp("us", "UTC")
ORIGIN = 1_700_000_000_000_000


def arrival(emitted: int, dues: list[int], window: int = 0, ingested: int | None = None) -> StampedRows:
    """Rows with these due times, all in µs since the load began."""
    columns = {
        "window_end": pa.array(np.full(len(dues), ORIGIN + window)).view(STAMP),
        "max_due": pa.array(np.array(dues, np.int64) + ORIGIN).view(STAMP),
    }
    if ingested is not None:
        columns["max_ingested"] = pa.array(np.full(len(dues), ORIGIN + ingested)).view(STAMP)
    return StampedRows(pa.record_batch(columns), ORIGIN + emitted)


def counts_of(*arrivals: StampedRows, firing: str | None = "window_end") -> OutputCounts:
    return count_outputs(committed_rows("q", 3, arrivals).rows, ORIGIN, firing)


def counted(result: OutputCounts, kind: int) -> dict[int, dict[int, int]]:
    """Counts by second and bucket."""
    found: dict[int, dict[int, int]] = {}
    for seconds, of, bucket, count in result.latencies:
        if of == kind:
            for s, b, c in zip(seconds.tolist(), bucket.tolist(), count.tolist(), strict=True):
                found.setdefault(s, {})[b] = found.get(s, {}).get(b, 0) + c
    return found


def by_second(result: OutputCounts, name: str) -> dict[int, int]:
    """A column of counts, without the seconds that have none."""
    found: dict[int, int] = {}
    for second, count in zip(result.second, getattr(result, name), strict=True):
        found[second] = found.get(second, 0) + count
    return {second: count for second, count in found.items() if count}


def test_outputs_are_stored_with_their_arrival_and_the_number_of_their_batch() -> None:
    table = committed_rows("q", 3, [arrival(7, [1, 2]), arrival(9, [3])]).rows
    assert table["emitted_us"].to_pylist() == [ORIGIN + 7, ORIGIN + 7, ORIGIN + 9]
    assert table["batch"].to_pylist() == [3, 3, 3]


def test_latencies_are_counted_in_the_second_in_which_the_output_was_due_and_outputs_in_that_of_their_arrival() -> None:
    result = counts_of(arrival(999_999, [999_899, 999_899, 0]), arrival(2_000_000, [1_999_000], ingested=None))
    assert counted(result, 0) == {0: {100: 2, int(buckets.index(999_999)): 1}, 1: {1000: 1}}
    assert by_second(result, "outputs") == {0: 3, 2: 1}


def test_an_output_that_comes_ten_seconds_late_counts_where_it_was_due() -> None:
    result = counts_of(arrival(12_500_000, [2_400_000, 2_500_000], ingested=11_500_000))
    late = int(buckets.index(10_100_000))
    assert counted(result, 0) == {2: {int(buckets.index(10_000_000)): 1, late: 1}}
    assert counted(result, 1) == {2: {int(buckets.index(1_000_000)): 2}}
    assert (by_second(result, "outputs"), by_second(result, "firings")) == ({12: 2}, {2: 1})
    assert counted(result, KIND_NUMBER["event-time-windows"]) == {2: {late: 1}}
    assert counted(result, KIND_NUMBER["processing-time-windows"]) == {2: {int(buckets.index(1_000_000)): 1}}


def test_processing_time_is_counted_if_the_outputs_have_it() -> None:
    result = counts_of(arrival(5_000, [1_000], ingested=4_000))
    assert counted(result, 0) == {0: {int(buckets.index(4_000)): 1}}
    assert counted(result, 1) == {0: {1_000: 1}}


def test_a_window_result_counts_once_however_many_keys_and_parts_it_has() -> None:
    result = counts_of(
        arrival(10, [1, 2, 3], 100), arrival(11, [4], 100), arrival(1_000_001, [5], 100), arrival(12, [6], 200)
    )
    assert by_second(result, "firings") == {0: 2}
    assert counted(result, KIND_NUMBER["event-time-windows"]) == {0: {6: 1, int(buckets.index(999_996)): 1}}


def test_without_a_column_for_window_results_every_row_counts() -> None:
    for firing in (None, "no such column"):
        result = counts_of(arrival(10, [1, 2, 3]), firing=firing)
        assert by_second(result, "firings") == {0: 3}
        assert [kind for _, kind, _, _ in result.latencies] == [KIND_NUMBER["event-time"]]


def test_a_negative_latency_is_counted_and_never_clamped() -> None:
    result = counts_of(arrival(10, [11, 12, 9]))
    assert by_second(result, "negative") == {0: 2}
    assert counted(result, 0) == {0: {1: 1}}


def test_an_output_without_due_times_is_an_output_all_the_same() -> None:
    result = count_outputs(
        committed_rows("q", 0, [StampedRows(pa.record_batch({"key": [1, 2]}), ORIGIN)]).rows, ORIGIN, None
    )
    assert (by_second(result, "outputs"), by_second(result, "firings"), result.latencies) == ({0: 2}, {0: 2}, [])


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        ("max_due", pa.array([1, None], pa.int64()).cast(STAMP), "column max_due has nulls (1 row has no value)"),
        ("max_ingested", pa.array([None, None], pa.int64()), "column max_ingested has nulls (2 rows have no value)"),
        ("max_due", pa.array(["noon", "night"]), "column max_due is string: it must be a timestamp"),
        ("max_due", pa.array([1.5, 2.5]), "column max_due is double: it must be a timestamp"),
        ("max_ingested", pa.array([[1], []]), "column max_ingested is list<item: int64>: it must be a timestamp"),
        ("max_due", pa.nulls(2), "column max_due is null: it must be a timestamp"),
    ],
)
def test_outputs_whose_moments_cannot_be_used_count_without_a_latency_and_it_is_reported(
    name: str, column: pa.Array, said: str
) -> None:
    table, fault = countable(
        committed_rows("q", 0, [StampedRows(pa.record_batch({"key": [1, 2], name: column}), ORIGIN)]).rows
    )
    assert said in fault
    assert by_second(count_outputs(table, ORIGIN, None), "outputs") == {0: 2}
    assert not count_outputs(table, ORIGIN, None).latencies


def test_moments_of_any_unit_and_of_any_year_can_be_counted() -> None:
    moments = [pa.array([1, 2**62], pa.timestamp("ns")), pa.array([0, -62_135_596_800], pa.timestamp("s"))]
    for column in (*moments, pa.array([0, -62_135_596_800_000_000])):
        table, fault = countable(
            committed_rows("q", 0, [StampedRows(pa.record_batch({"max_due": column}), ORIGIN)]).rows
        )
        assert fault == ""
        counts = count_outputs(table, ORIGIN, None)
        assert sum(int(each.sum()) for _, _, _, each in counts.latencies) + sum(counts.negative) == 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3_000_000), st.lists(st.integers(0, 3_000_000), min_size=1)), min_size=1))
def test_no_row_is_lost_or_counted_twice(parts: list[tuple[int, list[int]]]) -> None:
    result = counts_of(*(arrival(emitted, dues) for emitted, dues in parts))
    rows = sum(len(dues) for _, dues in parts)
    assert sum(result.outputs) == rows
    assert sum(c for by in counted(result, 0).values() for c in by.values()) + sum(result.negative) == rows
    assert sum(result.firings) == 1
