"""The reference engine: a real process on a real transport whose capacity, delays and faults are known."""

from streamgauge.engines.reference.engine import reference

__all__ = ["reference"]
