"""A load driver: it generates events on a fixed schedule and publishes them through its transport.

The launcher starts it as ``python -m streamgauge.run.driver.generator``. The load is open loop: it publishes what is
due and never waits for the system under test (Karimov et al. §III).
"""

import threading
from contextlib import suppress
from typing import Any

import pyarrow as pa

from streamgauge.model.streams import StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.processes.child import HiccupMeter, hide_pandas, log, low_latency_mode, on_sigterm, read_spec
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlRefused, ControlServer, Json
from streamgauge.run.driver.journals import DriverJournals, SendLog
from streamgauge.run.driver.send_schedule import (
    MICRO,
    EventBuffer,
    PartitionBuffer,
    SendSchedule,
    open_source,
    require_streams,
)
from streamgauge.run.driver.specs import DriverSpec, partitions_of, read_envelope
from streamgauge.transports.contract import DriverShare, TransportError
from streamgauge.transports.ledger import LedgerError, offsets_from_json, only_of
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.registry import workloads

_MAX_SLEEP = SECOND // 10
_UNTHROTTLED_WAIT = 0.0002
_POLL_INTERVAL = 0.05
"""Seconds between two checks for SIGTERM, while there is nothing to send."""


class Generator:
    """Sends on absolute deadlines, from the moment that the controller names to the one that it names later."""

    def __init__(self, spec: DriverSpec, wire: dict[str, Any]) -> None:
        self.spec = spec
        self.clock = Clock()
        self.plans = {name: profile.plan(spec.horizon_ns) for name, profile in spec.profiles.items()}
        self.schedules = {
            name: SendSchedule(plan, spec.send_interval_ns, spec.partition_count) for name, plan in self.plans.items()
        }
        self.lock = threading.Lock()
        self.send_log = SendLog(spec.horizon_ns // spec.send_interval_ns + 2)
        self.hiccups = HiccupMeter()
        self.started, self.stopping = threading.Event(), threading.Event()
        self.start_ns = self.wall_ns = 0
        self.end_ns = spec.horizon_ns
        self.no_more_events = self.terminated = False
        self.phase = "waiting"
        self.partitions = partitions_of(tuple(spec.profiles), spec.assigned)
        self.workload = workloads()[spec.workload]
        self.params = self.workload.params.from_resolved(spec.params)
        every = require_streams(self.workload, self.params)
        self.streams = tuple(stream for stream in every if stream.name in spec.profiles)
        share = DriverShare(
            streams=self.streams,
            partitions=self.partitions,
            partition_count=spec.partition_count,
            bound_events=spec.bound_events,
            bound_bytes=spec.bound_bytes,
            retry_ns=spec.retry_ns,
            lock=self.lock,
            monotonic_ns=self.clock.monotonic_ns,
            elapsed_ns=self.elapsed,
        )
        transport = transports()[spec.transport]
        self.publisher = transport.publisher(wire, share)
        self.ledger = self.publisher.ledger
        if not spec.unthrottled_backlog:
            self.ledger.planned = self.planned
        self.journals = DriverJournals(spec.folder, spec.driver, self.send_log, confirmed=transport.broker)

    def elapsed(self) -> int:
        """Nanoseconds since the load began; negative before."""
        return self.clock.monotonic_ns() - self.start_ns if self.start_ns else -1

    def handle(self, action: str, content: Json) -> Json:
        """A request of the controller, on the thread of the control channel."""
        if action == "start" and not self.started.is_set():
            self.start_ns, self.wall_ns = int(content["monotonic_ns"]), int(content["wall_ns"])
            self.clock = Clock(self.start_ns + self.spec.wall_step_at_ns, self.spec.wall_step_ns)
            self.publisher.set_clock(self.start_ns, self.wall_ns)
            self.started.set()
        elif action == "position":
            self.take_position(content)
        elif action == "end":
            self.end_ns = min(int(content["at_ns"]) // MICRO * MICRO, self.spec.horizon_ns)
            self.phase = "drain" if self.phase == "load" else self.phase
        elif action == "stop":
            self.no_more_events = True
        elif action == "quit":
            self.no_more_events = True
            self.started.set()
            self.stopping.set()
        elif action != "status":
            raise ControlRefused(f"a load driver has no action {action}")
        return self.status()

    def status(self) -> Json:
        """The counts at this moment."""
        with self.lock:
            ledger = self.ledger
            counts = {
                "published": ledger.published,
                "served": ledger.served,
                "acknowledged": ledger.acknowledged,
                "lag": ledger.lag,
                "full": ledger.full,
                "disconnects": ledger.expire_cancelled(self.elapsed()),
                "streams": {name: list(c) for name, c in ledger.stream_counts(self.spec.partition_count).items()},
            }
        intervals = self.send_log.done
        return {
            "phase": self.phase,
            "intervals": intervals,
            "elapsed": self.elapsed(),
            **counts,
            **self.publisher.status(),
        }

    def take_position(self, content: Json) -> None:
        """Enter how far the system under test was at a moment, as its engine reports it."""
        at_ns = int(content["at_ns"]) - self.start_ns
        done = only_of(self.partitions, offsets_from_json(content["offsets"]))
        started = only_of(self.partitions, offsets_from_json(content["started"] or []))
        try:
            with self.lock:
                self.ledger.start_processing(started)
                if any(at > self.ledger.partition(each).acknowledged for each, at in done.items()):
                    self.ledger.acknowledge(done, at_ns)
        except LedgerError as error:
            raise ControlRefused(str(error)) from error

    def prepare(self) -> EventBuffer:
        """The buffers of events, once it is known when event 0 is due."""
        spec, buffers = self.spec, list[PartitionBuffer]()
        inputs = Inputs(self.plans, spec.seed, self.wall_ns)
        for stream in self.streams:
            source = open_source(self.workload, self.params, stream, inputs, partitions=spec.partition_count)
            encoded, schedule = self.publisher.encode(source), self.schedules[stream.name]
            buffers += [PartitionBuffer(StreamPartition(stream.name, p), encoded, schedule) for p in spec.assigned]
        return EventBuffer(buffers, spec.lookahead_ns, self.clock.monotonic_ns)

    def run_send_loop(self) -> None:
        """Send until the end that the controller names. Each send is recorded with when it should have happened."""
        events, now, interval = self.prepare(), self.clock.monotonic_ns, 0
        begin, step, wall_us = self.start_ns, self.spec.send_interval_ns, self.wall_ns // MICRO
        self.phase = "load"
        while not self.no_more_events:
            moment = min((interval + 1) * step, self.end_ns)
            if moment <= interval * step:
                break
            if self.spec.unthrottled_backlog:
                if self.ledger.unacknowledged > self.spec.unthrottled_backlog:
                    self.publisher.wait(_UNTHROTTLED_WAIT)
                    continue
            elif begin + moment > now():
                events.make_ahead(interval * step, self.end_ns, begin + moment)
                self.publisher.wait(min(max(0, begin + moment - now()), _MAX_SLEEP) / SECOND)
                continue  # the controller may have moved the end meanwhile
            parts = events.take_due(moment)
            if not self.publisher.publish(parts, wall_us + moment // MICRO):
                self.publisher.flush()
                self.phase = "full"
                log(f"the queue is full after {self.send_log.done} send intervals: {self.ledger.lag} events wait")
                return
            self.send_log.add(moment, self.elapsed, sum(batch.num_rows for _, batch in parts))
            interval += 1
        self.end_ns = min(interval * step, self.end_ns)
        self.publisher.flush()
        self.phase = "done"

    def planned(self, elapsed: int) -> int:
        """Events that the plan has for this load driver before a moment."""
        until = min(max(elapsed, 0), self.end_ns)
        return sum(schedule.due_offset(until, p) for schedule in self.schedules.values() for p in self.spec.assigned)

    def journal_loop(self) -> None:
        """A thread: once a second, close the second and write the journals. A load driver that cannot do so ends."""
        try:
            self.close_seconds()
        except (OSError, pa.ArrowException) as error:
            self.phase, self.no_more_events, self.terminated = "failed", True, True
            with suppress(OSError):  # its log may be on the same disk
                log(f"the journals cannot be written: {error}")

    def close_seconds(self) -> None:
        """Close one second after the other, until the end."""
        second = 0
        while not self._wait_for((second + 1) * SECOND):
            sample = self.sample(second)
            self._wait_for((second + 1) * SECOND + self.publisher.close_delay_ns)
            self.close_second(second, sample)
            second += 1
        if self.elapsed() > second * SECOND:
            self.close_second(second, self.sample(second))

    def _wait_for(self, elapsed: int) -> bool:
        """Wait for a moment since the load began; True if the process is to end before."""
        return self.stopping.wait(max(0.0, (elapsed - self.elapsed()) / SECOND))

    def sample(self, second: int) -> dict[str, int]:
        """What is read at the end of a second."""
        with self.lock:
            served, disconnects = self.ledger.served, self.ledger.expire_cancelled(self.elapsed())
            queue, self.ledger.longest = self.ledger.longest, self.ledger.waiting
        return {
            "offered": self.planned((second + 1) * SECOND) - self.planned(second * SECOND),
            "served": served,
            "drops": disconnects,
            "queue": queue,
            "hiccup": self.hiccups.take(),
            "drift": (self.clock.wall_ns() - self.wall_ns) - self.elapsed(),
        }

    def close_second(self, second: int, sample: dict[str, int]) -> None:
        """Write a second down, with the acknowledgements and confirmations of it that have arrived by now."""
        with self.lock:
            acknowledgements = self.ledger.take_acknowledgements((second + 1) * SECOND)
            confirmations, skew = self.publisher.take_confirmations()
        self.journals.write(acknowledgements, confirmations)  # what a second is counted from is written before it
        self.journals.close_second(second, {**sample, "skew": skew}, acknowledgements, confirmations)

    def terminate(self) -> None:
        """SIGTERM: only flags are set."""
        self.no_more_events = self.terminated = True

    def run(self, control: ControlServer) -> None:
        """Wait for the start, send, and stay for readers until the controller ends this process."""
        on_sigterm(self.terminate)
        control.serve_in_background(self.handle)
        low_latency_mode()
        log("ready")
        while not self.started.wait(_POLL_INTERVAL) and not self.no_more_events:
            pass
        if self.stopping.is_set() or not self.started.is_set():
            control.wait_responded()
            return
        self.hiccups.start()
        journals = threading.Thread(target=self.journal_loop, name="journals", daemon=True)
        journals.start()
        try:
            self.run_send_loop()
            while not self.stopping.wait(_POLL_INTERVAL) and not self.terminated:
                self.publisher.wait(0.0)
        except TransportError as error:
            self.phase = "failed"
            log(str(error))  # the end of the log of a load driver that ends by itself is why the trial is INVALID
        self.stopping.set()
        journals.join()
        self.journals.write(self.ledger.take_acknowledgements())
        self.hiccups.stop()
        self.journals.close()
        control.wait_responded()
        self.publisher.close()


def main() -> None:
    """The process's table of contents."""
    hide_pandas()
    spec, envelope = read_envelope(read_spec(), DriverSpec)
    try:
        generator = Generator(spec, envelope.wire)
    except TransportError as error:
        log(str(error))  # it never becomes ready: the controller shows this line
        return
    generator.run(ControlServer(envelope.control, envelope.token))


if __name__ == "__main__":
    main()
