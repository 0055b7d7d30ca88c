"""The process of the reference engine, a system under test: it reads, sums and releases at exactly its capacity.

Started by the launcher as ``python -m streamgauge.engines.reference.worker``; its order comes through standard
input. It has a clock and threads of its own because it stands for a foreign system.
"""

import math
import os
import signal
import time
from collections.abc import Mapping

import numpy as np

from streamgauge.engines.reference.connect import open_ends
from streamgauge.engines.reference.delayed_output import Release, WallClock, as_rows
from streamgauge.engines.reference.engine import POLL, WorkOrder
from streamgauge.engines.reference.ground_truth import BATCH, BATCHES
from streamgauge.engines.reference.schedule import Schedule
from streamgauge.engines.reference.windows import Faults, Panes
from streamgauge.engines.toolkit import Log
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.child import quicken, without_pandas
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.reader import Cut

_GLANCE = SECOND // 20
"""Nanoseconds that it sleeps at most before it looks whether it should end."""
_DROPPED_ROWS = 200_000
"""Rows of a stream that is dropped: more than Flight sends ahead, so that the driver notices."""


class CrashOrdered(RuntimeError):
    """The order says that the engine crashes now."""


class Work:
    """The loop: cut, read, sum, be busy as long as the capacity says, acknowledge, fire."""

    def __init__(self, order: WorkOrder) -> None:
        self.order, self.clock = order, WallClock()
        self.schedule = Schedule(order.capacity, order.batch_interval_ns)
        self.panes = Panes(order.window_us, order.slide_us, order.keys)
        self.faults = Faults(order.seed, order.firings, lose=order.lose, duplicate=order.duplicate, alter=order.alter)
        self.random = np.random.default_rng([order.seed, 0xDE1A7])
        self.ends = open_ends(order, self.now_us, time.monotonic_ns)
        self.reader = self.ends.inlet
        self.release = Release(self.ends.outlet, order.query, order.folder, self.clock)
        self.log = Log(order.folder / BATCHES, BATCH)
        self.position: dict[Lane, int] = {}
        self.dropped: Lane | None = None
        self.due: int | None = None
        self.begun = self.total = 0
        self.stalled = self.cancelled = self.over = False

    def now_us(self) -> int:
        """This moment in microseconds since 1970."""
        return self.clock.micros(time.monotonic_ns())

    def told(self, *_: object) -> None:
        """SIGTERM: a flag alone."""
        self.over = True

    def run(self) -> None:
        """Reach both sides, say so, and work until told to end."""
        signal.signal(signal.SIGTERM, self.told)
        self.reader.lanes()
        self.ends.outlet.status()
        _practise(self.order)
        self.release.start()
        quicken()
        _say("ready")
        try:
            look = time.monotonic_ns()
            while not self.over:
                self.turn()
                look = self.schedule.trigger(look) if self.schedule.interval else self.next_look(look)
                self.sleep_until(look)
        finally:
            self.log.close()
            self.release.close()
        self.reader.close()

    def next_look(self, last: int) -> int:
        """When to look into the queue again: at once if there is more in it."""
        return last if self.schedule.busy else max(last + POLL, time.monotonic_ns())

    def turn(self) -> None:
        """One batch, if there is one."""
        latest, took = self.reader.latest(), time.monotonic_ns()
        if latest.due is None:
            return
        if not self.begun:
            self.begun = took
            self.clock.set()
        if self.misbehave(took - self.begun):
            return
        saturated = self.schedule.busy
        cut, waiting = self.limited(latest)
        events = self.read(cut)
        self.due = cut.due
        finish = self.schedule.take(events, took, waiting)
        self.sleep_until(finish)
        self.fire(finish)
        released = time.monotonic_ns()
        if events:
            self.acknowledge(cut)
            self.total += events
            row = (took, finish, released, int(saturated), cut.due or 0, events, self.total)
            self.log.append({name: [value] for name, value in zip(BATCH.names, row, strict=True)})
        if not self.release.works:
            raise RuntimeError("outputs can no longer be sent")

    def limited(self, latest: Cut) -> tuple[Cut, int]:
        """A cut with no more than one step of work, or one tick, and how many events it leaves for later."""
        step, new = self.schedule.step, sum(self.news(latest).values())
        if not step or new <= step or self.due is None or self.dropped is not None:
            return latest, 0
        cut = self.reader.latest(step)
        return cut, max(0, new - sum(self.news(cut).values()))

    def news(self, cut: Cut) -> Mapping[Lane, int]:
        """Events of each lane that were not read yet."""
        lanes = (lane for lane in cut.offsets if lane != self.dropped)
        return {lane: n for lane in lanes if (n := cut.offsets[lane] - self.position.get(lane, 0)) > 0}

    def read(self, cut: Cut) -> int:
        """Read up to the cut and add to the panes; how many events."""
        events, fresh = 0, self.news(cut)
        if fresh:
            self.reader.taken({lane: self.position.get(lane, 0) + new for lane, new in fresh.items()})
        for lane, new in fresh.items():
            start = self.position.get(lane, 0)
            for batch, ingested in self.reader.stamped(lane, start, start + new):
                due = batch.column("due").view("int64").to_numpy()
                self.panes.add(batch.column("gem_pack_id").to_numpy(), batch.column("price").to_numpy(), due, ingested)
            self.position[lane] = start + new
            events += new
        return events

    def acknowledge(self, cut: Cut) -> None:
        """Done with everything up to the cut."""
        self.reader.acknowledge({lane: at for lane, at in self.position.items() if lane in cut.offsets})

    def fire(self, finish: int) -> None:
        """Fire the windows that the watermark has passed; without a partition it never passes."""
        if self.due is None or self.dropped is not None:
            return
        fired = self.panes.fire(self.due - self.order.watermark_us)
        if fired is None or self.order.silent:
            return
        wait = self.order.delay_ns * math.exp(self.order.delay_spread * self.random.standard_normal())
        spoilt = self.faults.spoil(fired)
        if len(spoilt["sum"]):
            self.release.at(finish + int(wait), spoilt)

    def misbehave(self, elapsed: int) -> bool:
        """Crash, stall or drop a partition when the order says so. True: this turn reads nothing."""
        order = self.order
        if order.crash_after_ns is not None and elapsed >= order.crash_after_ns:
            raise CrashOrdered(f"crashed, as configured, after {format_duration(order.crash_after_ns)} of load")
        if order.stall_ns and not self.stalled and elapsed >= order.stall_after_ns:
            self.stalled = True
            _say(f"stalls, as configured, for {format_duration(order.stall_ns)}")
            self.sleep_until(time.monotonic_ns() + order.stall_ns)
            self.schedule.rest(time.monotonic_ns())
            return True
        if order.drop_after_ns is not None and elapsed >= order.drop_after_ns and not self.cancelled:
            self.drop()
        return False

    def drop(self) -> None:
        """Leave the last partition alone; once enough of it waits, begin to read it and break off."""
        cut = self.reader.latest()
        self.dropped = max(cut.offsets)
        start = self.position.get(self.dropped, 0)
        if cut.offsets[self.dropped] - start < _DROPPED_ROWS:
            return
        self.ends.break_off(self.dropped, start, cut.offsets[self.dropped])
        self.cancelled = True
        _say(f"dropped partition {self.dropped.partition}, as configured")

    def sleep_until(self, moment: int) -> None:
        """Sleep on an absolute deadline of the monotonic clock."""
        while not self.over and (left := moment - time.monotonic_ns()) > 0:
            time.sleep(min(left, _GLANCE) / SECOND)


def _say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def _practise(order: WorkOrder) -> None:
    """Do everything once on a purchase that nobody made: what is loaded at its first use is loaded now."""
    panes, one = Panes(order.window_us, order.slide_us, order.keys), np.zeros(1, np.int64)
    panes.add(one, one, one, 0)
    fired = panes.fire(order.window_us)
    assert fired is not None
    as_rows(Faults(0, 1, alter=1).spoil(fired))


def _read_order() -> WorkOrder:
    text = b""
    while got := os.read(0, 1 << 16):
        text += got
    return WorkOrder.model_validate_json(text)


def main() -> None:
    """The process's table of contents."""
    without_pandas()
    Work(_read_order()).run()


if __name__ == "__main__":
    main()
