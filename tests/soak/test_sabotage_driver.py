"""Faults of the load driver's side under real load, at half and at 97 % of what the system under test can do.

Whatever the driver, its broker or its core did must not be counted against the system: INVALID with the culprit's name,
or, where the load was held all the same, SUSTAINED.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka_broker import needs_kafka
from kafka_trial import choice_of, local_kafka
from real_trial import PLACEMENT, Played, hogs, play, stop_for, trial

from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import BROKER
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available
from streamgauge.transports.kafka.open_kafka import OpenKafka

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores"),
]
TIMES = range(int(os.environ.get("STREAMGAUGE_SABOTAGE", "5")))
LOADS = (0.5, 0.97)
"""Of the capacity of the reference engine."""
CAPACITY = 400_000.0
KAFKA_CAPACITY = 200_000.0
WARM, JUDGED = 3, 12


def long(share: float, capacity: float, number: int = 1, transport: TransportChoice | None = None) -> Trial:
    """A trial with windows of a second."""
    return trial(
        share * capacity,
        {"capacity": f"{capacity:.0f}/s"},
        number=number,
        warmup=WARM * SECOND,
        warmup_limit=WARM * SECOND,
        duration=JUDGED * SECOND,
        limit=JUDGED * SECOND,
        transport=transport or TransportChoice(),
    )


@pytest.fixture(scope="module")
def kafka() -> Iterator[OpenKafka]:
    with local_kafka("sabotage") as found:
        yield found


@needs_kafka
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("share", LOADS)
def test_a_broker_that_is_stopped_for_three_seconds_makes_a_trial_invalid_and_is_named(
    share: float, time: int, tmp_path: Path, kafka: OpenKafka
) -> None:
    asked = long(share, KAFKA_CAPACITY, 1 + time + 100 * round(100 * share), choice_of(kafka.options))
    stop: dict[int, Callable[[], object]] = {6: lambda: stop_for(kafka.processes()[BROKER][0].pid, 3.0)}
    played = play(asked, tmp_path / "trial", stop, transport=kafka)
    print(_line("broker stopped", share, played))
    assert played.verdict.kind is VerdictKind.INVALID, played
    assert played.measured.append_delay_worst > 2 * SECOND, "the events of the standstill are counted"
    played.is_(VerdictKind.INVALID, "delay until the broker appended events")


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("share", LOADS)
def test_other_work_on_the_drivers_core_is_never_counted_against_the_system(
    share: float, time: int, tmp_path: Path
) -> None:
    with hogs(PLACEMENT.driver[0], 2):
        played = play(long(share, CAPACITY), tmp_path / "trial")
    print(_line("hogs on the driver's core", share, played))
    assert played.verdict.kind in (VerdictKind.INVALID, VerdictKind.SUSTAINED), played
    if played.verdict.kind is VerdictKind.INVALID:
        words = ("send delay", "the load driver waited for a CPU", "of the planned events", "got no CPU for")
        assert any(word in played.reasons for word in words), played


def _line(what: str, share: float, played: Played) -> str:
    m = played.measured
    return (
        f"{what} at {share:g}: {played.verdict.kind}, send delay p99 {m.schedule_lag_p99 / 1e6:.1f} ms, "
        f"append delay p99 {m.append_delay_p99 / 1e6:.1f} ms"
    )
