"""Which events are due at which tick: pure, and exact by the plan's integers.

Tick i happens at ``(i + 1) × tick_ns`` after the load began, and publishes what became due since tick i − 1.
So nothing is ever published before it is due. Partition p of P has the events k × P + p; its k-th event has
offset k.
"""

from dataclasses import dataclass, field

import numpy as np

from streamgauge.model.profile import Ints, Plan
from streamgauge.model.units import SECOND

MICRO = 1_000
MILLI = 1_000_000
TICK, KAFKA_TICK = 5 * MILLI, 10 * MILLI
"""From one tick to the next. On Kafka each is a request for every partition, and a request costs a broker a millisecond
of the core that it may share with the driver, however few events are in it."""
_FINEST, _FINE = MILLI, 2 * MILLI
_OF_LATENCY = 50
"""An event waits half an interval for its tick on average: 1 % of a latency that is so many intervals."""
_REQUESTS = 500
"""Requests per second that a broker beside the driver takes without a loss."""


def send_interval(kafka: bool, load: float, partitions: int, latency: int) -> int:
    """Nanoseconds from one tick to the next, for a system that takes events as they come.

    Micro-batches collect events anyway: there a finer interval than the usual one would only cost requests. ``latency``
    is the tightest objective on one, 0 if there is none. A tick without events sends nothing, so that a low load may
    have the finest interval.
    """
    usual = KAFKA_TICK if kafka else TICK
    wanted = latency // _OF_LATENCY if latency else _FINE
    least = partitions * SECOND // _REQUESTS if kafka and load * partitions > _REQUESTS else _FINEST
    return min(usual, max(wanted, least, _FINEST)) // (MILLI // 2) * (MILLI // 2)


def held(events: int, partition: int, partitions: int) -> int:
    """How many of the first ``events`` events of a stream fall into a partition."""
    return -((partition - events) // partitions)


@dataclass(frozen=True, slots=True)
class Pace:
    """The ticks of one stream."""

    plan: Plan
    tick_ns: int
    partitions: int
    _edges: Ints = field(init=False, repr=False, compare=False)
    """Events due before each tick's begin, counted beforehand: a tick has no time for it."""

    def __post_init__(self) -> None:
        if self.tick_ns <= 0 or self.tick_ns % MICRO:
            raise ValueError(f"a tick is a whole number of microseconds, not {self.tick_ns} ns")
        edges = self.plan.count(np.arange(0, self.plan.horizon + self.tick_ns, self.tick_ns))
        object.__setattr__(self, "_edges", edges)

    def moment(self, tick: int) -> int:
        """When the tick happens, in nanoseconds since the load began: all that is due before it is published."""
        return (tick + 1) * self.tick_ns

    def tick_at(self, elapsed_ns: int) -> int:
        """The first tick that happens at or after this moment."""
        return max(0, -(-elapsed_ns // self.tick_ns) - 1)

    def due_before(self, elapsed_ns: int) -> int:
        """Events of the stream that are due before this moment."""
        tick, rest = divmod(elapsed_ns, self.tick_ns)
        if rest == 0 and 0 <= tick < len(self._edges):
            return int(self._edges[tick])
        return int(self.plan.count(elapsed_ns))

    def offset(self, elapsed_ns: int, partition: int) -> int:
        """Events of one partition that are due before this moment."""
        return held(self.due_before(elapsed_ns), partition, self.partitions)

    def numbers(self, start: int, stop: int, partition: int) -> tuple[int, int]:
        """First and end of the event numbers whose share in a partition is the offsets ``start … stop − 1``."""
        return start * self.partitions + partition, stop * self.partitions + partition
