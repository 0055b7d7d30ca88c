"""Whole numbers as Spark columns, to the last digit what numpy makes of them in the live path."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamgauge.model.units import SECOND

_HALF = 1024
_BITS = 11


def floor_division(top: Column, bottom: Column) -> Column:
    """⌊top / bottom⌋ for a positive ``bottom``; Spark's own ``div`` cuts towards zero instead."""
    return F.call_function("div", top - F.call_function("pmod", top, bottom), bottom)


def second_since_start(nanos: Column) -> Column:
    """The second in which a moment counts. What was before the load began counts in its first second."""
    return F.greatest(floor_division(nanos, F.lit(SECOND)), F.lit(0))


def second_that_ended(nanos: Column) -> Column:
    """The second that a look at its end belongs to; looks are a little late or early."""
    return F.rint(nanos.cast("double") / F.lit(float(SECOND))).cast("long") - 1


def micros(column: Column, kind: str) -> Column:
    """A stamp in whole microseconds since 1970; ``kind`` is Spark's name of its type."""
    return F.unix_micros(column.cast("timestamp")) if kind.startswith("timestamp") else column.cast("long")


def bucket(latency: Column) -> Column:
    """The bucket of a latency in microseconds, as in ``stats/buckets.py``. Negative ones have none."""
    shift = F.greatest(F.length(F.bin(latency)) - _BITS, F.lit(0))  # by the length in bits: a logarithm may round
    return shift.cast("long") * _HALF + F.call_function("shiftright", latency, shift)
