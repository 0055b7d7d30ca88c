"""The six statistics of Theodolite, from sums of whole numbers.

Spark's ``var_pop`` updates a mean in floating point: its last digits depend on the order of the rows, and two partial
results of it cannot be combined in SQL. Count, Σx and Σx² are whole numbers. They add up in any order, over panes too,
and are exact as long as Σx² fits into 64 bits. It does for 9 * 10^10 values of at most 9,999 in one window of a key
(``MOST_EVENTS``); with more of them Spark fails. The numerator of the variance, n*Σx² - (Σx)², is then computed in
decimals, once per output. In 64 bits it would not fit, and in floating point it loses every digit if the values are
large and close to each other.
"""

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import newest_stamps, window_bounds

_VARIANCE = (
    "cast(cast(count as decimal(11,0)) * cast(squares as decimal(19,0)) "
    "- cast(sum as decimal(16,0)) * cast(sum as decimal(16,0)) as double) "
    "/ (cast(count as double) * cast(count as double))"
)


def moments(groups: GroupedData, events: DataFrame) -> DataFrame:
    """Count, Σx, Σx² and the extremes of each group of readings."""
    squares = F.sum(F.col("value").cast("bigint") * F.col("value")).alias("squares")
    extremes = [F.min("value").alias("min"), F.max("value").alias("max")]
    return groups.agg(
        F.count("*").alias("count"), F.sum("value").alias("sum"), squares, *extremes, *newest_stamps(events)
    )


def combined(groups: GroupedData, parts: DataFrame) -> DataFrame:
    """The same of each group of partial results."""
    added = [F.sum(name).alias(name) for name in ("count", "sum", "squares")]
    newest = [F.max(name).alias(name) for name in ("max", "max_due", "max_ingested") if name in parts.columns]
    return groups.agg(*added, F.min("min").alias("min"), *newest)


def outputs(found: DataFrame, *keys: str) -> DataFrame:
    """The columns of the outputs, from the moments of each key and window."""
    statistics: list[Column | str] = ["count", "sum", "min", "max"]
    statistics += [(F.col("sum") / F.col("count")).alias("mean"), F.expr(_VARIANCE).alias("variance")]
    stamps = [name for name in ("max_due", "max_ingested") if name in found.columns]
    return found.select(*keys, *window_bounds(), *statistics, *stamps)
