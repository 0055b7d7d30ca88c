"""What a driver on Kafka keeps: counts of events that the broker holds."""

import numpy as np
import pytest

from streamgauge.transports.kafka.client.producer import Part
from streamgauge.transports.kafka.ledger import Ledger, Payload
from streamgauge.transports.ledger import BacklogError, Lane

A, B = Lane("purchases", 0), Lane("purchases", 1)


def rows(count: int) -> Payload:
    """So many events of four bytes each."""
    return Payload(Part(None, np.zeros((count, 4), np.uint8), np.arange(count, dtype=np.int64)))


def ledger(ticks: int = 3, **bounds: int) -> Ledger:
    """Ticks of 10 µs, ten events each in A and five in B, none of them acknowledged by the broker."""
    made = Ledger([A, B], **bounds)
    for tick in range(ticks):
        assert made.enter([(A, rows(10)), (B, rows(5))], 10 * (tick + 1))
    return made


def test_published_is_what_the_broker_has_acknowledged() -> None:
    books = ledger()
    assert (books.handed, books.published, books.lag, books.pending) == (45, 0, 0, 45)
    books.confirm({A: 12, B: 5})
    assert (books.published, books.lag) == (17, 17)
    books.confirm({A: 12, B: 5})  # said again
    assert books.published == 17


def test_a_cut_is_the_end_of_the_last_tick_that_the_broker_has_in_every_lane() -> None:
    books = ledger()
    assert books.cut() == (None, {A: 0, B: 0})
    books.confirm({A: 30, B: 12})
    assert books.cut() == (20, {A: 20, B: 10})
    books.confirm({A: 30, B: 15})
    assert books.cut() == (30, {A: 30, B: 15})


def test_a_cut_at_a_due_time_is_at_the_end_of_the_tick_before_it() -> None:
    books = ledger()
    books.confirm({A: 30, B: 15})
    assert books.cut(20) == (20, {A: 20, B: 10})
    assert books.cut(25) == (20, {A: 20, B: 10}), "of the tick until 30 nobody knows what is due before 25"
    assert books.cut(5) == (None, {A: 0, B: 0})
    with pytest.raises(BacklogError, match="until 30 µs only"):
        books.cut(31)


def test_a_lane_without_events_in_a_tick_is_cut_where_it_ends() -> None:
    books = Ledger([A, B])
    books.enter([(A, rows(10))], 10)
    books.enter([(A, rows(10)), (B, rows(1))], 20)
    books.confirm({A: 20, B: 1})
    assert books.cut(10) == (10, {A: 10, B: 0})
    assert books.cut(20) == (20, {A: 20, B: 1})


def test_a_cut_of_the_most_events_is_at_the_end_of_a_whole_tick() -> None:
    books = ledger()
    books.confirm({A: 30, B: 15})
    assert books.due_of(45) is None
    assert books.due_of(44) == 20
    assert books.due_of(1) == 10  # at least one tick


def test_what_is_acknowledged_is_no_lag_and_no_weight_any_more() -> None:
    books = ledger()
    books.confirm({A: 30, B: 15})
    ack = books.acknowledge({A: 20, B: 10}, 7)
    assert (ack.time_ns, ack.published, ack.acknowledged, ack.lag) == (7, 45, 30, 15)
    assert books.offsets() == {A: (20, 20, 30), B: (10, 10, 15)}
    assert books.held_bytes == 15 * 4
    assert books.take_acks() == [ack]


def test_who_has_read_an_event_knows_sooner_than_the_driver_that_it_is_in_the_log() -> None:
    books = ledger()
    assert books.acknowledge({A: 10, B: 5}, 1).lag == 0
    assert (books.published, books.until_us) == (15, 10)
    books.confirm({A: 0, B: 0})  # the broker's word comes later
    assert books.published == 15
    with pytest.raises(BacklogError, match="was never sent: 30 is the end"):
        books.acknowledge({A: 31}, 2)


def test_nothing_goes_once_a_bound_would_be_passed() -> None:
    books = ledger(bound_events=50)
    assert not books.enter([(A, rows(6))], 40)
    assert books.full
    assert (books.handed, books.last_us) == (45, 30)
    assert not ledger(bound_bytes=45 * 4 + 3).enter([(A, rows(1))], 40)


def test_more_than_was_sent_cannot_be_acknowledged_by_the_broker() -> None:
    with pytest.raises(BacklogError, match=r"31 events .* were acknowledged, and 30 were sent"):
        ledger().confirm({A: 31})


def test_a_payload_is_cut_without_copying() -> None:
    whole = rows(10)
    part = whole.slice(2, 3)
    assert part.num_rows == 3
    assert part.part.due_us.tolist() == [2, 3, 4]
    assert part.part.values.base is not None


def test_case_2_lag_counts_from_the_plan_so_that_what_waits_in_the_producer_counts() -> None:
    books = ledger()
    books.planned = {5: 100}.__getitem__
    books.confirm({A: 10, B: 5})
    ack = books.acknowledge({A: 10, B: 5}, 5)
    assert (ack.published, ack.acknowledged, ack.lag) == (15, 15, 85), "30 wait in the producer, 55 in the generator"
    assert books.pending == 30, "the bound of memory is on what was handed over and not acknowledged"


def test_case_9_the_queue_is_what_waits_to_be_taken_and_its_bound_what_is_not_acknowledged() -> None:
    books = ledger(bound_events=45)
    books.confirm({A: 30, B: 15})
    books.take({A: 30, B: 15})
    assert (books.longest, books.waiting, books.lag) == (45, 0, 45)
    assert not books.enter([(A, rows(1))], 40), "nothing is acknowledged, so the memory is full"


def test_case_17_partitions_are_apart_by_what_one_has_and_another_lacks() -> None:
    books = ledger()
    books.confirm({A: 10, B: 5})
    assert books.skew_us == 0
    books.confirm({A: 30, B: 5})
    assert books.skew_us == 20
    books.skew_us = 0
    books.confirm({A: 30, B: 15})
    assert books.skew_us == 0
