"""The reference engine: a real process on the real queue or on Kafka whose capacity, delays and faults are known."""

from streamgauge.engines.reference.engine import reference

__all__ = ["reference"]
