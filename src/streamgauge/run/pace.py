"""Which events are due at which tick: pure, and exact by the plan's integers.

Tick i happens at ``(i + 1) × tick_ns`` after the load began, and publishes what became due since tick i − 1.
So nothing is ever published before it is due. Partition p of P has the events k × P + p; its k-th event has
offset k.
"""

from dataclasses import dataclass

from streamgauge.model.profile import Plan

MICRO = 1_000


def held(events: int, partition: int, partitions: int) -> int:
    """How many of the first ``events`` events of a stream fall into a partition."""
    return -((partition - events) // partitions)


@dataclass(frozen=True, slots=True)
class Pace:
    """The ticks of one stream."""

    plan: Plan
    tick_ns: int
    partitions: int

    def __post_init__(self) -> None:
        if self.tick_ns <= 0 or self.tick_ns % MICRO:
            raise ValueError(f"a tick is a whole number of microseconds, not {self.tick_ns} ns")

    def moment(self, tick: int) -> int:
        """When the tick happens, in nanoseconds since the load began: all that is due before it is published."""
        return (tick + 1) * self.tick_ns

    def tick_at(self, elapsed_ns: int) -> int:
        """The first tick that happens at or after this moment."""
        return max(0, -(-elapsed_ns // self.tick_ns) - 1)

    def due_before(self, elapsed_ns: int) -> int:
        """Events of the stream that are due before this moment."""
        return int(self.plan.count(elapsed_ns))

    def offset(self, elapsed_ns: int, partition: int) -> int:
        """Events of one partition that are due before this moment."""
        return held(self.due_before(elapsed_ns), partition, self.partitions)

    def numbers(self, start: int, stop: int, partition: int) -> tuple[int, int]:
        """First and end of the event numbers whose share in a partition is the offsets ``start … stop − 1``."""
        return start * self.partitions + partition, stop * self.partitions + partition
