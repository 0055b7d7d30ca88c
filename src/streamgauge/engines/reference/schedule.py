"""When the work of a batch is done, if it is done at exactly the capacity. Pure: the time is an argument."""

from dataclasses import dataclass

from streamgauge.model.units import SECOND

STEP = 20_000_000
"""Nanoseconds of work in one take at most, where there are no micro-batches."""
MOST_BEHIND = SECOND // 2
"""A process that is later than this has stalled: that time is not made good."""


def work_begins(busy: bool, now: int, finish: int) -> int:
    """When the work taken now begins, by a schedule whose work before it is done at ``finish``."""
    return finish if busy and now - finish < MOST_BEHIND else max(finish, now)


@dataclass(slots=True)
class Schedule:
    """The planned time is passed from batch to batch, not the actual time.

    So sleeps that end late and calls that take long do not add up, and the capacity is exact in the long run.
    """

    capacity: float
    """Events per second."""
    interval: int = 0
    """Nanoseconds between two micro-batches; 0: continuous."""
    finish: int = 0
    """When the work taken so far is done, on the monotonic clock."""
    busy: bool = False
    """Whether more was there than the last take took: then the next work begins immediately."""

    @property
    def step(self) -> int:
        """Events in one take at most; 0: all that is there."""
        return 0 if self.interval else max(1, int(self.capacity * STEP / SECOND))

    def take(self, events: int, now: int, waiting: int = 0) -> int:
        """Take so many events, and leave so many. When they are done."""
        self.finish = work_begins(self.busy, now, self.finish) + round(events * SECOND / self.capacity)
        self.busy = waiting > 0
        return self.finish

    def trigger(self, last: int) -> int:
        """The trigger after the one at ``last``: at a whole interval, or immediately after a batch that took longer."""
        due = (last // self.interval + 1) * self.interval
        self.busy = self.finish >= due
        return max(due, self.finish)

    def rest(self, now: int) -> None:
        """It did nothing until now: that time is not made good."""
        self.finish, self.busy = max(self.finish, now), False
