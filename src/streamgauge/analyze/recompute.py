"""The raw logs of a trial → Seconds. Only the last step runs outside Spark: a few rows per second."""

from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgauge.analyze import journals as files
from streamgauge.analyze import seconds as out
from streamgauge.analyze.journals import Journals
from streamgauge.analyze.seconds import delays, driver_seconds, monitor_seconds
from streamgauge.model.seconds import COLUMNS, KINDS, Column, Kind, Latencies, Seconds

_NUMBERED: dict[int, Kind] = {6: "missing", 7: "missing-windows"}
"""Kinds of latencies of outputs that never came, by their number in journals (``run/collector/counts.py``)."""


def recompute(spark: SparkSession, journals: Journals) -> Seconds:
    """The seconds that ``run/trial/assemble.py`` computed for this trial, counted again from its raw logs."""
    found = files.outputs(spark, journals)
    outputs = [out.with_latencies(query, journals.origin_us, journals.firing) for query in found]
    rows = _within(counts(spark, journals, outputs), journals.stop).toArrow()
    closed = _numbers(rows, "closed") == journals.drivers
    columns = _by_second(rows, int(np.count_nonzero(closed)))
    length = len(columns["offered"])
    counted = latencies(spark, journals, outputs).unionByName(delayed(spark, journals))
    return Seconds(0, columns, _by_kind(_within(counted, length).toArrow()))


def counts(spark: SparkSession, journals: Journals, outputs: list[DataFrame]) -> DataFrame:
    """A row per second with every column that was recorded, and ``closed``: how many load drivers have closed it."""
    folder = journals.folder
    ticks, acks, samples = (
        files.of_drivers(spark, journals, name, schema)
        for name, schema in (("ticks-{}", files.TICKS), ("acks-{}", files.ACKS), ("driver-{}-seconds", files.SAMPLES))
    )
    roles, cores = (
        files.rows(spark, folder / "monitor-roles", files.ROLES),
        files.rows(spark, folder / "monitor-cores", files.CORES),
    )
    appends = files.of_drivers(spark, journals, "appends-{}", files.APPENDS) if journals.broker else None
    health = files.rows(spark, folder / "collector-health", files.HEALTH)
    parts = [
        driver_seconds(ticks, appends, acks, samples),
        monitor_seconds(roles, cores, journals.sut_cores, journals.driver_cores),
        out.starved(health),
    ]
    parts += [part for query in outputs for part in (out.output_counts(query), out.firing_counts(query))]
    whole = files.union_all(parts)
    # one part has each column; only outputs come in several, one per query, and add up
    return whole.groupBy("second").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in whole.columns if name != "second")
    )


def latencies(spark: SparkSession, journals: Journals, outputs: list[DataFrame]) -> DataFrame:
    """Counts by second, kind and bucket, of all queries together and of the outputs that never came."""
    found = reduce(lambda one, other: one.unionByName(other), [missing(spark, journals), *map(out.latencies, outputs)])
    return found.groupBy("second", "kind", "bucket").agg(F.sum("count").alias("count"))


def delayed(spark: SparkSession, journals: Journals) -> DataFrame:
    """Send delays, and with a broker append delays, as latencies are counted."""
    ticks, samples, appends = (
        files.of_drivers(spark, journals, name, schema)
        for name, schema in (
            ("ticks-{}", files.TICKS),
            ("driver-{}-seconds", files.SAMPLES),
            ("appends-{}", files.APPENDS),
        )
    )
    found = delays(ticks, "actual", "actual", "send-delay", samples).unionByName(
        delays(appends, "appended", "confirmed", "append-delay", samples)
    )
    return found.groupBy("second", "kind", "bucket").agg(F.sum("count").alias("count"))


def missing(spark: SparkSession, journals: Journals) -> DataFrame:
    """The latencies that outputs have at least which never came, as the check against the reference found them."""
    names = F.create_map(*(F.lit(each) for pair in _NUMBERED.items() for each in pair))
    rows = files.rows(spark, journals.folder / "missing-latencies", files.LATENCIES)
    return rows.select("second", names[F.col("kind")].alias("kind"), "bucket", "count")


def _within(rows: DataFrame, stop: int) -> DataFrame:
    return rows.where(F.col("second").between(0, stop - 1))


def _numbers(rows: pa.Table, name: str) -> Column:
    return np.asarray(rows[name].to_numpy(), np.int64)


def _by_second(rows: pa.Table, length: int) -> dict[str, Column]:
    """Whole columns of the first ``length`` seconds; what was not recorded is zero."""
    second, columns = _numbers(rows, "second"), {}
    inside = second < length
    for name in COLUMNS:
        columns[name] = np.zeros(length, np.int64)
        if name in rows.column_names:
            columns[name][second[inside]] = _numbers(rows, name)[inside]
    return columns


def _by_kind(rows: pa.Table) -> dict[Kind, Latencies]:
    """In order of second and bucket, so that the same recording always gives the same Seconds."""
    kind = np.asarray(rows["kind"].to_numpy(zero_copy_only=False), object)
    second, bucket, count = (_numbers(rows, name) for name in ("second", "bucket", "count"))
    order = np.lexsort((bucket, second))
    result: dict[Kind, Latencies] = {}
    for each in KINDS:
        selected = order[kind[order] == each]
        if len(selected):
            result[each] = Latencies(second[selected], bucket[selected], count[selected])
    return result
