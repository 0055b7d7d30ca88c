"""Kafka as source and sink of Spark: its own connector, and expressions of SQL for the bytes. No user's function.

The events have the same columns as over the queue. ``ingested`` is when the broker appended the record, by its clock.
"""

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import DataType, DoubleType, IntegerType, LongType, StringType, TimestampType

from streamgauge.engines.spark.options import Ends
from streamgauge.transport.kafka.columns import SEQUENCE, FormatName
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.expressions import ROW, reading, writing
from streamgauge.transport.kafka.formats import KEY, name_problem, with_sequence
from streamgauge.transport.schemas import STAMP, schema_of

Columns = tuple[tuple[str, str], ...]
_NO_SOURCE = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND")
"""How Spark calls it when its connector is missing."""
KINDS: dict[type[DataType], str] = {
    IntegerType: "int32",
    LongType: "int64",
    DoubleType: "float64",
    TimestampType: STAMP,
    StringType: "text",
}
"""The types of output columns that every format holds, as a workload writes them down."""


class CannotTravel(ValueError):
    """What keeps Spark from reading or writing over Kafka; the sentence says what to change."""


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
    try:
        records = (spark.readStream if stream else spark.read).format("kafka").options(**said).load()
    except AnalysisException as error:
        if "kafka" not in str(error) or error.getCondition() not in _NO_SOURCE:
            raise
        raise CannotTravel(
            "Spark has no connector to Kafka: the jars in spark.jars do not contain it. Remove spark.jars from "
            "engine.settings; streamgauge then passes the connector that `streamgauge setup kafka` downloads"
        ) from error
    how = reading(to.format, with_sequence(schema_of(ends.columns)))
    rows = records.selectExpr(f"{how.parsed} AS {ROW}", "timestamp AS ingested").selectExpr(*how.columns, "ingested")
    names = [name for name, _ in ends.columns]
    return rows.select(*names, *([SEQUENCE] if ends.numbered else []), "ingested")


def columns_of(outputs: DataFrame, form: FormatName) -> Columns:
    """The columns of outputs as a workload writes them down; raises if the format cannot hold one of them."""
    found = []
    for field in outputs.schema.fields:
        if why := name_problem(form, field.name):
            raise CannotTravel(f"the output column {field.name} cannot be written as {form}: {why}; rename it")
        kind = KINDS.get(type(field.dataType))
        if kind is None:
            raise CannotTravel(
                f"the output column {field.name} is {field.dataType.simpleString()}: outputs over Kafka have columns "
                "of the types int, bigint, double, timestamp and string; cast it to one of them, or remove it"
            )
        found.append((field.name, kind))
    return tuple(found)


def kafka_writer(outputs: DataFrame, to: KafkaEnds) -> "DataStreamWriter":
    """Writes outputs into their topic, in the trial's format."""
    records = outputs.selectExpr(*_record(to.format, columns_of(outputs, to.format)))
    return records.writeStream.format("kafka").options(**_connection(to), topic=to.output)


def _record(form: FormatName, columns: Columns) -> list[str]:
    """Key and value of an output. Rows of one gem pack have one key, so that updates of it stay in their order."""
    value = f"CAST({writing(form, schema_of(columns))} AS BINARY) AS value"
    keyed = dict(columns).get(KEY) == "int32"
    return [f"unhex(lpad(right(hex({KEY}), 8), 8, '0')) AS key", value] if keyed else [value]
