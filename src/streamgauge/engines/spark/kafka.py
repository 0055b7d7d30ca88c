"""Kafka as source and sink of Spark: its own connector, and expressions of SQL for the bytes. No user's function.

The events have the same columns as over the queue. ``ingested`` is when the broker appended the record, by its clock.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import DataType, IntegerType, LongType, TimestampType

from streamgauge.engines.spark.options import Ends
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.expressions import ROW, reading, writing
from streamgauge.transport.kafka.formats import KEY, SEQUENCE, FormatName, with_sequence
from streamgauge.transport.schemas import STAMP, schema_of

Columns = tuple[tuple[str, str], ...]
_KINDS: dict[type[DataType], str] = {IntegerType: "int32", LongType: "int64", TimestampType: STAMP}


class CannotTravel(ValueError):
    """An output with a column that no format can hold."""


def _connection(to: KafkaEnds) -> dict[str, str]:
    """The options by which the connector reaches the cluster. They hold the secrets: for the query alone."""
    return {f"kafka.{name}": value for name, value in to.cluster.java_settings().items()}


def kafka_events(spark: SparkSession, ends: Ends, to: KafkaEnds, *, stream: bool = True) -> DataFrame:
    """The events of the trial's topic from its first record on, as a stream or as what is there now."""
    topic = to.inputs[ends.stream]
    said: dict[str, Any] = {
        **_connection(to),
        **{f"kafka.{name}": value for name, value in ends.consumer.items()},
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "groupIdPrefix": f"{topic}.spark",
    }
    if stream and ends.max_batch:
        said["maxOffsetsPerTrigger"] = str(ends.max_batch)
    records = (spark.readStream if stream else spark.read).format("kafka").options(**said).load()
    how = reading(to.format, with_sequence(schema_of(ends.columns)))
    rows = records.selectExpr(f"{how.parsed} AS {ROW}", "timestamp AS ingested").selectExpr(*how.columns, "ingested")
    names = [name for name, _ in ends.columns]
    return rows.select(*names, *([SEQUENCE] if ends.numbered else []), "ingested")


def columns_of(outputs: DataFrame) -> Columns:
    """The columns of outputs as a workload writes them down; raises where one cannot travel."""
    found = []
    for field in outputs.schema.fields:
        kind = _KINDS.get(type(field.dataType))
        if kind is None:
            raise CannotTravel(
                f"the output column {field.name} is {field.dataType.simpleString()}: "
                "int, bigint and timestamp can travel over Kafka; cast it, or leave it out"
            )
        found.append((field.name, kind))
    return tuple(found)


def kafka_writer(outputs: DataFrame, to: KafkaEnds) -> "DataStreamWriter":
    """Writes outputs into their topic, in the trial's format."""
    records = outputs.selectExpr(*_record(to.format, columns_of(outputs)))
    return records.writeStream.format("kafka").options(**_connection(to), topic=to.output)


def _record(form: FormatName, columns: Columns) -> list[str]:
    """Key and value of an output. Rows of one gem pack have one key, so that updates of it stay in their order."""
    value = f"CAST({writing(form, schema_of(columns))} AS BINARY) AS value"
    keyed = dict(columns).get(KEY) == "int32"
    return [f"unhex(lpad(hex({KEY}), 8, '0')) AS key", value] if keyed else [value]
