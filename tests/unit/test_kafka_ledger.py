"""What a load driver on Kafka keeps: counts of events that the broker has."""

import gc
import tracemalloc

import numpy as np
import pytest

from streamgauge.model.streams import StreamPartition
from streamgauge.transports.kafka.client.producer import RecordColumns
from streamgauge.transports.kafka.ledger import EncodedEvents, KafkaLedger
from streamgauge.transports.ledger import Confirmation, LedgerError

A, B = StreamPartition("purchases", 0), StreamPartition("purchases", 1)


def rows(count: int) -> EncodedEvents:
    """So many events of four bytes each."""
    return EncodedEvents(RecordColumns(None, np.zeros((count, 4), np.uint8), np.arange(count, dtype=np.int64)))


def sent(intervals: int = 3, **bounds: int) -> KafkaLedger:
    """Send intervals of 10 µs, ten events each in A and five in B, none of them confirmed by the broker."""
    made = KafkaLedger([A, B], **bounds)
    for interval in range(intervals):
        assert made.record_sent([(A, rows(10)), (B, rows(5))], 10 * (interval + 1))
    return made


def test_published_is_what_the_broker_has_confirmed() -> None:
    ledger = sent()
    assert (ledger.sent, ledger.published, ledger.lag, ledger.unacknowledged) == (45, 0, 0, 45)
    ledger.record_appended({A: 12, B: 5})
    assert (ledger.published, ledger.lag) == (17, 17)
    ledger.record_appended({A: 12, B: 5})  # a repetition
    assert ledger.published == 17


def test_published_until_is_the_end_of_the_last_interval_that_the_broker_has_in_every_partition() -> None:
    ledger = sent()
    assert ledger.published_until_us is None
    ledger.record_appended({A: 30, B: 12})
    assert ledger.published_until_us == 20
    ledger.record_appended({A: 30, B: 15})
    assert ledger.published_until_us == 30


def test_a_partition_without_events_in_an_interval_is_not_waited_for() -> None:
    ledger = KafkaLedger([A, B])
    ledger.record_sent([(A, rows(10))], 10)
    ledger.record_sent([(A, rows(10)), (B, rows(1))], 20)
    ledger.record_appended({A: 10, B: 0})
    assert ledger.published_until_us == 10
    ledger.record_appended({A: 20, B: 1})
    assert ledger.published_until_us == 20


def test_what_is_acknowledged_is_no_lag_and_no_weight_any_more() -> None:
    ledger = sent()
    ledger.record_appended({A: 30, B: 15})
    ack = ledger.acknowledge({A: 20, B: 10}, 7)
    assert (ack.time_ns, ack.published, ack.acknowledged, ack.lag) == (7, 45, 30, 15)
    counts = [ledger.partition(each) for each in (A, B)]
    assert [(c.acknowledged, c.served, c.published) for c in counts] == [(20, 20, 30), (10, 10, 15)]
    assert ledger.buffered_bytes == 15 * 4
    assert ledger.take_acknowledgements() == [ack]


def test_an_event_that_was_read_is_in_the_log_even_if_the_broker_has_not_confirmed_it() -> None:
    ledger = sent()
    assert ledger.acknowledge({A: 10, B: 5}, 1).lag == 0
    assert (ledger.published, ledger.published_until_us) == (15, 10)
    ledger.record_appended({A: 0, B: 0})  # the confirmation comes later
    assert ledger.published == 15
    with pytest.raises(LedgerError, match="was never sent: 30 is the end"):
        ledger.acknowledge({A: 31}, 2)


def test_nothing_is_sent_once_a_bound_would_be_exceeded() -> None:
    ledger = sent(bound_events=50)
    assert not ledger.record_sent([(A, rows(6))], 40)
    assert ledger.full
    assert (ledger.sent, ledger.sent_until_us) == (45, 30)
    assert not sent(bound_bytes=45 * 4 + 3).record_sent([(A, rows(1))], 40)


def test_more_than_was_sent_cannot_be_confirmed_by_the_broker() -> None:
    with pytest.raises(LedgerError, match=r"31 events .* were confirmed, and 30 were sent"):
        sent().record_appended({A: 31})


def test_encoded_events_are_sliced_without_copying() -> None:
    whole = rows(10)
    part = whole.slice(2, 3)
    assert part.num_rows == 3
    assert part.records.due_us.tolist() == [2, 3, 4]
    assert part.records.values.base is not None


def test_case_2_lag_counts_from_the_plan_so_that_what_waits_in_the_producer_counts() -> None:
    ledger = sent()
    ledger.planned = {5: 100}.__getitem__
    ledger.record_appended({A: 10, B: 5})
    ack = ledger.acknowledge({A: 10, B: 5}, 5)
    assert (ack.published, ack.acknowledged, ack.lag) == (15, 15, 85), "30 wait in the producer, 55 in the generator"
    assert ledger.unacknowledged == 30, "the bound of memory is on what was handed over and not acknowledged"


def test_case_9_the_queue_is_what_waits_to_be_read_and_its_bound_what_is_not_acknowledged() -> None:
    ledger = sent(bound_events=45)
    ledger.record_appended({A: 30, B: 15})
    ledger.start_processing({A: 30, B: 15})
    assert (ledger.longest, ledger.waiting, ledger.lag) == (45, 0, 45)
    assert not ledger.record_sent([(A, rows(1))], 40), "nothing is acknowledged, so the memory is full"


def test_case_17_partitions_are_apart_by_what_one_has_and_another_lacks() -> None:
    ledger = sent()
    ledger.record_appended({A: 10, B: 5})
    assert ledger.skew_us == 0
    ledger.record_appended({A: 30, B: 5})
    assert ledger.skew_us == 20
    ledger.skew_us = 0
    ledger.record_appended({A: 30, B: 15})
    assert ledger.skew_us == 0


def kept_bytes(ledger: KafkaLedger, intervals: range) -> int:
    """The bytes that the ledger keeps after these send intervals, all sent, confirmed, read and written down."""
    for interval in intervals:
        end = {A: 10 * (interval + 1), B: 5 * (interval + 1)}
        assert ledger.record_sent([(A, rows(10)), (B, rows(5))], 10 * (interval + 1))
        ledger.record_appended(end)
        ledger.confirmations.append(Confirmation(interval, interval, interval, 15))
        ledger.start_processing(end)
        ledger.acknowledge(end, interval)
        if interval % 100 == 99:  # a second is closed
            ledger.take_confirmations()
            ledger.take_acknowledgements(interval)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_a_ledger_keeps_nothing_of_intervals_that_are_confirmed_and_acknowledged() -> None:
    tracemalloc.start()
    try:
        ledger = KafkaLedger([A, B])
        ledger.planned = {n: 15 * n for n in range(6_000)}.__getitem__
        before = kept_bytes(ledger, range(2_000))
        after = kept_bytes(ledger, range(2_000, 6_000))
    finally:
        tracemalloc.stop()
    assert (ledger.sent, ledger.lag, ledger.buffered_bytes) == (90_000, 0, 0)
    assert after - before < 4_000, "less than one byte per send interval"


def test_intervals_that_the_broker_has_not_confirmed_are_kept_until_it_has() -> None:
    ledger = sent(100)
    ledger.acknowledge({A: 0, B: 0}, 1)
    assert [len(ledger.partition(each).starts) for each in (A, B)] == [100, 100]
    ledger.record_appended({A: 1_000, B: 500})
    ledger.acknowledge({A: 1_000, B: 500}, 2)
    assert [len(ledger.partition(each).starts) for each in (A, B)] == [0, 0]
    assert ledger.published_until_us == 1_000
