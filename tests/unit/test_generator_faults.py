"""A generator or a broker that does not follow the plan is judged for what it can spoil."""

from dataclasses import replace

import numpy as np
import pytest
from judge_samples import CHECKED, LAG, LOAD, latencies, objective, recording, trial, walk

from streamgauge.judge import decide, measure
from streamgauge.judge.generator import max_delay
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Account, Kind, Latencies
from streamgauge.model.trial import Recording
from streamgauge.model.units import SECOND

KAFKA = replace(trial(), transport=TransportChoice("kafka", {}, broker=True, exact_offsets=False))
MILLI = SECOND // 1000


def judge(happened: Recording, *objectives: Objective) -> Verdict:
    return decide(happened, measure(happened), objectives or (LAG,))


def delays(kind: Kind, late: list[tuple[int, int, int]], length: int = 60) -> dict[Kind, Latencies]:
    """All events in time (1 ms), but for those of ``late``: second, nanoseconds, events."""
    return {kind: latencies([*((s, MILLI, int(LOAD)) for s in range(length)), *late])}


def test_case_12_one_late_second_of_sixty_does_not_make_the_p99_late() -> None:
    """The p99 is over all events: half a second of events that were 200 ms late are 0.8 % of a minute."""
    happened = recording(kinds=delays("send-delay", [(7, 200 * MILLI, int(LOAD / 2))]), schedule_lag=200e6)
    assert measure(happened).schedule_lag_p99 < 2 * MILLI
    assert judge(happened).kind is VerdictKind.SUSTAINED
    more = recording(kinds=delays("send-delay", [(7, 200 * MILLI, int(LOAD))]), schedule_lag=200e6)
    verdict = judge(more)
    assert verdict.kind is VerdictKind.INVALID
    assert "p99 send delay 200.1 ms (limit 150 ms for lag-trend <= 1%)" in verdict.reasons[0]


def test_case_12_a_standstill_keeps_its_own_bound() -> None:
    verdict = judge(recording(kinds=delays("send-delay", [(7, 300 * MILLI, 3000)]), schedule_lag=300e6))
    assert verdict.kind is VerdictKind.INVALID
    assert verdict.reasons[0].startswith("longest send delay 300 ms (limit 250 ms): the load generator paused")


@pytest.mark.parametrize(
    ("objectives", "seconds", "bound"),
    [
        ((), 30, 50),
        ((LAG,), 2, 50),
        ((LAG,), 30, 75),
        ((LAG,), 60, 150),
        ((LAG,), 600, 250),
        ((LAG, objective("event-time", "<", 0.4 * SECOND, statistic="p99")), 60, 40),
        ((objective("event-time", "<", 0.02 * SECOND, statistic="p50"),), 60, 5),
        ((objective("lag-trend", "<=", 2_000),), 30, 150),
    ],
)
def test_case_12_the_bound_on_lateness_follows_from_what_it_can_spoil(
    objectives: tuple[Objective, ...], seconds: int, bound: int
) -> None:
    assert max_delay(objectives, LOAD, seconds)[0] == pytest.approx(bound * MILLI)


def test_case_2_a_broker_that_stood_still_makes_the_trial_invalid_and_is_named() -> None:
    """Three seconds of SIGSTOP: the generator sent in time, the broker appended a tenth of the events late."""
    late = [(s, (13 - s) * SECOND, int(LOAD)) for s in (10, 11, 12)]
    happened = recording(of=KAFKA, kinds=delays("send-delay", []) | delays("append-delay", late))
    verdict = judge(happened)
    assert verdict.kind is VerdictKind.INVALID
    assert verdict.reasons[0].startswith("p99 delay until the broker appended events 3 s (limit 150 ms")
    assert measure(happened).append_delay_worst >= 3 * SECOND
    held_up = delays("send-delay", [(13, 210 * MILLI, int(LOAD))])
    both = judge(recording(of=KAFKA, kinds=held_up | delays("append-delay", late)))
    assert "the broker appended events 3 s" in both.reasons[0], "it held the generator up, and is named first"


def test_case_2_a_broker_that_confirms_too_few_events_is_named() -> None:
    verdict = judge(recording(of=KAFKA, kinds=delays("send-delay", []), published=0.98 * LOAD))
    assert verdict.kind is VerdictKind.INVALID
    assert verdict.reasons[0].startswith("the broker confirmed 98.00 % of the planned events")
    late = delays("send-delay", [(s, 400 * MILLI, int(LOAD)) for s in range(9)])
    assert "the load generator sent" in judge(recording(of=KAFKA, kinds=late, published=0.98 * LOAD)).reasons[0]


def outputs(nanoseconds: float) -> dict[Kind, Latencies]:
    same = latencies([(s, int(nanoseconds), 10) for s in range(60)])
    return {"event-time": same, "event-time-windows": same}


def starving(who: str, latency: float) -> Recording:
    """A process that was not woken for 240 ms in every second."""
    pauses = {"hiccup": 0.0, "collector_hiccup": 0.0, who: 240e6}
    hiccup, collector = pauses["hiccup"], pauses["collector_hiccup"]
    return recording(kinds=outputs(latency), firings=10, hiccup=hiccup, collector_hiccup=collector)


@pytest.mark.parametrize("who", ["hiccup", "collector_hiccup"])
def test_case_17_a_latency_missed_by_less_than_a_starved_process_explains_is_invalid(who: str) -> None:
    limit = objective("event-time", "<", SECOND, statistic="p50")
    starved = judge(starving(who, 1.2 * SECOND), limit)
    assert starved.kind is VerdictKind.INVALID
    assert "got no CPU for 240 ms, and event-time p50 < 1e+09 was missed by only 20" in starved.reasons[0]
    assert judge(starving(who, 1.5 * SECOND), limit).holds is False
    assert judge(starving(who, 0.9 * SECOND), limit).holds is True


def test_case_17_a_collector_on_kafka_stamps_nothing() -> None:
    limit = objective("event-time", "<", SECOND, statistic="p50")
    happened = recording(of=KAFKA, kinds=outputs(1.2 * SECOND), firings=10, collector_hiccup=240e6)
    assert judge(happened, limit).kind is VerdictKind.OVERLOADED


def test_case_17_a_clear_overload_is_not_excused_by_a_hiccup() -> None:
    assert judge(recording(walk(0.05), hiccup=200e6)).kind is VerdictKind.OVERLOADED


@pytest.mark.parametrize(("watermark", "kind"), [(200, VerdictKind.INVALID), (600, VerdictKind.FAILED)])
def test_case_17_partitions_further_apart_than_the_watermark_excuse_lost_rows(
    watermark: int, kind: VerdictKind
) -> None:
    of = replace(KAFKA, params={"watermark": watermark * MILLI})
    happened = recording(of=of, account=replace(CHECKED, lost=3), skew=500e6)
    verdict = judge(happened)
    assert verdict.kind is kind
    assert verdict.stops_run is (kind is VerdictKind.FAILED)
    if kind is VerdictKind.INVALID:
        assert "partitions were 500 ms of event time apart (watermark 200 ms)" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("reported", "kind"),
    [(None, VerdictKind.FAILED), (200 * MILLI, VerdictKind.INVALID), (900 * MILLI, VerdictKind.FAILED)],
)
def test_case_17_a_function_with_a_smaller_watermark_than_the_workload_may_drop_events_sooner(
    reported: int | None, kind: VerdictKind
) -> None:
    """The partitions were 500 ms apart. The workload has a watermark of 600 ms, the query reports its own."""
    of = replace(KAFKA, params={"watermark": 600 * MILLI})
    happened = recording(of=of, account=replace(CHECKED, lost=3), skew=500e6)
    verdict = judge(replace(happened, outcome=replace(happened.outcome, watermark=reported)))
    assert verdict.kind is kind
    if kind is VerdictKind.INVALID:
        assert "500 ms of event time apart (watermark of the query 200 ms)" in verdict.reasons[0]
        assert "set the watermark of your function to more than 500ms" in verdict.reasons[0]


def test_case_17_partitions_that_are_apart_do_not_excuse_a_crash() -> None:
    of = replace(KAFKA, params={"watermark": 200 * MILLI})
    happened = recording(of=of, account=replace(CHECKED, lost=3), skew=500e6, ending="crashed")
    assert judge(happened).kind is VerdictKind.FAILED


def test_case_17_rows_that_were_lost_on_the_queue_are_not_excused() -> None:
    account = Account(expected=10_000, observed=9_999, lost=1, checked=True)
    assert judge(recording(account=account, skew=500e6)).kind is VerdictKind.FAILED
    assert np.isclose(measure(recording(skew=500e6)).skew, 500e6)
