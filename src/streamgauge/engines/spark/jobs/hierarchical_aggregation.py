"""Statistics of every group of a hierarchy that changes, in one query."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import interval, window_of, with_watermark
from streamgauge.engines.spark.jobs.statistics import moments, outputs
from streamgauge.workloads.data.hierarchy import Tree
from streamgauge.workloads.hierarchical_aggregation import HierarchicalAggregationParams


def flattened(streams: Mapping[str, DataFrame], params: HierarchicalAggregationParams) -> DataFrame:
    """Each reading is joined with its lowest group and copied to every group that contains it.

    The hierarchy repeats all groups of sensors in every period, so a reading is joined only with records of the same
    period: once the watermark has passed a period, no state of it is needed. A join of two streams accepts one column
    of event-time, which is the period, so the due times of both sides become numbers.
    """
    period = F.window("due", interval(params.beat)).alias("period")
    readings = with_watermark(streams["readings"], params.watermark)
    kept = [name for name in ("ingested",) if name in readings.columns]
    sent = readings.select(period, "sensor_id", "value", F.unix_micros("due").alias("due_us"), *kept)
    groups = with_watermark(streams["hierarchy"], params.watermark).select(
        period,
        "sensor_id",
        "group_id",
        F.unix_micros("valid_from").alias("valid_from"),
        F.unix_micros("valid_to").alias("valid_to"),
    )
    found = sent.join(groups, ["period", "sensor_id"]).where("due_us >= valid_from AND due_us < valid_to")
    due = F.timestamp_micros("due_us").alias("due")
    copies = found.select("period", "value", due, *kept, F.explode(_groups(params.tree)).alias("group_id"))
    statistics = moments(copies.groupBy(window_of(params, F.col("period")).alias("window"), "group_id"), copies)
    return outputs(statistics.withColumn("level", F.expr(_level(params.tree))), "group_id", "level")


def _groups(tree: Tree) -> Column:
    """All groups that contain the lowest group of a row."""
    first = tree.first_groups
    above = [
        f"cast({first[level]} + (group_id - {first[-1]}) div {tree.children ** (tree.height - 1 - level)} as int)"
        for level in range(tree.height)
    ]
    return F.expr(f"array({', '.join(above)})")


def _level(tree: Tree) -> str:
    """The level of a group: 0 is the root."""
    return " + ".join(["0", *(f"if(group_id >= {first}, 1, 0)" for first in tree.first_groups[1:])])
