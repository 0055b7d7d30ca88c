"""The jobs of Theodolite's workloads over stored events, in batch: windows of days, leap years and large values, which
no trial of seconds can have. In batch every window is final, so all rows of the reference result are there."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamgauge.analyze.session import session
from streamgauge.engines.spark.jobs import hierarchical_aggregation, statistics, time_attribute_aggregation
from streamgauge.judge.compare_columns import columns_of
from streamgauge.judge.outputs import compare_outputs
from streamgauge.model.profile import constant
from streamgauge.model.streams import schema_of
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs, Workload, plans_of
from streamgauge.workloads.references.statistics import population_variance
from streamgauge.workloads.registry import workloads

DAY = 86_400 * SECOND


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session whose time zone is not UTC."""
    with session(1) as made:
        made.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
        yield made


def check(spark: SparkSession, workload: Workload[Any], job: Any, written: dict[str, Any], **load: Any) -> int:  # noqa: ANN401
    """The job over the events of a load outputs exactly the rows of the reference result; how many there are."""
    params = workload.params.model_validate(written)
    streams = workload.streams(params)
    plans = plans_of(streams, constant(load["rate"]), load["horizon"])
    begin = datetime.fromisoformat(load.get("begin", "2024-02-27T22:00:00")).replace(tzinfo=UTC)
    inputs = Inputs(plans, seed=3, origin_ns=int(begin.timestamp()) * SECOND)
    events = {}
    for stream in streams:
        made, schema = workload.events(params, stream.name, inputs).events(0, plans[stream.name].total), []
        for field in schema_of(stream.schema):
            schema.append(pa.array(made[field.name]).cast(pa.int64()).cast(field.type))
        table = pa.Table.from_arrays(schema, schema=schema_of(stream.schema))
        events[stream.name] = spark.createDataFrame(table)
    reference = workload.reference(params, inputs)
    assert reference is not None
    expected = reference.until({name: plan.total for name, plan in plans.items()})
    outputs = job(events, params).toArrow()
    contract = workload.output(params)
    assert set(outputs.schema.names) == {name for name, _ in contract.schema} - {"max_ingested"}
    observed = columns_of(outputs, expected)
    found = compare_outputs(
        expected,
        observed,
        window=0,
        closed=1 << 62,
        identity=contract.identity,
        tolerance=contract.tolerance,
    ).account
    assert (found.lost, found.duplicate, found.wrong) == (0, 0, 0)
    assert found.observed == found.expected
    return found.expected


@pytest.mark.parametrize("variant", ["naive", "panes"])
@pytest.mark.parametrize(
    ("attribute", "modulo", "horizon"),
    [
        ("hour-of-day", 0, 3 * DAY),
        ("day-of-week", 0, 9 * DAY),
        ("day-of-year", 0, 400 * DAY),
        ("day-of-year", 5, 20 * DAY),
        ("hour-of-week", 0, 9 * DAY),
        ("second-mod-7", 0, 2 * DAY),
    ],
)
def test_windows_of_days_have_every_value_of_the_attribute(
    spark: SparkSession, variant: str, attribute: str, modulo: int, horizon: int
) -> None:
    workload = workloads()["time-attribute-aggregation"]
    written = {"keys": 3, "attribute": attribute} | ({"attribute_values": modulo} if modulo else {})
    job = getattr(time_attribute_aggregation, variant)
    assert check(spark, workload, job, written, rate=3_000 / (horizon / SECOND), horizon=horizon) > 50


@pytest.mark.parametrize(
    "written",
    [
        {"children": 4, "height": 3, "moves": "40%", "window": "4s", "heartbeat": "1s"},
        {"children": 3, "height": 1, "window": "4s"},
        {"children": 2, "height": 6, "moves": "100%", "window": "6s", "slide": "2s"},
        {"children": 1, "height": 5, "window": "3s", "slide": "2s"},
    ],
)
def test_groups_have_the_readings_of_the_sensors_that_are_in_them(spark: SparkSession, written: dict[str, Any]) -> None:
    workload = workloads()["hierarchical-aggregation"]
    params = workload.params.model_validate(written)
    rate = workload.rate(params)
    assert rate is not None
    job = hierarchical_aggregation.flattened
    rows = check(spark, workload, job, written, rate=max(rate, 20.0), horizon=12 * SECOND)
    assert rows >= 3 * params.tree.groups


def test_the_variance_of_large_values_that_are_close_to_each_other_has_all_its_digits(spark: SparkSession) -> None:
    value = np.array([2_000_000_000, 2_000_000_001], np.int64)
    moments = {"count": [2], "sum": [int(value.sum())], "squares": [int((value * value).sum())]}
    table = pa.table({**moments, "min": [0], "max": [0], "window": [{"start": 0, "end": 1}]})
    (row,) = statistics.outputs(spark.createDataFrame(table)).collect()
    assert (row["mean"], row["variance"]) == (2_000_000_000.5, 0.25)
    (expected,) = population_variance(*(np.array(column, np.int64) for column in moments.values()))
    assert row["variance"] == expected
