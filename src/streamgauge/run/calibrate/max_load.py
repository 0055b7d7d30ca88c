"""How far the driver can be believed on this machine, in a given placement: its ceilings and its schedule lag.

Used by ``streamgauge calibrate`` and by the benches. Everything here runs the real processes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pyarrow import flight

from streamgauge.judge.generator import LEAST_ACHIEVED, MOST_SEND_DELAY
from streamgauge.model.calibration import CLIP
from streamgauge.model.profile import LoadProfile, constant
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, LaunchError, Process
from streamgauge.processes.placement import Placement
from streamgauge.run.driver.journals import Ints, p99
from streamgauge.run.driver.send_schedule import KAFKA_TICK, MILLI
from streamgauge.run.driver.specs import (
    CollectOrder,
    CollectorLine,
    DriveOrder,
    DriverLine,
    OppositeOrder,
    Tokens,
    collector_child,
    driver_child,
    opposite_child,
)
from streamgauge.store.durable import make_folder
from streamgauge.store.journal import read_rows
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

if TYPE_CHECKING:
    from streamgauge.transports.kafka.transport import Kafka

_LEAD = 200 * MILLI
_SETTLE = 1.0
_TAIL, _LAST_WORDS = 3, 3.0
"""Lines of a process that ended by itself, and seconds that it may take to end after it stopped answering."""
_FLAT_OUT_PLAN = 20e6  # events/s of event-time: 100,000 to a tick, over Kafka a tenth of it
SHARES = (CLIP, 0.6, 0.45, 0.3, 0.15)
"""Of the flat-out rate, highest first: where it is looked whether ticks are in time."""
SAFE_LAG = MOST_SEND_DELAY // 2
"""A probe is short and its machine quiet: only half of what a trial may have is safely within it."""
PROBE, CONFIRM = 3.0, 30.0
"""Seconds of a probe, and of the confirmation of the rate that it found: as long as a trial."""
_CONFIRMED = 2
"""How often a rate is confirmed at most: a calibration takes three minutes. If both were late, the rate that it ends
with is not confirmed, and the calibration says so."""


@dataclass(frozen=True, slots=True)
class ScheduleLag:
    """Actual − intended publication over all ticks after the first second, in nanoseconds."""

    rate: float
    achieved: float
    p50: int
    p99: int
    worst: int
    """The p99 of the worst second."""
    most: int
    ticks: int
    hiccup: int
    """Longest hiccup of the driver's process meanwhile."""
    append: int = 0
    """The p99 until the Kafka broker had appended events; 0 on the queue."""
    seconds: float = PROBE

    @property
    def timely(self) -> bool:
        """Whether a trial at this rate would be safely valid, as far as the generator and the broker go."""
        return max(self.p99, self.append) <= SAFE_LAG and self.achieved >= LEAST_ACHIEVED * self.rate


@contextmanager
def _driving(
    launcher: Launcher,
    folder: Path,
    where: Placement,
    profile: LoadProfile,
    *,
    kafka: "Kafka | None",
    flat_out: int = 0,
) -> Iterator[DriverLine]:
    """A driver under load with a consumer that does nothing; the line to it."""
    partitions = max(1, len(where.sut))
    update: dict[str, object] = {"flat_out": flat_out}
    if kafka is not None:
        update |= {"kafka": kafka.options.dumped(), "tick_ns": KAFKA_TICK}
    order = _order(launcher, folder, profile, partitions).model_copy(update=update)
    with (
        kafka.topics(0, order.profiles, partitions, where.driver) if kafka else nullcontext() as topics,
        _under_load(launcher, order, where, topics.ends if topics else None) as line,
    ):
        yield line


def _order(launcher: Launcher, folder: Path, profile: LoadProfile, partitions: int) -> DriveOrder:
    make_folder(folder)
    return DriveOrder(
        driver=0,
        endpoint=f"grpc+unix://{launcher.runtime}/{folder.name[-20:]}.sock",
        folder=folder,
        workload="windowed-aggregation",
        params=WindowedAggregationParams().model_dump(),
        seed=1,
        profiles={"purchases": profile},
        horizon_ns=600 * SECOND,
        partitions=partitions,
        mine=tuple(range(partitions)),
    )


@contextmanager
def _under_load(
    launcher: Launcher, order: DriveOrder, where: Placement, ends: KafkaEnds | None
) -> Iterator[DriverLine]:
    tokens, other = Tokens.new(), OppositeOrder(endpoints=(order.endpoint,), folder=order.folder)
    driver = launcher.start(driver_child(order, tokens, where.driver, ends), order.folder)
    consumer = launcher.start(opposite_child(other, tokens, where.sut, ends), order.folder)
    line, clock = DriverLine(order.endpoint, tokens), Clock()
    try:
        line.start(clock.monotonic_ns() + _LEAD, (clock.wall_ns() + _LEAD) // MILLI * MILLI)
        yield line
        line.stop()
        _still_there(consumer)
        consumer.stop()
        line.quit()
        driver.wait(10)
    except flight.FlightError as error:
        for process in (driver, consumer):
            _still_there(process, _LAST_WORDS)
        raise LaunchError(f"{driver.name} no longer responds: {error}") from error
    finally:
        line.close()
        consumer.stop()
        driver.stop()


def _still_there(process: Process, seconds: float = 0.0) -> None:
    """Raise with its last words if a process has ended by itself, or does so within these seconds."""
    code = process.wait(seconds)
    if code is not None:
        said = " / ".join(line for line in process.tail(_TAIL) if line != "ready")
        raise LaunchError(f"{process.name} ended while the maximum load was measured (exit code {code}): {said}")


def queue_ceiling(
    launcher: Launcher, folder: Path, where: Placement, seconds: float = 3.0, *, kafka: "Kafka | None" = None
) -> float:
    """Events per second from the generator through the queue, or the broker, to a consumer that does nothing."""
    plan = constant(_FLAT_OUT_PLAN if kafka is None else _FLAT_OUT_PLAN / 10)
    with _driving(launcher, folder, where, plan, kafka=kafka, flat_out=2_000_000) as line:
        time.sleep(_SETTLE)
        before = line.status()
        time.sleep(seconds)
        after = line.status()
    return float((after["acknowledged"] - before["acknowledged"]) * SECOND / (after["elapsed"] - before["elapsed"]))


def schedule_lag(
    launcher: Launcher,
    folder: Path,
    where: Placement,
    rate: float,
    seconds: float = 5.0,
    *,
    kafka: "Kafka | None" = None,
) -> ScheduleLag:
    """How late ticks are at this rate, while a consumer that does nothing reads along."""
    with _driving(launcher, folder, where, constant(rate), kafka=kafka) as line:
        line.end(round((seconds + _SETTLE) * SECOND))
        time.sleep(seconds + _SETTLE + _LEAD / SECOND + 0.2)
        line.status()
    ticks = read_rows(folder / "ticks-0")
    intended, actual = ticks["intended"].to_numpy(), ticks["actual"].to_numpy()
    judged = intended > _SETTLE * SECOND
    lag, second = (actual - intended)[judged], (intended[judged] - 1) // SECOND
    rows = read_rows(folder / "driver-0-seconds").to_pydict()
    achieved, append = _rate(actual[judged], ticks["count"].to_numpy()[judged]), 0
    if kafka is not None:
        table = read_rows(folder / "appends-0")
        told = {name: table[name].to_numpy() for name in table.schema.names}
        mine = told["intended"] > _SETTLE * SECOND
        achieved = _rate(told["confirmed"][mine], told["count"][mine])
        append = p99(np.repeat((told["appended"] - told["intended"])[mine], told["count"][mine]))
    return ScheduleLag(
        rate=rate,
        achieved=achieved,
        append=append,
        seconds=seconds,
        p50=int(np.median(lag)),
        p99=p99(lag),
        worst=max(p99(lag[second == one]) for one in np.unique(second)),
        most=int(lag.max()),
        ticks=len(lag),
        hiccup=max(rows["hiccup"]),
    )


def _rate(moments: Ints, count: Ints) -> float:
    """Events per second between the first and the last moment."""
    span = moments.max(initial=1) - moments.min(initial=10**18)
    first = count[moments == moments.min(initial=10**18)].sum()
    return float((count.sum() - first) * SECOND / max(1, span))


def timely_rates(flat_out: float, probe: Callable[[float, float], ScheduleLag]) -> list[ScheduleLag]:
    """Shares of the flat-out rate, from the highest down to the first at which events are safely in time.

    The flat-out rate alone says too much: close to it the generator has no idle time left to make events ahead. A probe
    takes a rate and seconds; what a short one found is confirmed over the length of a trial.
    """
    probes: list[ScheduleLag] = []
    for share in SHARES:
        probes.append(probe(share * flat_out, PROBE))
        if not probes[-1].timely:
            continue
        if sum(p.seconds == CONFIRM for p in probes) < _CONFIRMED:
            probes.append(probe(share * flat_out, CONFIRM))
        if probes[-1].timely:
            break
    return probes


def confirmed(probes: Sequence[ScheduleLag]) -> bool:
    """Whether events were in time at the rate that ``timely_rates`` ended with over the length of a trial."""
    return probes[-1].timely and probes[-1].seconds >= CONFIRM


def collector_ceiling(
    launcher: Launcher, folder: Path, where: Placement, seconds: float = 3.0, rows: int = 16_384
) -> float:
    """Output rows per second that the collector stamps, counts and keeps, with nothing left over at the end."""
    make_folder(folder)
    tokens, endpoint = Tokens.new(), f"grpc+unix://{launcher.runtime}/c{folder.name[-20:]}.sock"
    order = CollectOrder(endpoint=endpoint, folder=folder, firing="window_end")
    collector = launcher.start(collector_child(order, tokens, where.driver), folder)
    line, clock = CollectorLine(endpoint, tokens), Clock()
    line.start(clock.monotonic_ns(), clock.wall_ns())
    other = OppositeOrder(endpoints=(endpoint,), folder=folder, rows=rows)
    sender = launcher.start(opposite_child(other, tokens, where.sut), folder)
    try:
        time.sleep(_SETTLE)
        begun, before = clock.monotonic_ns(), line.status()["committed"]
        time.sleep(seconds)
        sender.stop()
        counts = line.finish()
        return float((counts["committed"] - before) * SECOND / (clock.monotonic_ns() - begun))
    finally:
        line.close()
        sender.stop()
        collector.stop()
