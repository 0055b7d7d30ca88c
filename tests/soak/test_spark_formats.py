"""Spark SQL reads what the generator writes, and its outputs are read back, in every format."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.spark.connect.kafka import ROW, decode_sql, encode_sql
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.requirements import connector_jars
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import open_format, output_format

STAMP = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("gem_pack_id", pa.int32()),
        ("window_start", STAMP),
        ("sum", pa.int64()),
        ("max_due", STAMP),
        ("sequence", pa.int64()),
    ]
)
NAMES: tuple[FormatName, ...] = ("json", "binary", "avro")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "Asia/Kathmandu")
    builder = builder.config("spark.jars", ",".join(map(str, connector_jars(SparkOptions(), "kafka", cache_folder()))))
    session = builder.getOrCreate()
    yield session
    session.stop()


def rows() -> pa.RecordBatch:
    """Numbers of all widths, the longest among them."""
    rng = np.random.default_rng(7)
    most = {"gem_pack_id": 2**31 - 1, "sum": 2**63 - 1, "sequence": 10**12 - 1}
    columns = []
    for field in SCHEMA:
        top = most.get(field.name, 10**16 - 1)
        size = rng.integers(0, 63, 500)
        numbers = np.minimum(rng.integers(0, 2**63 - 1, 500) >> size, top)
        numbers[:2] = 0, top
        column = pa.array(numbers)
        columns.append(column.view(STAMP) if field.type == STAMP else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_spark_reads_the_events_that_are_written_here(spark: SparkSession, name: FormatName) -> None:
    batch, form = rows(), open_format(name, SCHEMA)
    values = pa.array([value.tobytes() for value in form.encode(batch)], pa.binary())
    how = decode_sql(name, SCHEMA)
    read = spark.createDataFrame(pa.table({"value": values})).selectExpr(f"{how.parsed} AS {ROW}")
    table = read.selectExpr(*how.columns).toArrow()
    assert table.column_names == SCHEMA.names
    assert pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(table.columns, SCHEMA, strict=True)], schema=SCHEMA
    ).equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("name", NAMES)
def test_outputs_that_spark_writes_are_read_with_every_sign_and_null(spark: SparkSession, name: FormatName) -> None:
    batch = outputs()
    rows = spark.createDataFrame(pa.Table.from_batches([batch])).selectExpr(
        f"CAST({encode_sql(name, SCHEMA)} AS BINARY) AS value"
    )
    values = rows.toArrow().column("value").combine_chunks().cast(pa.binary())
    assert values.null_count == 0
    assert output_format(name, SCHEMA).decode(values).equals(batch)


MIXED = pa.schema(
    [
        *(("name", pa.string()), ("number", pa.int32()), ("share", pa.float64()), ("comment", pa.string())),
        *(("moment", STAMP), ("mean", pa.float64())),
    ]
)
FLOATS = [0.1, -0.0, 1e22, 5e-324, -2.2250738585072014e-308, math.inf, -math.inf, math.nan, 12345678.9]
TEXTS = ["", "plain", "naïve 🙂", '"quoted"', "back\\slash", "line\nbreak", "NaN", "x" * 300, " spaces "]


def mixed(nulls: bool) -> pa.RecordBatch:
    """Floats and texts of every kind."""
    numbers = list(range(9))
    columns: list[list[Any]] = [TEXTS, numbers, FLOATS, TEXTS[::-1], numbers, FLOATS[::-1]]
    cells = [[None if nulls and (i + j) % 4 == 0 else c for j, c in enumerate(col)] for i, col in enumerate(columns)]
    arrays = [pa.array(column, field.type) for column, field in zip(cells, MIXED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=MIXED)


@pytest.mark.parametrize("name", NAMES)
def test_spark_reads_events_with_floats_and_text(spark: SparkSession, name: FormatName) -> None:
    batch = mixed(nulls=False)
    values = pa.array([value.tobytes() for value in open_format(name, MIXED).encode(batch)], pa.binary())
    how = decode_sql(name, MIXED)
    read = spark.createDataFrame(pa.table({"value": values})).selectExpr(f"{how.parsed} AS {ROW}")
    table = read.selectExpr(*how.columns).toArrow()
    columns = [column.combine_chunks().cast(field.type) for column, field in zip(table.columns, MIXED, strict=True)]
    assert repr(pa.RecordBatch.from_arrays(columns, schema=MIXED).to_pylist()) == repr(batch.to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_outputs_with_floats_and_text_that_spark_writes_are_read(spark: SparkSession, name: FormatName) -> None:
    batch = mixed(nulls=True)
    rows = spark.createDataFrame(pa.Table.from_batches([batch])).selectExpr(
        f"CAST({encode_sql(name, MIXED)} AS BINARY) AS value"
    )
    values = rows.toArrow().column("value").combine_chunks().cast(pa.binary())
    assert repr(output_format(name, MIXED).decode(values).to_pylist()) == repr(batch.to_pylist())


def outputs() -> pa.RecordBatch:
    """Numbers of all widths and signs, the lowest and the highest, and nulls."""
    rng, columns = np.random.default_rng(8), []
    for field in SCHEMA:
        bits = 32 if field.type == pa.int32() else 64
        numbers = rng.integers(-(2**63), 2**63 - 1, 500) >> (64 - bits) >> rng.integers(0, bits - 1, 500)
        numbers[:4] = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1, 0
        column = pa.array(numbers, mask=np.arange(500) % 7 == 6)
        columns.append(column.view(STAMP) if field.type == STAMP else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
