"""The difference between the broker's clock and the load driver's, bounded by acknowledged batches. Pure.

A batch was appended after it was sent and before it was acknowledged, so each batch bounds the difference from both
sides. All batches together bound it more closely than any single one.
"""

from dataclasses import dataclass

MILLI = 1_000_000


@dataclass(slots=True)
class ClockOffset:
    """The broker's clock minus the load driver's, in nanoseconds: at least ``low``, at most ``high``."""

    low: int | None = None
    high: int | None = None
    probes: int = 0

    def add(self, appended_ms: int, sent_ns: int, acknowledged_ns: int) -> None:
        """Add a batch: the broker's stamp, and the times of the load driver's wall clock around it."""
        if appended_ms < 0:
            return  # the broker did not stamp it
        stamp = appended_ms * MILLI  # the broker rounds its clock down to whole milliseconds
        low, high = stamp - acknowledged_ns, stamp + MILLI - sent_ns
        self.low = low if self.low is None else max(self.low, low)
        self.high = high if self.high is None else min(self.high, high)
        self.probes += 1

    def bounds(self) -> dict[str, int] | None:
        """The bounds as JSON; None without a batch. If a clock was set meanwhile, the interval is wider."""
        if self.low is None or self.high is None:
            return None
        return {"low": min(self.low, self.high), "high": max(self.low, self.high), "probes": self.probes}
