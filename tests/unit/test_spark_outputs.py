"""Which columns a user's function may put out on Spark: refused by their names and types, before any event."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamgauge.engines.spark.output_columns import RESERVED, unfit


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
