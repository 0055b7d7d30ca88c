"""How far the broker's clock is from the generator's, bounded by what the broker said of the batches it took. Pure.

A batch was appended between the moment it was sent and the moment it was acknowledged, so each one bounds the offset
from both sides; all of them together bound it more closely than any single one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.facts import ClockDifference

MILLI = 1_000_000


@dataclass(slots=True)
class ClockOffset:
    """The broker's clock minus the generator's, in nanoseconds: at least ``low``, at most ``high``."""

    low: int | None = None
    high: int | None = None
    probes: int = 0

    def see(self, appended_ms: int, sent_ns: int, acknowledged_ns: int) -> None:
        """Take one batch: the broker's stamp, and two moments of the generator's wall clock around it."""
        if appended_ms < 0:
            return  # nobody stamped it
        stamp = appended_ms * MILLI  # the broker cuts its clock to whole milliseconds
        low, high = stamp - acknowledged_ns, stamp + MILLI - sent_ns
        self.low = low if self.low is None else max(self.low, low)
        self.high = high if self.high is None else min(self.high, high)
        self.probes += 1

    def said(self) -> dict[str, int] | None:
        """For the controller; None before there was a probe. A clock that moved meanwhile leaves a wider span."""
        if self.low is None or self.high is None:
            return None
        return {"low": min(self.low, self.high), "high": max(self.low, self.high), "probes": self.probes}


def together(parts: Sequence[dict[str, int] | None]) -> ClockDifference | None:
    """What several processes of one machine have found, in milliseconds: middle and half width."""
    known = [part for part in parts if part]
    if not known:
        return None
    low, high = max(part["low"] for part in known), min(part["high"] for part in known)
    low, high = min(low, high), max(low, high)
    middle, half = (low + high) / 2 / MILLI, (high - low) / 2 / MILLI
    return ClockDifference(middle, half, sum(part["probes"] for part in known))
