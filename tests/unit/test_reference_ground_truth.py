"""The truth of the reference engine's log: its capacity, whatever pauses it had and made good."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from streamgauge.engines.reference.ground_truth import BATCH, GroundTruth
from streamgauge.engines.reference.schedule import Schedule
from streamgauge.model.units import SECOND

MILLI = 1_000_000
CAPACITY = 200_000.0
LENGTH = 8 * SECOND
Arrived = Callable[[int], float]


def overload(now: int) -> float:
    """Events that have come until now, 30 % more than can be done, until the load ends."""
    return 1.3 * CAPACITY * min(now, LENGTH) / SECOND


def log(
    arrived: Arrived = overload,
    pauses: Mapping[int, int] | None = None,
    *,
    until: int = LENGTH,
    speed: float = 5.0,
    interval: int = 0,
) -> GroundTruth:
    """What an engine writes down that works by its schedule, if the machine holds it up at these moments so long.

    ``speed`` is that of its real work, in shares of the capacity: below 1 it cannot keep its schedule.
    """
    schedule, held = Schedule(CAPACITY, interval), sorted((pauses or {}).items())
    rows: list[tuple[int, ...]] = []
    now, done = 3 * MILLI, 0
    while now < until:
        took, there = now, int(arrived(now)) - done
        events = min(there, schedule.step or there)
        saturated = schedule.busy
        finish = schedule.take(events, took, there - events)
        now = max(took + round(events * SECOND / (CAPACITY * speed)), finish)
        while held and held[0][0] <= now:
            now += held.pop(0)[1]
        now += 100_000  # a sleep ends late
        if events:
            done += events
            rows.append((took, finish, now, int(saturated), 0, events, done))
        if interval:
            now = max(now, schedule.trigger(took))
        elif not schedule.busy:
            now += 3 * MILLI
    return GroundTruth(dict(zip(BATCH.names, np.array(rows).T, strict=True)), {})


def first_saturated(truth: GroundTruth) -> int:
    """When the batch is worked on after which it never again waits for events."""
    return int(truth.batches["took_ns"][np.flatnonzero(truth.batches["saturated"])[0] - 1]) + MILLI


def stretches(truth: GroundTruth) -> int:
    """How often it became saturated."""
    return int((np.diff(truth.batches["saturated"]) > 0).sum())


def test_an_undisturbed_engine_has_its_capacity() -> None:
    assert log().capacity() == pytest.approx(CAPACITY, rel=1e-4)


@pytest.mark.parametrize("length", [50 * MILLI, 390 * MILLI])
@pytest.mark.parametrize("moment", ["the first", 1 * SECOND, 4 * SECOND, LENGTH - 600 * MILLI, LENGTH - 60 * MILLI])
def test_a_pause_and_the_catching_up_after_it_cancel_wherever_they_are(moment: int | str, length: int) -> None:
    at = first_saturated(log()) if isinstance(moment, str) else moment
    paused = log(pauses={at: length})
    late = paused.batches["released_ns"] - paused.batches["finish_ns"]
    assert late.max() >= length
    assert paused.capacity() == pytest.approx(CAPACITY, rel=2e-3)


def test_many_pauses_cancel_too() -> None:
    random = np.random.default_rng(4)
    pauses = dict(
        zip(random.integers(0, LENGTH, 40).tolist(), random.integers(0, 60 * MILLI, 40).tolist(), strict=True)
    )
    assert log(pauses=pauses).capacity() == pytest.approx(CAPACITY, rel=2e-3)


def test_micro_batches_have_the_capacity_too() -> None:
    assert log(interval=200 * MILLI).capacity() == pytest.approx(CAPACITY, rel=1e-3)
    assert log(interval=200 * MILLI, pauses={SECOND: 300 * MILLI}).capacity() == pytest.approx(CAPACITY, rel=5e-3)


def bursts(now: int) -> float:
    """A second of overload, a second of next to nothing, and so on."""
    rounds, rest = divmod(now, 2 * SECOND)
    return CAPACITY * (rounds * 1.4 + (1.3 * rest if rest < SECOND else 1.3 * SECOND + 0.1 * (rest - SECOND)) / SECOND)


@pytest.mark.parametrize("pauses", [{}, {2_200 * MILLI: 100 * MILLI, 5_500 * MILLI: 200 * MILLI}])
def test_idle_time_between_is_not_counted(pauses: dict[int, int]) -> None:
    truth = log(bursts, pauses)
    assert stretches(truth) >= 4
    assert truth.capacity() == pytest.approx(CAPACITY, rel=0.01)


def test_a_short_burst_after_the_load_changes_nothing_although_it_ends_before_a_pause_is_made_good() -> None:
    def with_a_tail(now: int) -> float:
        return 1.3 * CAPACITY * min(now, 3 * SECOND) / SECOND + (CAPACITY * 0.2 if now > 7 * SECOND else 0.0)

    begins = 7 * SECOND + 5 * MILLI
    truth = log(with_a_tail, {begins: 300 * MILLI})
    assert stretches(truth) == 2
    assert truth.capacity() == pytest.approx(CAPACITY, rel=0.01)


@pytest.mark.parametrize("speed", [0.98, 0.9, 0.5])
def test_an_engine_that_cannot_do_what_it_should_is_as_slow_as_it_is(speed: float) -> None:
    assert log(speed=speed).capacity() == pytest.approx(CAPACITY * speed, rel=0.01)
    paused = log(speed=speed, pauses={2 * SECOND: 200 * MILLI}).capacity()
    assert paused == pytest.approx(CAPACITY * speed * (1 - 0.2 / 8), rel=0.01), "it has no speed to make it good"


def test_a_stall_that_cannot_be_caught_up_is_in_the_expected_times() -> None:
    truth = log(pauses={3 * SECOND: 2 * SECOND}, until=LENGTH)
    assert truth.capacity() == pytest.approx(CAPACITY * 6 / 8, rel=0.01)


def test_an_engine_in_which_nothing_ever_waited_shows_no_capacity() -> None:
    assert log(lambda now: 0.5 * CAPACITY * now / SECOND).capacity() is None
