"""Van Dongen's traffic pipeline, cut after any of its stages: each is a function of what the one before it outputs.

The event time is the time in the JSON, which has the watermark from the parser on. Only one column with a watermark may
reach an operator with state. So the join keeps one of two equal times, and the sliding windows take the start of a
tumbling window as a number.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import interval, with_watermark
from streamgauge.workloads.data.traffic import FLOW, SPEED
from streamgauge.workloads.references.traffic import LONG, SHORT
from streamgauge.workloads.traffic import INGEST, JOIN, PARSE, TUMBLE, TrafficParams

_FIELDS = {FLOW: "cars", SPEED: "speed"}
"""The number that each stream has."""
_STAMPS = {"time": "max_due", "ingested": "max_ingested", "published": "mean_published"}
_MICRO = 1_000


def pipeline(streams: Mapping[str, DataFrame], params: TrafficParams) -> DataFrame:
    """The pipeline up to the stage of the workload, with the outputs of that stage."""
    if params.stage == INGEST:
        return _union({name: _ingested(events, name) for name, events in streams.items()})
    parsed = {name: _parsed(events, name) for name, events in streams.items()}
    if params.stage == PARSE:
        return _union({name: _one_of_both(events, name) for name, events in parsed.items()})
    joined = _joined(*(with_watermark(parsed[name], params.watermark, "time") for name in (FLOW, SPEED)))
    if params.stage == JOIN:
        return joined.select("sequence", "location", "lane", "cars", "speed", *_stamped(joined))
    totals = _totals(joined, params)
    if params.stage == TUMBLE:
        return _windowed(totals, "cars", "speed", "count")
    return _windowed(_changes(totals, params), "cars", "short_change", "long_change", "count")


def _ingested(events: DataFrame, stream: str) -> DataFrame:
    """Stage 0: each record as it is."""
    stamped = events.withColumnRenamed("due", "time")
    return stamped.select("sequence", F.lit(stream).alias("stream"), "json", *_stamped(stamped))


def _parsed(events: DataFrame, stream: str) -> DataFrame:
    """Stage 1: the fields that the pipeline needs."""
    fields = f"location STRING, lane INT, time TIMESTAMP, {_FIELDS[stream]} INT"
    kept = [name for name in ("sequence", "ingested", "published") if name in events.columns]
    rows = events.select(F.from_json("json", fields).alias("row"), *kept)
    return rows.select("row.location", "row.lane", "row.time", f"row.{_FIELDS[stream]}", *kept)


def _one_of_both(parsed: DataFrame, stream: str) -> DataFrame:
    """The outputs of stage 1: one schema for both streams, with a null for what a stream does not have."""
    numbers = [
        (F.col(field) if name == stream else F.lit(None).cast("int")).alias(field) for name, field in _FIELDS.items()
    ]
    return parsed.select("sequence", F.lit(stream).alias("stream"), "location", "lane", *numbers, *_stamped(parsed))


def _joined(flow: DataFrame, speed: DataFrame) -> DataFrame:
    """Stage 2: both observations of a lane at one time. The equal times let Spark drop state behind the watermark."""
    stamps = [name for name in ("ingested", "published") if name in flow.columns]
    other = speed.select("time", "location", "lane", "speed", *(F.col(name).alias(f"other_{name}") for name in stamps))
    both = flow.join(other, ["time", "location", "lane"])
    merged = {
        "ingested": F.greatest("ingested", "other_ingested"),
        "published": F.expr("timestamp_micros((unix_micros(published) + unix_micros(other_published)) div 2)"),
    }
    number = [name for name in ("sequence",) if name in flow.columns]
    return both.select(
        *number, "time", "location", "lane", "cars", "speed", *(merged[name].alias(name) for name in stamps)
    )


def _totals(joined: DataFrame, params: TrafficParams) -> DataFrame:
    """Stage 3: all cars and the mean speed of each location in each tumbling window."""
    stamps = {
        "time": F.max("time"),
        "ingested": F.max("ingested"),
        "published": F.timestamp_micros(F.avg(F.unix_micros("published")).cast("bigint")),
    }
    return joined.groupBy(F.window("time", interval(params.window)), "location").agg(
        F.sum("cars").alias("cars"),
        F.avg("speed").alias("speed"),
        F.count("*").alias("count"),
        *(stamps[name].alias(stamp) for name, stamp in _STAMPS.items() if name in joined.columns),
    )


def _changes(totals: DataFrame, params: TrafficParams) -> DataFrame:
    """Stage 4: the cars of each window against those of two earlier ones, which its sliding window contains.

    The moments of an output are those of its newest window: the earlier ones were there before.
    """
    length = params.window // _MICRO
    stamps = [name for name in _STAMPS.values() if name in totals.columns]
    panes = totals.select(
        F.window(F.col("window"), interval((LONG + 1) * params.window), interval(params.window)).alias("sliding"),
        F.unix_micros(F.col("window.start")).alias("start"),
        "location",
        "cars",
        "count",
        *stamps,
    )

    def of_window(name: str, back: int) -> Column:
        """A column of the window that is so many windows before the newest one."""
        begins = F.unix_micros(F.col("sliding.end")) - (back + 1) * length
        return F.max(F.when(F.col("start") == begins, F.col(name)))

    found = panes.groupBy("sliding", "location").agg(
        *(of_window(name, 0).alias(name) for name in ("cars", "count", *stamps)),
        of_window("cars", SHORT).alias("short_before"),
        of_window("cars", LONG).alias("long_before"),
    )
    newest = F.struct(
        F.timestamp_micros(F.unix_micros(F.col("sliding.end")) - length).alias("start"),
        F.col("sliding.end").alias("end"),
    )
    changes = [_change(f"{name}_before").alias(f"{name}_change") for name in ("short", "long")]
    return found.where("cars IS NOT NULL").select(
        newest.alias("window"), "location", "cars", *changes, "count", *stamps
    )


def _change(before: str) -> Column:
    return F.when(F.col(before) > 0, (F.col("cars") - F.col(before)) / F.col(before))


def _windowed(outputs: DataFrame, *names: str) -> DataFrame:
    """The outputs of a stage with windows."""
    stamps = [name for name in _STAMPS.values() if name in outputs.columns]
    window = [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
    return outputs.select(*window, "location", *names, *stamps)


def _stamped(events: DataFrame) -> list[Column]:
    """The moments of rows that are made from events with one time."""
    return [F.col(name).alias(stamp) for name, stamp in _STAMPS.items() if name in events.columns]


def _union(outputs: Mapping[str, DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, outputs.values())
