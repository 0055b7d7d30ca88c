"""A driver instance: the generator and its queue in one process, as in Karimov et al. §III-A; on Kafka a generator
that keeps the counts alone.

Started by the launcher as ``python -m streamgauge.run.driver.generator``; its standard input says where its order lies
and what the secrets are. Open loop: it publishes what is due and never waits for the system under test.
"""

import os
import signal
import threading
from contextlib import suppress

import pyarrow as pa

from streamgauge.model.experiment import TransportChoice
from streamgauge.model.units import SECOND
from streamgauge.processes.child import HiccupMeter, quicken, without_pandas
from streamgauge.processes.clock import Clock
from streamgauge.run.driver.journals import Chronicle, Ticks
from streamgauge.run.driver.publishers import Doorway, KafkaWay, QueueWay, Way
from streamgauge.run.driver.send_schedule import MICRO, Pace, Preparation, Stock, open_source, require_streams
from streamgauge.run.driver.specs import DriveOrder, Errand, Tokens
from streamgauge.transports.kafka.client.producer import Now
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.kafka.ledger import Ledger
from streamgauge.transports.kafka.options import KafkaOptions, kafka_options
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.buffer import Backlog
from streamgauge.transports.queue.server import Json
from streamgauge.transports.schemas import schema_of
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.registry import workloads

_LONGEST_SLEEP = SECOND // 10
_FLAT_OUT_NAP = 0.0002
_GLANCE = 0.05
"""Seconds between two looks whether SIGTERM came, while there is nothing to tick."""


def say(text: str) -> None:
    """A line for the log."""
    os.write(1, text.encode() + b"\n")


def read_errand() -> Errand:
    """What came through standard input."""
    text = b""
    while got := os.read(0, 1 << 16):
        text += got
    return Errand.model_validate_json(text)


class Driver:
    """Ticks on absolute deadlines, from the moment that the controller names to the one it names later."""

    def __init__(self, order: DriveOrder, tokens: Tokens, ends: KafkaEnds | None = None) -> None:
        self.order = order
        self.clock = Clock()
        self.plans = {name: profile.plan(order.horizon_ns) for name, profile in order.profiles.items()}
        self.paces = {n: Pace(plan, order.tick_ns, order.partitions) for n, plan in self.plans.items()}
        self.lock = threading.Lock()
        self.ticks = Ticks(order.horizon_ns // order.tick_ns + 2)
        self.chronicle = Chronicle(order.folder, order.driver, self.ticks, broker=ends is not None)
        self.hiccups = HiccupMeter()
        self.begun, self.over = threading.Event(), threading.Event()
        self.start_ns = self.wall_ns = 0
        self.end_ns = order.horizon_ns
        self.stopped = self.terminated = False
        self.phase = "waiting"
        self.workload = workloads()[order.workload]
        self.params = self.workload.params.from_resolved(order.params)
        self.streams = [each for each in require_streams(self.workload, self.params) if each.name in order.profiles]
        schemas = {stream.name: schema_of(stream.schema) for stream in self.streams}
        doorway = Doorway(order.endpoint, schemas, tokens.roles(), self.lock, self.elapsed, self.control)
        self.way = open_way(order, doorway, ends, self.clock.monotonic_ns)
        self.books, self.server = self.way.books, self.way.server
        if not order.flat_out:
            self.books.planned = self.planned

    def elapsed(self) -> int:
        """Nanoseconds since the load began; negative before."""
        return self.clock.monotonic_ns() - self.start_ns if self.start_ns else -1

    def control(self, action: str, body: Json) -> Json:
        """An order of the controller, on a thread of the server."""
        if action == "start" and not self.begun.is_set():
            self.start_ns, self.wall_ns = int(body["monotonic_ns"]), int(body["wall_ns"])
            self.clock = Clock(self.start_ns + self.order.wall_step_at_ns, self.order.wall_step_ns)
            self.way.set_clock(self.start_ns, self.wall_ns)
            self.begun.set()
        elif action == "end":
            self.end_ns = min(int(body["at_ns"]) // MICRO * MICRO, self.order.horizon_ns)
            self.phase = "tail" if self.phase == "load" else self.phase
        elif action == "stop":
            self.stopped = True
        elif action == "quit":
            self.stopped = True
            self.begun.set()
            self.over.set()
        elif action != "progress":
            raise KeyError(f"a driver knows no order {action}")
        with self.lock:
            answered = self.books.answered(self.order.partitions)
        counts = {**self.server.status(), "answered": answered, **self.way.said()}
        return {"phase": self.phase, "ticks": self.ticks.done, "elapsed": self.elapsed(), **counts}

    def prepare(self) -> Preparation:
        """The stocks of events, once it is known when event 0 is due."""
        order, stocks = self.order, []
        inputs = Inputs(self.plans, order.seed, self.wall_ns)
        for stream in self.streams:
            source = open_source(self.workload, self.params, stream, inputs, partitions=order.partitions)
            made, pace = self.way.source(source), self.paces[stream.name]
            stocks += [Stock(Lane(stream.name, p), made, pace) for p in order.mine]
        return Preparation(stocks, order.ahead_ns, self.clock.monotonic_ns)

    def load(self) -> None:
        """The ticks, until the end that the controller says. Each is written down with what it should have been."""
        preparation, now, tick = self.prepare(), self.clock.monotonic_ns, 0
        begin, step, wall_us = self.start_ns, self.order.tick_ns, self.wall_ns // MICRO
        self.phase = "load"
        while not self.stopped:
            moment = min((tick + 1) * step, self.end_ns)
            if moment <= tick * step:
                break
            if self.order.flat_out:
                if self.books.pending > self.order.flat_out:
                    self.way.rest(_FLAT_OUT_NAP)
                    continue
            elif begin + moment > now():
                preparation.fill(tick * step, self.end_ns, begin + moment)
                self.way.rest(min(max(0, begin + moment - now()), _LONGEST_SLEEP) / SECOND)
                continue  # the controller may have moved the end meanwhile
            parts = preparation.take(moment)
            if not self.way.publish(parts, wall_us + moment // MICRO):
                self.way.finish()
                self.phase = "full"
                say(f"the queue is full after {self.ticks.done} ticks: {self.books.lag} events wait")
                return
            self.ticks.add(moment, self.elapsed, sum(batch.num_rows for _, batch in parts))
            tick += 1
        self.end_ns = min(tick * step, self.end_ns)
        self.way.finish()
        self.phase = "done"

    def planned(self, elapsed: int) -> int:
        """Events that the plan wants from this driver before a moment."""
        until = min(max(elapsed, 0), self.end_ns)
        return sum(pace.offset(until, p) for pace in self.paces.values() for p in self.order.mine)

    def write_down(self) -> None:
        """A thread: once a second, close the second and add to the journals. A driver that cannot do so ends."""
        try:
            self.close_seconds()
        except (OSError, pa.ArrowException) as error:
            self.phase, self.stopped, self.terminated = "failed", True, True
            with suppress(OSError):  # its log may be on the same disk
                say(f"the journals cannot be written: {error}")

    def close_seconds(self) -> None:
        """Close one second after the other, until the end."""
        second = 0
        while not self.over.wait(max(0.0, ((second + 1) * SECOND - self.elapsed()) / SECOND)):
            self.close_second(second)
            second += 1
        if self.elapsed() > second * SECOND:
            self.close_second(second)

    def close_second(self, second: int) -> None:
        with self.lock:
            served, drops = self.books.served, self.books.settle(self.elapsed())
            queue, self.books.longest = self.books.longest, self.books.waiting
            acks, appends, skew = self.books.take_acks(), *self.way.take_appends()
        drift = (self.clock.wall_ns() - self.wall_ns) - self.elapsed()
        sample = {
            "offered": self.planned((second + 1) * SECOND) - self.planned(second * SECOND),
            "served": served,
            "drops": drops,
            "queue": queue,
            "skew": skew,
            "hiccup": self.hiccups.take(),
            "drift": drift,
        }
        self.chronicle.write(acks, appends)  # what a second was counted from is written before it
        self.chronicle.second(second, sample, acks, appends)

    def told(self, *_: object) -> None:
        """SIGTERM. It comes between two instructions of the main thread, which may hold any lock: flags alone."""
        self.stopped = self.terminated = True

    def run(self) -> None:
        """Wait for the start, tick, and stay for readers until told to quit."""
        signal.signal(signal.SIGTERM, self.told)
        quicken()
        say("ready")
        while not self.begun.wait(_GLANCE) and not self.stopped:
            pass
        if self.over.is_set() or not self.begun.is_set():
            return
        self.hiccups.start()
        scribe = threading.Thread(target=self.write_down, name="chronicle", daemon=True)
        scribe.start()
        try:
            self.load()
            while not self.over.wait(_GLANCE) and not self.terminated:
                self.way.rest(0.0)
        except KafkaFailure as error:
            self.phase = "failed"
            say(str(error))  # the last words of a driver that ends by itself are why the trial is INVALID
        self.over.set()
        scribe.join()
        self.chronicle.write(self.books.take_acks())
        self.hiccups.stop()
        self.chronicle.close()
        self.way.close()
        self.server.shutdown()


def open_way(order: DriveOrder, doorway: Doorway, ends: KafkaEnds | None, now_ns: Now) -> Way:
    """The way that the ticks of this driver go."""
    lanes = [Lane(stream, p) for stream in order.profiles for p in order.mine]
    if ends is None:
        return QueueWay(doorway, Backlog(lanes, order.bound_events, order.bound_bytes, order.retry_ns))
    ledger = Ledger(lanes, order.bound_events, order.bound_bytes)
    options = kafka_options(TransportChoice("kafka", order.kafka or {})) or KafkaOptions()
    return KafkaWay(doorway, ledger, ends, options, now_ns)


def main() -> None:
    """The process's table of contents."""
    without_pandas()
    errand = read_errand()
    order = DriveOrder.model_validate_json(errand.order.read_bytes())
    try:
        driver = Driver(order, errand.tokens, errand.ends)
    except KafkaFailure as error:
        say(str(error))  # it never says that it is ready: the controller shows these words
        return
    driver.run()


if __name__ == "__main__":
    main()
