"""Acknowledgements of a ledger: each has its own moment, and its lag is what was planned by then and is not done."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from streamgauge.model.profile import constant
from streamgauge.model.streams import StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.producer import RecordColumns
from streamgauge.transports.kafka.ledger import EncodedEvents, KafkaLedger
from streamgauge.transports.ledger import LedgerError, offsets_from_json, offsets_to_json, only_of

A, B = StreamPartition("purchases", 0), StreamPartition("purchases", 1)
MILLI = 1_000_000
RATE = 1_000
"""Events per second, over both partitions."""


def rows(count: int) -> EncodedEvents:
    """So many events of four bytes each."""
    return EncodedEvents(RecordColumns(None, np.zeros((count, 4), np.uint8), np.arange(count, dtype=np.int64)))


PLAN = constant(float(RATE)).plan(40_000 * SECOND)


def planned(elapsed_ns: int) -> int:
    """Events that are due before a moment."""
    return int(PLAN.count(elapsed_ns))


@pytest.fixture
def ledger() -> KafkaLedger:
    """Ten seconds of load that the broker has confirmed, with the plan of the load driver."""
    made = KafkaLedger([A, B])
    made.planned = planned
    for interval in range(100):
        assert made.record_sent([(A, rows(50)), (B, rows(50))], (interval + 1) * 100_000)
    made.record_appended({A: 5_000, B: 5_000})
    return made


def test_the_lag_is_what_was_planned_at_the_moment_of_the_acknowledgement(ledger: KafkaLedger) -> None:
    entry = ledger.acknowledge({A: 3_000, B: 3_000}, 7 * SECOND)
    assert (entry.time_ns, entry.acknowledged, entry.lag) == (7 * SECOND, 6_000, 1_000)


@pytest.mark.parametrize("late_ns", [0, 40 * MILLI, 900 * MILLI])
def test_the_lag_does_not_depend_on_how_late_the_position_arrives(ledger: KafkaLedger, late_ns: int) -> None:
    """The load driver may receive a position up to one poll after it became true; meanwhile it sends more."""
    arrived = 7 * SECOND + late_ns
    entry = ledger.acknowledge({A: 3_000, B: 3_000}, 7 * SECOND)
    assert entry.lag == planned(7 * SECOND) - 6_000
    assert entry.lag == planned(arrived) - 6_000 - RATE * late_ns // SECOND


def test_a_system_that_is_ahead_of_the_plan_has_no_lag(ledger: KafkaLedger) -> None:
    """The system may have finished events of which the send interval began after its position became true."""
    assert ledger.acknowledge({A: 5_000, B: 5_000}, 9 * SECOND).lag == 0


def test_without_a_plan_the_lag_is_what_is_published_and_not_acknowledged(ledger: KafkaLedger) -> None:
    ledger.planned = None
    assert ledger.acknowledge({A: 3_000, B: 3_000}, 7 * SECOND).lag == 4_000


def test_an_acknowledgement_of_a_closed_second_counts_at_the_beginning_of_the_next_one(ledger: KafkaLedger) -> None:
    ledger.acknowledge({A: 2_000, B: 2_000}, 5 * SECOND + 1)
    assert [entry.time_ns for entry in ledger.take_acknowledgements(6 * SECOND)] == [5 * SECOND + 1]
    late = ledger.acknowledge({A: 2_500, B: 2_500}, 5 * SECOND + 999 * MILLI)
    assert late.time_ns == 6 * SECOND
    assert late.lag == planned(6 * SECOND) - 5_000, "the lag is that of the moment at which it counts"
    assert ledger.take_acknowledgements(7 * SECOND) == [late]


def test_a_second_once_closed_stays_closed(ledger: KafkaLedger) -> None:
    ledger.take_acknowledgements(6 * SECOND)
    ledger.take_acknowledgements(0)
    assert ledger.acknowledge({A: 100}, SECOND).time_ns == 6 * SECOND


def test_acknowledgements_are_taken_in_the_order_of_their_moments(ledger: KafkaLedger) -> None:
    ledger.acknowledge({A: 2_000}, 4 * SECOND + 20)
    ledger.acknowledge({B: 2_000}, 4 * SECOND + 10)
    assert [entry.time_ns - 4 * SECOND for entry in ledger.take_acknowledgements(5 * SECOND)] == [10, 20]
    assert ledger.take_acknowledgements(5 * SECOND) == []


def test_what_was_begun_is_not_acknowledged_and_counts_once(ledger: KafkaLedger) -> None:
    ledger.start_processing({A: 3_000, B: 1_000})
    ledger.start_processing({A: 2_000, B: 2_000})
    assert (ledger.served, ledger.waiting, ledger.acknowledged) == (5_000, 5_000, 0)
    ledger.acknowledge({A: 3_000, B: 2_500}, 6 * SECOND)
    assert ledger.served == 5_500, "what is finished was begun"


def test_a_position_beyond_what_was_sent_is_refused_and_changes_nothing(ledger: KafkaLedger) -> None:
    with pytest.raises(LedgerError, match="was never sent: 5000 is the end"):
        ledger.acknowledge({A: 10, B: 5_001}, 6 * SECOND)
    assert (ledger.acknowledged, ledger.take_acknowledgements()) == (0, [])


def test_a_stream_counts_as_far_as_no_partition_has_a_gap(ledger: KafkaLedger) -> None:
    ledger.acknowledge({A: 3_000, B: 10}, 7 * SECOND)
    counts = ledger.stream_counts(2)["purchases"]
    assert (counts.published, counts.acknowledged, counts.acknowledged_before_last) == (10_000, 21, 0)


def test_the_streams_of_a_trial_have_separate_counts() -> None:
    ads = StreamPartition("ads", 0)
    ledger = KafkaLedger([A, ads])
    ledger.record_sent([(A, rows(10)), (ads, rows(4))], 10)
    ledger.record_appended({A: 10, ads: 4})
    ledger.acknowledge({A: 7, ads: 2}, SECOND)
    found = {stream: (c.published, c.acknowledged) for stream, c in ledger.stream_counts(1).items()}
    assert found == {"purchases": (10, 7), "ads": (4, 2)}


def test_offsets_as_json_come_back_and_a_driver_takes_its_own() -> None:
    offsets = {A: 7, B: 0, StreamPartition("ads", 3): 1 << 40}
    assert offsets_from_json(offsets_to_json(offsets)) == offsets
    assert only_of([A, StreamPartition("ads", 1)], offsets) == {A: 7}


def in_use(work: Callable[[], None]) -> int:
    """Bytes of memory that are still in use after some work and were not before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_ten_hours_of_send_intervals_that_are_acknowledged_leave_no_memory_in_use() -> None:
    """The ledger of a load driver on Kafka once kept every send interval: 14 MB per hour at 100 of them per second.

    Here one interval stands for a second. What would be kept of each would show after 36,000 as well.
    """
    ledger, one = KafkaLedger([A, B]), rows(1)
    ledger.planned = planned

    def run(first: int, stop: int) -> None:
        for interval in range(first, stop):
            assert ledger.record_sent([(A, one), (B, one)], (interval + 1) * 1_000_000)
            ledger.record_appended({A: interval + 1, B: interval + 1})
            ledger.start_processing({A: interval + 1, B: interval + 1})
            ledger.acknowledge({A: interval, B: interval}, interval * SECOND)
            assert len(ledger.take_acknowledgements(interval * SECOND)) == 1
            ledger.take_confirmations()

    run(0, 100)
    assert in_use(lambda: run(100, 36_000)) < 20_000
    assert (ledger.unacknowledged, ledger.buffered_bytes) == (2, 8)
    assert all(len(ledger.partition(each).starts) == 1 for each in (A, B))
