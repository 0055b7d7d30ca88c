"""Which columns a user's function may put out on Spark: refused by their names and types, before any event."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamgauge.engines.spark.connect.kafka import columns_of, kafka_events
from streamgauge.engines.spark.connect.table import UnsupportedColumn
from streamgauge.engines.spark.options import SourceAndSink, StreamSpec
from streamgauge.engines.spark.output_columns import RESERVED, unfit
from streamgauge.model.streams import TIME
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints
from streamgauge.transports.kafka.formats.columns import FormatName


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


@pytest.mark.parametrize("name", ["batch", "emitted_us"])
def test_a_column_that_the_collector_adds_is_refused_by_its_name(name: str) -> None:
    assert name in RESERVED
    said = unfit(columns(user_id=LongType(), **{name: LongType()}))
    assert said == f"outputs a column with the name {name!r}, which streamgauge adds to every output; rename it"


def test_two_columns_of_one_name_are_refused_with_the_name() -> None:
    twice = StructType([StructField("user_id", LongType()), StructField("user_id", IntegerType())])
    assert unfit(twice) == "outputs two columns with the name 'user_id'; rename one of them with alias"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("max_due", StringType(), "'max_due' as string, but it must be a timestamp"),
        ("max_ingested", ArrayType(LongType()), "'max_ingested' as array<bigint>, but it must be a timestamp"),
        ("window_end", StructType([]), "'window_end' as struct<>, but it must be a timestamp"),
        ("gap", CalendarIntervalType(), "'gap' as interval, which cannot be stored"),
        ("nothing", StructType([]), "'nothing' as struct<>, which cannot be stored"),
    ],
)
def test_a_type_that_cannot_be_used_is_refused_with_its_column(name: str, kind: DataType, said: str) -> None:
    assert said in unfit(columns(user_id=LongType(), **{name: kind}))


def test_ordinary_columns_are_taken() -> None:
    kinds = {"user_id": LongType(), "max_due": TimestampType(), "window_end": TimestampType(), "batches": LongType()}
    assert unfit(columns(**kinds)) == ""


def over_kafka(form: FormatName, **kinds: DataType) -> tuple[tuple[str, str], ...]:
    """The columns of outputs of these types, as they are written into a topic."""
    return columns_of(cast(DataFrame, SimpleNamespace(schema=columns(**kinds))), form)


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (BooleanType(), "boolean"),
        (DecimalType(9, 2), "decimal(9,2)"),
        (DateType(), "date"),
        (ArrayType(LongType()), "array<bigint>"),
    ],
)
def test_a_type_that_a_format_of_kafka_cannot_hold_is_refused_with_its_column(
    form: FormatName, kind: DataType, name: str
) -> None:
    said = f"the output column odd is {name}: outputs over Kafka have columns of the types int, bigint, double"
    with pytest.raises(UnsupportedColumn) as refused:
        over_kafka(form, user_id=LongType(), odd=kind)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_the_types_that_the_guide_lists_are_written_in_every_format(form: FormatName) -> None:
    kinds = {"a": IntegerType(), "b": LongType(), "c": DoubleType(), "d": TimestampType(), "e": StringType()}
    assert over_kafka(form, **kinds) == (("a", "int32"), ("b", "int64"), ("c", "float64"), ("d", TIME), ("e", "text"))


def test_a_name_that_avro_cannot_hold_is_refused_and_other_formats_take_it() -> None:
    name = "sum of prices"
    assert over_kafka("binary", **{name: LongType()}) == ((name, "int64"),)
    with pytest.raises(UnsupportedColumn, match="the output column sum of prices cannot be written as avro: "):
        over_kafka("avro", **{name: LongType()})


class NoConnector:
    """A session whose jars have no connector to Kafka: every step leads to the error that Spark raises."""

    def __init__(self, condition: str) -> None:
        self._condition = condition

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return self if name.startswith("read") else lambda *_, **__: self

    def load(self) -> None:
        """As Spark says it."""
        raise AnalysisException("Failed to find the data source: kafka.", self._condition, {"provider": "kafka"})


def events_of(condition: str) -> DataFrame:
    """The events of a topic in a session that fails like this."""
    of = StreamSpec(name="purchases", columns=())
    ends = SourceAndSink(transport="kafka", endpoints={}, streams=(of,), query="q")
    to = KafkaEndpoints(Cluster("localhost:9092"), {"purchases": "topic"}, "outputs", "binary")
    return kafka_events(cast(SparkSession, NoConnector(condition)), ends, of, to)


def test_jars_without_a_connector_to_kafka_are_the_users_error_and_are_named() -> None:
    with pytest.raises(UnsupportedColumn, match=r"Spark has no connector to Kafka: the jars in spark\.jars"):
        events_of("KAFKA_DATA_SOURCE_NOT_ENABLED")
    with pytest.raises(AnalysisException):
        events_of("TABLE_OR_VIEW_NOT_FOUND")
