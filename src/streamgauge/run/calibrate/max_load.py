"""The highest load that streamgauge can generate on this machine, with this CPU pinning, and how late it sends.

Used by ``streamgauge calibrate`` and by the benches. Everything here runs the real processes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamgauge.judge.generator import MAX_SEND_DELAY, MIN_ACHIEVED
from streamgauge.model.calibration import CALIBRATED_SHARE
from streamgauge.model.layout import Placement
from streamgauge.model.profile import LoadProfile, constant
from streamgauge.model.streams import Position
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlClient, ControlError, ControlRefused, Json
from streamgauge.processes.launch import Launcher, LaunchError, Process
from streamgauge.run.driver.journals import p99
from streamgauge.run.driver.specs import (
    MILLI,
    CollectorControl,
    CollectorSpec,
    DriverControl,
    DriverSpec,
    NullConsumerSpec,
    collector_process,
    driver_process,
    null_consumer_process,
)
from streamgauge.store.durable import make_folder
from streamgauge.store.journal import Ints, read_rows
from streamgauge.transports.contract import ChannelSpec, OpenTransport
from streamgauge.transports.ledger import offsets_from_json
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import profiles_of
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

_LEAD = 200 * MILLI
_SKIPPED_SECONDS = 1.0
_TAIL, _END_TIMEOUT = 3, 3.0
"""Lines of a process that ended by itself, and seconds that it may take to end after it stopped responding."""
_POSITION_INTERVAL = 0.02
"""Seconds between two times at which positions of the null consumer are passed on to the load driver."""
SHARES = (CALIBRATED_SHARE, 0.6, 0.45, 0.3, 0.15)
"""Of the maximum rate, highest first: the loads at which the send delay is checked."""
SAFE_LAG = MAX_SEND_DELAY // 2
"""A probe is short and its machine quiet: only half of what a trial may have is safely within it."""
PROBE, CONFIRM = 3.0, 30.0
"""Seconds of a probe, and of the confirmation of the rate that it found: as long as a trial."""
_CONFIRMED = 2
"""How often a rate is confirmed at most: a calibration takes three minutes. If both were late, the rate that it ends
with is not confirmed, and the calibration reports it."""


@dataclass(frozen=True, slots=True)
class SendDelay:
    """Actual − intended sending over all send intervals after the first second, in nanoseconds."""

    rate: float
    achieved: float
    p50: int
    p99: int
    worst: int
    """The p99 of the worst second."""
    most: int
    intervals: int
    hiccup: int
    """Longest hiccup of the load driver's process meanwhile."""
    append: int = 0
    """The p99 until a broker had appended the events; 0 without a broker."""
    seconds: float = PROBE

    @property
    def on_time(self) -> bool:
        """Whether a trial at this rate would be safely valid, as far as the generator and the broker go."""
        return max(self.p99, self.append) <= SAFE_LAG and self.achieved >= MIN_ACHIEVED * self.rate


@dataclass(frozen=True, slots=True)
class LoadSetup:
    """Where a load is generated: a launcher, an open transport and the cores of both sides."""

    launcher: Launcher
    transport: OpenTransport
    name: str
    """The name of the transport."""
    placement: Placement

    @property
    def partitions(self) -> int:
        """One for each core of the system under test."""
        return max(1, len(self.placement.sut))


class RunningLoad:
    """A load driver under load with a null consumer, and the control channels of both."""

    def __init__(self, driver: DriverControl, consumer: ControlClient) -> None:
        self._driver, self._consumer = driver, consumer

    def pass_positions(self) -> None:
        """Pass the newest position of the consumer on to the load driver."""
        positions = [each for each in self._consumer.notifications() if "offsets" in each]
        if positions:
            self._driver.position(
                Position(offsets_from_json(positions[-1]["offsets"]), int(positions[-1]["at_ns"]), None)
            )

    def status(self) -> Json:
        """The counts of the load driver, with the newest position of the consumer in them."""
        self.pass_positions()
        return self._driver.status()

    def wait(self, seconds: float) -> None:
        """Let this time pass, and pass positions on meanwhile."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self.pass_positions()
            time.sleep(min(left, _POSITION_INTERVAL))

    def end(self, at_ns: int) -> None:
        """Publish what is due before ``at_ns``, then nothing more."""
        self._driver.end(at_ns)


@contextmanager
def _driver_under_load(
    setup: LoadSetup, folder: Path, profile: LoadProfile, *, unthrottled: int = 0
) -> Iterator[RunningLoad]:
    make_folder(folder)
    params = WindowedAggregationParams()
    streams, output = windowed_aggregation.streams(params), windowed_aggregation.output(params)
    interval = transports()[setup.name].usual_interval_ns
    spec = DriverSpec(
        folder=folder,
        transport=setup.name,
        driver=0,
        workload=windowed_aggregation.name,
        params=params.model_dump(mode="json"),
        seed=1,
        profiles=profiles_of(streams, profile),
        horizon_ns=600 * SECOND,
        partition_count=setup.partitions,
        assigned=tuple(range(setup.partitions)),
        send_interval_ns=interval,
        unthrottled_backlog=unthrottled,
    )
    with ExitStack() as stack:
        channel = stack.enter_context(setup.transport.channel(ChannelSpec(0, streams, output, setup.partitions)))
        runtime = setup.launcher.runtime
        driver = driver_process(spec, channel.driver_wire(0), runtime, setup.placement.driver)
        driving = setup.launcher.start(driver.process, folder)
        stack.callback(driving.stop)
        control = DriverControl(driver.connect())
        stack.callback(control.close)
        wanted = NullConsumerSpec(folder=folder, transport=setup.name)
        consumer = null_consumer_process(wanted, channel.endpoints.wire(), runtime, setup.placement.sut)
        consuming = setup.launcher.start(consumer.process, folder)
        stack.callback(consuming.stop)
        client = consumer.connect()
        stack.callback(client.close)
        try:
            clock = Clock()
            control.start(clock.monotonic_ns() + _LEAD, (clock.wall_ns() + _LEAD) // MILLI * MILLI)
            yield RunningLoad(control, client)
            control.stop()
            _require_running(consuming)
            consuming.stop()
            control.quit()
            driving.wait(10)
        except (ControlError, ControlRefused) as error:
            for process in (driving, consuming):
                _require_running(process, _END_TIMEOUT)
            raise LaunchError(f"{driving.name} no longer responds: {error}") from error


def _require_running(process: Process, seconds: float = 0.0) -> None:
    """Raise with the end of its log if a process has ended by itself, or does so within these seconds."""
    code = process.wait(seconds)
    if code is not None:
        last = " / ".join(line for line in process.tail(_TAIL) if line != "ready")
        raise LaunchError(f"{process.name} ended while the maximum load was measured (exit code {code}): {last}")


def max_input_rate(setup: LoadSetup, folder: Path, seconds: float = 3.0) -> float:
    """Events per second from the generator through the transport to a consumer that does nothing."""
    transport = transports()[setup.name]
    plan = constant(transport.unthrottled_per_interval * SECOND / transport.usual_interval_ns)
    with _driver_under_load(setup, folder, plan, unthrottled=2_000_000) as load:
        load.wait(_SKIPPED_SECONDS)
        before = load.status()
        load.wait(seconds)
        after = load.status()
    return float((after["acknowledged"] - before["acknowledged"]) * SECOND / (after["elapsed"] - before["elapsed"]))


def send_delay(setup: LoadSetup, folder: Path, rate: float, seconds: float = 5.0) -> SendDelay:
    """How late events are sent at this rate, while a consumer that does nothing reads them."""
    with _driver_under_load(setup, folder, constant(rate)) as load:
        load.end(round((seconds + _SKIPPED_SECONDS) * SECOND))
        load.wait(seconds + _SKIPPED_SECONDS + _LEAD / SECOND + 0.2)
    sends = read_rows(folder / "ticks-0")
    intended, actual = sends["intended"].to_numpy(), sends["actual"].to_numpy()
    judged = intended > _SKIPPED_SECONDS * SECOND
    delay, second = (actual - intended)[judged], (intended[judged] - 1) // SECOND
    rows = read_rows(folder / "driver-0-seconds").to_pydict()
    achieved, append = _rate(actual[judged], sends["count"].to_numpy()[judged]), 0
    confirmed = _confirmed(folder)
    if confirmed is not None:
        achieved, append = confirmed
    return SendDelay(
        rate=rate,
        achieved=achieved,
        append=append,
        seconds=seconds,
        p50=int(np.median(delay)),
        p99=p99(delay),
        worst=max(p99(delay[second == one]) for one in np.unique(second)),
        most=int(delay.max()),
        intervals=len(delay),
        hiccup=max(rows["hiccup"]),
    )


def _confirmed(folder: Path) -> tuple[float, int] | None:
    """The rate that a broker confirmed, and the p99 until it had appended events; None without a broker."""
    try:
        table = read_rows(folder / "appends-0")
    except FileNotFoundError:
        return None
    columns = {name: table[name].to_numpy() for name in table.schema.names}
    judged = columns["intended"] > _SKIPPED_SECONDS * SECOND
    delays = np.repeat((columns["appended"] - columns["intended"])[judged], columns["count"][judged])
    return _rate(columns["confirmed"][judged], columns["count"][judged]), p99(delays)


def _rate(moments: Ints, count: Ints) -> float:
    """Events per second between the first and the last moment."""
    span = moments.max(initial=1) - moments.min(initial=10**18)
    first = count[moments == moments.min(initial=10**18)].sum()
    return float((count.sum() - first) * SECOND / max(1, span))


def probe_rates(flat_out: float, probe: Callable[[float, float], SendDelay]) -> list[SendDelay]:
    """Shares of the maximum rate, from the highest down to the first at which events are safely on schedule.

    The maximum rate is not enough: close to it the generator has no idle time left to make events ahead. A probe
    takes a rate and seconds; what a short one found is confirmed over the length of a trial.
    """
    probes: list[SendDelay] = []
    for share in SHARES:
        probes.append(probe(share * flat_out, PROBE))
        if not probes[-1].on_time:
            continue
        if sum(p.seconds == CONFIRM for p in probes) < _CONFIRMED:
            probes.append(probe(share * flat_out, CONFIRM))
        if probes[-1].on_time:
            break
    return probes


def confirmed(probes: Sequence[SendDelay]) -> bool:
    """Whether events were in time at the rate that ``probe_rates`` ended with over the length of a trial."""
    return probes[-1].on_time and probes[-1].seconds >= CONFIRM


def max_output_rate(setup: LoadSetup, folder: Path, seconds: float = 3.0, rows: int = 16_384) -> float:
    """Output rows per second that the collector stamps, counts and stores, with nothing left over at the end."""
    make_folder(folder)
    params = WindowedAggregationParams()
    streams, output = windowed_aggregation.streams(params), windowed_aggregation.output(params)
    with ExitStack() as stack:
        channel = stack.enter_context(setup.transport.channel(ChannelSpec(0, streams, output, setup.partitions)))
        runtime = setup.launcher.runtime
        spec = CollectorSpec(folder=folder, transport=setup.name, firing="window_end")
        child = collector_process(spec, channel.collector_wire(), runtime, setup.placement.driver)
        collecting = setup.launcher.start(child.process, folder)
        stack.callback(collecting.stop)
        control, clock = CollectorControl(child.connect(90.0)), Clock()
        stack.callback(control.close)
        control.start(clock.monotonic_ns(), clock.wall_ns())
        sender = NullConsumerSpec(folder=folder, transport=setup.name, rows=rows)
        sending = null_consumer_process(sender, channel.endpoints.wire(), runtime, setup.placement.sut)
        process = setup.launcher.start(sending.process, folder)
        stack.callback(process.stop)
        time.sleep(_SKIPPED_SECONDS)
        began, before = clock.monotonic_ns(), control.status()["committed"]
        time.sleep(seconds)
        process.stop()
        counts = control.finish(90.0)
        return float((counts["committed"] - before) * SECOND / (clock.monotonic_ns() - began))
