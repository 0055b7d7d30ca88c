"""Spark SQL reads what the generator writes, and its outputs are read back, in every format."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamgauge.transport.kafka.expressions import ROW, reading, writing
from streamgauge.transport.kafka.formats import FormatName, open_format

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
JAR = Path("~/.m2/repository/org/apache/spark/spark-avro_2.13/4.1.1/spark-avro_2.13-4.1.1.jar").expanduser()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "Asia/Kathmandu")
    if JAR.exists():
        builder = builder.config("spark.jars", str(JAR))
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


@pytest.mark.parametrize("name", ["json", "binary", "avro"])
def test_spark_reads_what_is_written_here_and_is_read_here(spark: SparkSession, name: FormatName) -> None:
    if name == "avro" and not JAR.exists():
        pytest.skip("spark-avro 4.1.1 is not in Maven's folder")
    batch, form = rows(), open_format(name, SCHEMA)
    values = pa.array([value.tobytes() for value in form.encode(batch)], pa.binary())
    how = reading(name, SCHEMA)
    read = spark.createDataFrame(pa.table({"value": values})).selectExpr(f"{how.parsed} AS {ROW}")
    table = read.selectExpr(*how.columns).toArrow()
    assert table.column_names == SCHEMA.names
    assert pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(table.columns, SCHEMA, strict=True)], schema=SCHEMA
    ).equals(pa.Table.from_batches([batch]))
    written = read.selectExpr(*how.columns).selectExpr(f"CAST({writing(name, SCHEMA)} AS BINARY) AS value").toArrow()
    assert form.decode(written.column("value").combine_chunks().cast(pa.binary())).equals(batch)
