"""The process of the reference engine, a system under test: it reads, sums and releases at exactly its capacity.

The launcher starts it as ``python -m streamgauge.engines.reference.worker``; its specification comes through standard
input. It has a clock and threads because it stands for a foreign system.
"""

import math
import time
from collections.abc import Mapping

import numpy as np

from streamgauge.engines.reference.delayed_output import SCHEMA, DelayedOutput, as_rows
from streamgauge.engines.reference.engine import POLL, ReferenceOptions, WorkerSpec
from streamgauge.engines.reference.ground_truth import BATCH, BATCHES
from streamgauge.engines.reference.schedule import Schedule
from streamgauge.engines.reference.windows import Faults, Panes
from streamgauge.engines.toolkit import ChildSpec, position_notification
from streamgauge.model.streams import Position, StreamPartition
from streamgauge.model.units import SECOND, duration_text
from streamgauge.processes.child import hide_pandas, log, low_latency_mode, on_sigterm, read_spec
from streamgauge.processes.clock import SteadyWallClock
from streamgauge.processes.control import ControlServer, Json
from streamgauge.store.journal import GrowingRows
from streamgauge.transports.contract import Available
from streamgauge.transports.registry import transports

_POLL_INTERVAL = SECOND // 20
"""Nanoseconds that it sleeps at most before it checks whether it should end."""
_DROPPED_ROWS = 200_000
"""Rows of a stream that is dropped: more than Flight sends ahead, so that the load driver notices."""


class CrashOrdered(RuntimeError):
    """The options require that the engine crashes now."""


class Worker:
    """The loop: find what is available, read, sum, be busy as long as the capacity requires, acknowledge, emit."""

    def __init__(self, spec: ChildSpec, control: ControlServer) -> None:
        self.work, self.options = WorkerSpec(**spec.details), ReferenceOptions.from_resolved(spec.options)
        self.clock, self.control = SteadyWallClock(), control
        work, o = self.work, self.options
        self.schedule = Schedule(work.capacity, o.batch_interval)
        self.panes = Panes(work.window_us, work.slide_us, work.keys)
        self.faults = Faults(work.seed, work.window_results, lose=o.lose, duplicate=o.duplicate, alter=o.alter)
        self.random = np.random.default_rng([work.seed, 0xDE1A7])
        transport = transports()[spec.transport]
        self.reader, self.writer = transport.reader(spec.endpoints), transport.writer(spec.endpoints, SCHEMA)
        self.output = DelayedOutput(self.writer, spec.workload, spec.folder, self.clock)
        self.log = GrowingRows(spec.folder / BATCHES, BATCH)
        self.position: dict[StreamPartition, int] = {}
        self.done: dict[StreamPartition, int] = {}
        self.dropped: StreamPartition | None = None
        self.due: int | None = None
        self.work_begins = self.total = 0
        self.stalled = self.cancelled = self.stopping = False

    def stop(self) -> None:
        """SIGTERM: only a flag is set."""
        self.stopping = True

    def run(self) -> None:
        """Reach both sides, report that it is ready, and work until it is stopped."""
        on_sigterm(self.stop)
        self.reader.available()
        self.writer.status()
        _warm_up(self.work)
        self.output.start()
        low_latency_mode()
        log("ready")
        try:
            look = time.monotonic_ns()
            while not self.stopping:
                self.step()
                look = self.schedule.trigger(look) if self.schedule.interval else self.next_look(look)
                self.sleep_until(look)
        finally:
            self.log.close()
            self.output.close()
        self.reader.close()

    def next_look(self, last: int) -> int:
        """When to check the queue again: immediately if there is more in it."""
        return last if self.schedule.busy else max(last + POLL, time.monotonic_ns())

    def step(self) -> None:
        """One batch, if there is one."""
        latest, took = self.reader.available(), time.monotonic_ns()
        if not any(latest.offsets.values()):
            return
        if not self.work_begins:
            self.work_begins = took
            self.clock.set()
        if self.inject_faults(took - self.work_begins):
            return
        saturated = self.schedule.busy
        batch, waiting = self.next_batch(latest)
        events = self.read(batch)
        self.due = self.reader.complete_until(batch)
        finish = self.schedule.take(events, took, waiting)
        self.sleep_until(finish)
        self.emit(finish)
        released = time.monotonic_ns()
        if events:
            self.acknowledge()
            self.total += events
            row = (took, finish, released, int(saturated), self.due or 0, events, self.total)
            self.log.append({name: [value] for name, value in zip(BATCH.names, row, strict=True)})
        if not self.output.works:
            raise RuntimeError("outputs can no longer be sent")

    def next_batch(self, latest: Available) -> tuple[Available, int]:
        """No more than one step of work, or one send interval, and how many events it leaves for later."""
        step, new = self.schedule.step, sum(self.unread(latest).values())
        if not step or new <= step or self.due is None or self.dropped is not None:
            return latest, 0
        batch = self.reader.available(step)
        return batch, max(0, new - sum(self.unread(batch).values()))

    def unread(self, available: Available) -> Mapping[StreamPartition, int]:
        """Events of each partition that were not read yet."""
        partitions = (each for each in available.offsets if each != self.dropped)
        return {each: n for each in partitions if (n := available.offsets[each] - self.position.get(each, 0)) > 0}

    def read(self, available: Available) -> int:
        """Read what is available and add it to the panes; how many events."""
        events, fresh = 0, self.unread(available)
        if fresh:
            started = self.position | {each: self.position.get(each, 0) + new for each, new in fresh.items()}
            self.report(started)
        for partition, new in fresh.items():
            start = self.position.get(partition, 0)
            for batch, ingested in self.reader.read(partition, start, start + new):
                due = batch.column("due").view("int64").to_numpy()
                self.panes.add(batch.column("gem_pack_id").to_numpy(), batch.column("price").to_numpy(), due, ingested)
            self.position[partition] = start + new
            events += new
        return events

    def acknowledge(self) -> None:
        """Everything that was read is finished."""
        self.done = dict(self.position)
        self.reader.acknowledge(self.done)
        self.report(self.done)

    def report(self, started: Mapping[StreamPartition, int]) -> None:
        """Report the position, if acknowledgements do not reach the load drivers by themselves."""
        if not self.reader.acknowledges:
            position = Position(self.done, time.monotonic_ns(), dict(started))
            self.control.notify(position_notification(position))

    def emit(self, finish: int) -> None:
        """Emit the windows that the watermark has passed; without a partition it never passes."""
        if self.due is None or self.dropped is not None:
            return
        fired = self.panes.fire(self.due - self.work.watermark_us)
        if fired is None or self.options.silent:
            return
        wait = self.options.delay * math.exp(self.options.delay_spread * self.random.standard_normal())
        corrupted = self.faults.corrupt(fired)
        if len(corrupted["sum"]):
            self.output.schedule(finish + int(wait), corrupted)

    def inject_faults(self, elapsed: int) -> bool:
        """Crash, stall or disconnect when the options require it. True: this step reads nothing."""
        order = self.options
        if order.crash_after is not None and elapsed >= order.crash_after:
            raise CrashOrdered(f"crashed, as configured, after {duration_text(order.crash_after)} of load")
        if order.stall and not self.stalled and elapsed >= order.stall_after:
            self.stalled = True
            log(f"stalls, as configured, for {duration_text(order.stall)}")
            self.sleep_until(time.monotonic_ns() + order.stall)
            self.schedule.rest(time.monotonic_ns())
            return True
        if order.drop_after is not None and elapsed >= order.drop_after and not self.cancelled:
            self.drop()
        return False

    def drop(self) -> None:
        """Leave the last partition unread; once enough of it waits, begin to read it and disconnect."""
        available = self.reader.available()
        self.dropped = max(available.offsets)
        start = self.position.get(self.dropped, 0)
        if available.offsets[self.dropped] - start < _DROPPED_ROWS:
            return
        self.reader.disconnect(self.dropped, start, available.offsets[self.dropped])
        self.cancelled = True
        log(f"dropped partition {self.dropped.partition}, as configured")

    def sleep_until(self, moment: int) -> None:
        """Sleep on an absolute deadline of the monotonic clock."""
        while not self.stopping and (left := moment - time.monotonic_ns()) > 0:
            time.sleep(min(left, _POLL_INTERVAL) / SECOND)


def _warm_up(work: WorkerSpec) -> None:
    """Do everything once on a made-up purchase: what is loaded at its first use is loaded now."""
    panes, one = Panes(work.window_us, work.slide_us, work.keys), np.zeros(1, np.int64)
    panes.add(one, one, one, 0)
    closed = panes.fire(work.window_us)
    assert closed is not None
    as_rows(Faults(0, 1, alter=1).corrupt(closed))


def _refuse(action: str, content: Json) -> Json:
    return {}


def main() -> None:
    """The process's table of contents."""
    hide_pandas()
    spec = ChildSpec.model_validate_json(read_spec())
    control = ControlServer(spec.control, spec.token)
    control.serve_in_background(_refuse)
    Worker(spec, control).run()


if __name__ == "__main__":
    main()
