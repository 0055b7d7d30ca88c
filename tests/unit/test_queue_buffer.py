"""The counts of the queue: offsets, consistent offsets at one due time, bounds, acknowledgements, disconnects."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.streams import StreamPartition
from streamgauge.transports.ledger import Acknowledgement, LedgerError
from streamgauge.transports.queue.buffer import QueueBuffer

A, B = StreamPartition("purchases", 0), StreamPartition("purchases", 1)
SECOND = 10**9


def batch(dues: list[int], first: int = 0) -> pa.RecordBatch:
    due = pa.array(np.array(dues, np.int64)).view(pa.timestamp("us", "UTC"))
    return pa.record_batch({"due": due, "n": np.arange(first, first + len(dues))})


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [n for b in batches for n in b.column("n").to_pylist()]


def filled() -> QueueBuffer:
    buffer = QueueBuffer([A, B])
    assert buffer.publish([(A, batch([0, 2, 4])), (B, batch([1, 3]))], 5)
    assert buffer.publish([(A, batch([6, 8], 3)), (B, batch([5, 7, 9], 2))], 10)
    return buffer


def test_a_range_is_served_from_any_offset_to_any_other() -> None:
    buffer = filled()
    assert [numbers(buffer.lease(A, start, stop)[1]) for start, stop in ((0, 5), (1, 4), (2, 3), (3, 5), (4, 4))] == [
        [0, 1, 2, 3, 4],
        [1, 2, 3],
        [2],
        [3, 4],
        [],
    ]


def test_ranges_are_slices_of_the_published_memory() -> None:
    buffer = QueueBuffer([A])
    whole = batch(list(range(100)))
    buffer.publish([(A, whole)], 100)
    _, (part,) = buffer.lease(A, 10, 20)
    assert part.column("n").buffers()[1].address == whole.column("n").buffers()[1].address


@pytest.mark.parametrize(
    ("due", "offsets"), [(0, (0, 0)), (1, (1, 0)), (4, (2, 2)), (5, (3, 2)), (6, (3, 3)), (9, (5, 4)), (10, (5, 5))]
)
def test_consistent_offsets_are_those_of_all_partitions_at_one_due_time(due: int, offsets: tuple[int, int]) -> None:
    assert filled().consistent_offsets(due) == (due, {A: offsets[0], B: offsets[1]})


@pytest.mark.parametrize(("most", "due"), [(1, 5), (4, 5), (5, 5), (9, 5), (10, None), (99, None)])
def test_at_most_so_many_events_are_read_but_a_whole_send_interval_at_least(most: int, due: int | None) -> None:
    assert filled().due_time_for(most) == due


def test_what_is_acknowledged_does_not_count_against_the_most() -> None:
    buffer = filled()
    buffer.acknowledge({A: 3, B: 2}, 0)
    assert buffer.publish([(A, batch([10], 5))], 15)
    assert (buffer.due_time_for(5), buffer.due_time_for(6)) == (10, None)


def test_consistent_offsets_beyond_what_is_published_are_refused() -> None:
    with pytest.raises(LedgerError, match="published until 10 µs only"):
        filled().consistent_offsets(11)


def test_consistent_offsets_are_never_before_what_is_acknowledged() -> None:
    buffer = filled()
    buffer.acknowledge({A: 4, B: 5}, 0)
    assert buffer.consistent_offsets(1)[1] == {A: 4, B: 5}


def test_the_counts_are_exact_at_every_moment() -> None:
    buffer = filled()
    buffer.lease(A, 0, 3)
    assert (buffer.published, buffer.served, buffer.reread, buffer.acknowledged, buffer.lag) == (10, 3, 0, 0, 10)
    buffer.lease(A, 1, 5)
    assert (buffer.served, buffer.reread) == (5, 2)
    assert buffer.acknowledge({A: 5}, 7) == Acknowledgement(7, 10, 5, 5, 5)
    assert buffer.acknowledgements == [Acknowledgement(7, 10, 5, 5, 5)]
    assert buffer.longest == 10


def test_acknowledged_batches_are_freed_and_cannot_be_read_again() -> None:
    buffer = filled()
    before = buffer.buffered_bytes
    buffer.acknowledge({A: 3}, 0)
    assert buffer.buffered_bytes == before - batch([0, 2, 4]).nbytes
    with pytest.raises(LedgerError, match="3 to 5 are"):
        buffer.lease(A, 2, 5)
    buffer.acknowledge({A: 5, B: 5}, 0)
    assert buffer.buffered_bytes == 0


def test_an_acknowledgement_that_is_repeated_counts_once() -> None:
    buffer = filled()
    buffer.acknowledge({A: 4}, 0)
    buffer.acknowledge({A: 2}, 1)
    assert buffer.acknowledged == 4


def test_what_was_never_published_cannot_be_acknowledged_not_even_in_part() -> None:
    buffer = filled()
    with pytest.raises(LedgerError, match="never published"):
        buffer.acknowledge({A: 2, B: 6}, 0)
    assert buffer.acknowledged == 0


@pytest.mark.parametrize("bounds", [{"bound_events": 7}, {"bound_bytes": 7 * 16}])
def test_a_full_queue_is_marked_and_accepts_nothing_more(bounds: dict[str, int]) -> None:
    buffer = QueueBuffer([A, B], **bounds)
    assert buffer.publish([(A, batch([0, 2, 4])), (B, batch([1, 3, 4, 4]))], 5)
    assert not buffer.full
    assert not buffer.publish([(A, batch([6]))], 10)
    assert buffer.full
    assert buffer.published == 7
    buffer.acknowledge({A: 3}, 0)
    assert not buffer.publish([(A, batch([6]))], 10), "full once is full for this trial"


def test_a_cancelled_stream_that_is_read_again_in_time_is_no_disconnect() -> None:
    buffer = filled()
    lease, _ = buffer.lease(A, 0, 5)
    buffer.cancel(lease, SECOND)
    buffer.lease(A, 0, 3)
    assert buffer.expire_cancelled(60 * SECOND) == 0


def test_a_cancelled_stream_that_is_not_read_again_is_a_disconnect() -> None:
    buffer = filled()
    lease, _ = buffer.lease(A, 0, 5)
    buffer.lease(B, 0, 5)
    buffer.cancel(lease, SECOND)
    assert buffer.expire_cancelled(11 * SECOND) == 0
    assert buffer.expire_cancelled(11 * SECOND + 1) == 1
    assert buffer.disconnects[0].partition == A


def test_a_cancelled_stream_whose_range_another_attempt_has_or_ends_is_no_disconnect() -> None:
    buffer = filled()
    loser, _ = buffer.lease(A, 0, 5)
    buffer.lease(A, 0, 5)
    buffer.cancel(loser, SECOND)
    alone, _ = buffer.lease(B, 0, 5)
    buffer.cancel(alone, SECOND)
    buffer.acknowledge({B: 5}, 2 * SECOND)
    assert buffer.expire_cancelled(60 * SECOND) == 0


def test_a_partition_of_another_driver_is_refused() -> None:
    with pytest.raises(LedgerError, match="no partition 7 of purchases"):
        filled().lease(StreamPartition("purchases", 7), 0, 1)


INTERVALS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)


@settings(deadline=None)
@given(INTERVALS, st.data())
def test_any_history_keeps_the_counts_balanced_and_every_event_once(
    intervals: list[tuple[int, int]], data: st.DataObject
) -> None:
    buffer, position = QueueBuffer([A, B]), {A: 0, B: 0}
    seen: dict[StreamPartition, list[int]] = {A: [], B: []}
    made = {A: 0, B: 0}
    for interval, counts in enumerate(intervals):
        parts = []
        for partition, count in zip((A, B), counts, strict=True):
            parts.append((partition, batch([interval * 10 + i for i in range(count)], made[partition])))
            made[partition] += count
        assert buffer.publish(parts, interval * 10 + 10)
        if data.draw(st.booleans()):
            _, cut = buffer.consistent_offsets(data.draw(st.integers(0, interval * 10 + 10)))
            for partition, stop in cut.items():
                seen[partition] += numbers(
                    buffer.lease(partition, position[partition], max(stop, position[partition]))[1]
                )
                position[partition] = max(stop, position[partition])
            buffer.acknowledge(position, interval)
        assert buffer.published == sum(made.values())
        assert buffer.served == buffer.acknowledged == sum(position.values())
        assert buffer.reread == 0
    for partition in (A, B):
        assert seen[partition] == list(range(position[partition]))
    buffer.acknowledge(made, 0)
    assert (buffer.lag, buffer.buffered_bytes) == (0, 0)


def test_what_was_acknowledged_before_the_last_time_is_known() -> None:
    buffer = filled()
    before = []
    for offsets in ({A: 1}, {A: 3, B: 2}, {A: 3}, {A: 5, B: 5}):  # the third has nothing new
        buffer.acknowledge(offsets, SECOND)
        before.append(buffer.stream_counts(2)["purchases"].acknowledged_before_last)
    assert before == [0, 1, 1, 5]
