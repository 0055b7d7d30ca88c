"""The queue's books: offsets, cuts at one due time, bounds, acknowledgements, dropped streams."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.transports.ledger import Ack, BacklogError, Lane
from streamgauge.transports.queue.buffer import Backlog

A, B = Lane("purchases", 0), Lane("purchases", 1)
SECOND = 10**9


def batch(dues: list[int], first: int = 0) -> pa.RecordBatch:
    due = pa.array(np.array(dues, np.int64)).view(pa.timestamp("us", "UTC"))
    return pa.record_batch({"due": due, "n": np.arange(first, first + len(dues))})


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [n for b in batches for n in b.column("n").to_pylist()]


def filled() -> Backlog:
    backlog = Backlog([A, B])
    assert backlog.publish([(A, batch([0, 2, 4])), (B, batch([1, 3]))], 5)
    assert backlog.publish([(A, batch([6, 8], 3)), (B, batch([5, 7, 9], 2))], 10)
    return backlog


def test_a_range_is_served_from_any_offset_to_any_other() -> None:
    backlog = filled()
    assert [numbers(backlog.lend(A, start, stop)[1]) for start, stop in ((0, 5), (1, 4), (2, 3), (3, 5), (4, 4))] == [
        [0, 1, 2, 3, 4],
        [1, 2, 3],
        [2],
        [3, 4],
        [],
    ]


def test_ranges_are_slices_of_the_published_memory() -> None:
    backlog = Backlog([A])
    whole = batch(list(range(100)))
    backlog.publish([(A, whole)], 100)
    _, (part,) = backlog.lend(A, 10, 20)
    assert part.column("n").buffers()[1].address == whole.column("n").buffers()[1].address


@pytest.mark.parametrize(
    ("due", "offsets"), [(0, (0, 0)), (1, (1, 0)), (4, (2, 2)), (5, (3, 2)), (6, (3, 3)), (9, (5, 4)), (10, (5, 5))]
)
def test_a_cut_gives_the_offsets_of_all_partitions_at_one_due_time(due: int, offsets: tuple[int, int]) -> None:
    assert filled().cut(due) == (due, {A: offsets[0], B: offsets[1]})


@pytest.mark.parametrize(("most", "due"), [(1, 5), (4, 5), (5, 5), (9, 5), (10, None), (99, None)])
def test_at_most_so_many_events_are_taken_but_a_whole_tick_at_least(most: int, due: int | None) -> None:
    assert filled().due_of(most) == due


def test_what_is_acknowledged_does_not_count_against_the_most() -> None:
    backlog = filled()
    backlog.acknowledge({A: 3, B: 2}, 0)
    assert backlog.publish([(A, batch([10], 5))], 15)
    assert (backlog.due_of(5), backlog.due_of(6)) == (10, None)


def test_a_cut_beyond_what_is_published_is_refused() -> None:
    with pytest.raises(BacklogError, match="published until 10 µs only"):
        filled().cut(11)


def test_a_cut_never_lies_before_what_is_acknowledged() -> None:
    backlog = filled()
    backlog.acknowledge({A: 4, B: 5}, 0)
    assert backlog.cut(1)[1] == {A: 4, B: 5}


def test_the_counts_are_exact_at_every_moment() -> None:
    backlog = filled()
    backlog.lend(A, 0, 3)
    assert (backlog.published, backlog.served, backlog.reread, backlog.acknowledged, backlog.lag) == (10, 3, 0, 0, 10)
    backlog.lend(A, 1, 5)
    assert (backlog.served, backlog.reread) == (5, 2)
    assert backlog.acknowledge({A: 5}, 7) == Ack(7, 10, 5, 5, 5)
    assert backlog.acks == [Ack(7, 10, 5, 5, 5)]
    assert backlog.longest == 10


def test_acknowledged_batches_are_freed_and_cannot_be_read_again() -> None:
    backlog = filled()
    before = backlog.held_bytes
    backlog.acknowledge({A: 3}, 0)
    assert backlog.held_bytes == before - batch([0, 2, 4]).nbytes
    with pytest.raises(BacklogError, match="3 to 5 are"):
        backlog.lend(A, 2, 5)
    backlog.acknowledge({A: 5, B: 5}, 0)
    assert backlog.held_bytes == 0


def test_an_acknowledgement_said_twice_counts_once() -> None:
    backlog = filled()
    backlog.acknowledge({A: 4}, 0)
    backlog.acknowledge({A: 2}, 1)
    assert backlog.acknowledged == 4


def test_what_was_never_published_cannot_be_acknowledged_not_even_in_part() -> None:
    backlog = filled()
    with pytest.raises(BacklogError, match="never published"):
        backlog.acknowledge({A: 2, B: 6}, 0)
    assert backlog.acknowledged == 0


@pytest.mark.parametrize("bounds", [{"bound_events": 7}, {"bound_bytes": 7 * 16}])
def test_a_full_queue_says_so_and_takes_nothing_more(bounds: dict[str, int]) -> None:
    backlog = Backlog([A, B], **bounds)
    assert backlog.publish([(A, batch([0, 2, 4])), (B, batch([1, 3, 4, 4]))], 5)
    assert not backlog.full
    assert not backlog.publish([(A, batch([6]))], 10)
    assert backlog.full
    assert backlog.published == 7
    backlog.acknowledge({A: 3}, 0)
    assert not backlog.publish([(A, batch([6]))], 10), "full once is full for this trial"


def test_a_cancelled_stream_that_is_read_again_in_time_is_no_drop() -> None:
    backlog = filled()
    loan, _ = backlog.lend(A, 0, 5)
    backlog.cancelled(loan, SECOND)
    backlog.lend(A, 0, 3)
    assert backlog.settle(60 * SECOND) == 0


def test_a_cancelled_stream_that_nobody_reads_again_is_a_drop() -> None:
    backlog = filled()
    loan, _ = backlog.lend(A, 0, 5)
    backlog.lend(B, 0, 5)
    backlog.cancelled(loan, SECOND)
    assert backlog.settle(11 * SECOND) == 0
    assert backlog.settle(11 * SECOND + 1) == 1
    assert backlog.drops[0].lane == A


def test_a_cancelled_stream_whose_range_another_attempt_has_or_ends_is_no_drop() -> None:
    backlog = filled()
    loser, _ = backlog.lend(A, 0, 5)
    backlog.lend(A, 0, 5)
    backlog.cancelled(loser, SECOND)
    alone, _ = backlog.lend(B, 0, 5)
    backlog.cancelled(alone, SECOND)
    backlog.acknowledge({B: 5}, 2 * SECOND)
    assert backlog.settle(60 * SECOND) == 0


def test_a_lane_of_another_driver_is_refused() -> None:
    with pytest.raises(BacklogError, match="no partition 7 of purchases"):
        filled().lend(Lane("purchases", 7), 0, 1)


TICKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)


@settings(deadline=None)
@given(TICKS, st.data())
def test_any_history_keeps_the_books_balanced_and_every_event_once(
    ticks: list[tuple[int, int]], data: st.DataObject
) -> None:
    backlog, position = Backlog([A, B]), {A: 0, B: 0}
    seen: dict[Lane, list[int]] = {A: [], B: []}
    made = {A: 0, B: 0}
    for tick, counts in enumerate(ticks):
        parts = []
        for lane, count in zip((A, B), counts, strict=True):
            parts.append((lane, batch([tick * 10 + i for i in range(count)], made[lane])))
            made[lane] += count
        assert backlog.publish(parts, tick * 10 + 10)
        if data.draw(st.booleans()):
            _, cut = backlog.cut(data.draw(st.integers(0, tick * 10 + 10)))
            for lane, stop in cut.items():
                seen[lane] += numbers(backlog.lend(lane, position[lane], max(stop, position[lane]))[1])
                position[lane] = max(stop, position[lane])
            backlog.acknowledge(position, tick)
        assert backlog.published == sum(made.values())
        assert backlog.served == backlog.acknowledged == sum(position.values())
        assert backlog.reread == 0
    for lane in (A, B):
        assert seen[lane] == list(range(position[lane]))
    backlog.acknowledge(made, 0)
    assert (backlog.lag, backlog.held_bytes) == (0, 0)


def test_what_was_acknowledged_before_the_last_time_is_answered() -> None:
    backlog = filled()
    answered = []
    for offsets in ({A: 1}, {A: 3, B: 2}, {A: 3}, {A: 5, B: 5}):  # the third says nothing new
        backlog.acknowledge(offsets, SECOND)
        answered.append(backlog.answered(2))
    assert answered == [0, 1, 1, 5]
