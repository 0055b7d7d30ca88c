"""The table of what runs: engine × workload × variant × transport × format, from what is registered."""

from collections.abc import Sequence
from typing import Any

import pytest

from streamgauge.engines.contract import ANY_WORKLOAD, Engine, Job, Layout, Options, Requirement, Situation, Traits
from streamgauge.engines.registry import engines
from streamgauge.engines.simulated import SimulatedOptions
from streamgauge.engines.spark.jobs.table import BUILT_IN
from streamgauge.engines.table import (
    Request,
    Row,
    rows,
    transports_of,
    unsupported,
    workloads_of,
)
from streamgauge.model.experiment import Dimension, Span, TransportChoice, WorkloadChoice
from streamgauge.model.units import SECOND
from streamgauge.transports.registry import transports
from streamgauge.workloads.registry import workloads
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

WINDOW = Dimension("window", "duration", "higher", "length of the window")


class Other:
    """An engine of another package."""

    name, summary, options = "other", "for this test", Options
    jobs: tuple[Job, ...] = (
        Job("ingest", "fast", frozenset({"kafka", "a transport that is not installed"})),
        Job("windowed-aggregation"),
    )

    def check(self, situation: Situation[Any]) -> Sequence[str]:
        """Everything can be run."""
        return ()

    def requirements(self, options: Options, transport: str) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def layout(self, options: Options, instances: int) -> Layout:
        """Any."""
        return Layout(instances)

    def traits(self, options: Options) -> Traits:
        """Nothing special."""
        return Traits(batch_interval_ns=SECOND)


def test_every_row_is_of_what_is_registered() -> None:
    for row in rows():
        assert row.engine in engines()
        assert row.workload in (*workloads(), ANY_WORKLOAD)
        assert row.transport in transports()
        formats = transports()[row.transport].formats
        assert row.format in (formats or ("",))
    assert len(rows()) == len({*rows()})


@pytest.mark.parametrize(
    "row",
    [
        Row("simulated", ANY_WORKLOAD, "default", "queue", ""),
        Row("reference", "windowed-aggregation", "default", "queue", ""),
        *(Row("reference", "windowed-aggregation", "default", "kafka", form) for form in ("binary", "json", "avro")),
        *(Row("spark", w, v, "queue", "") for w in ("windowed-aggregation", "ingest") for v in ("naive", "panes")),
        *(Row("spark", "database-storage", "rows", t, f) for t, f in (("queue", ""), ("kafka", "json"))),
        Row("spark", "downsampling", "naive", "kafka", "avro"),
        Row("spark", "time-attribute-aggregation", "panes", "queue", ""),
        *(Row("spark", "windowed-join", variant, "queue", "") for variant in ("union", "stream-stream")),
        *(Row("spark", "ingest", "naive", "kafka", form) for form in ("binary", "json", "avro")),
        Row("spark", ANY_WORKLOAD, "custom", "kafka", "avro"),
    ],
)
def test_the_table_has_what_is_built_in(row: Row) -> None:
    assert row in rows()


def test_a_simulated_engine_has_no_broker() -> None:
    assert {row.transport for row in rows() if row.engine == "simulated"} == {"queue"}


def test_an_engine_is_in_the_table_because_it_is_registered() -> None:
    engine: Engine = Other()
    assert rows({"other": engine}) == [
        *(Row("other", "ingest", "fast", "kafka", form) for form in transports()["kafka"].formats),
        Row("other", "windowed-aggregation", "default", "queue", ""),
    ]
    assert workloads_of(engine) == frozenset({"ingest", "windowed-aggregation"})
    assert transports_of(engine) == {"kafka", "queue", "a transport that is not installed"}


@pytest.mark.parametrize(
    ("workload", "transport", "found"),
    [
        ("ingest", "kafka", None),
        ("ingest", "queue", ("with the workload ingest", ("a transport that is not installed", "kafka"))),
        ("windowed-aggregation", "kafka", ("with the workload windowed-aggregation", ("queue",))),
        ("ingest", "pigeons", ("pigeons", ("a transport that is not installed", "kafka"))),
        ("downsampling", "queue", None),
        ("", "kafka", None),
    ],
)
def test_a_job_must_have_the_workload_and_the_transport_together(
    workload: str, transport: str, found: tuple[str, tuple[str, ...]] | None
) -> None:
    missing = unsupported(Other(), workload, transport)
    if found is None:
        assert missing is None, "a workload that is not implemented is reported as such"
        return
    assert missing is not None
    assert missing.sentence.startswith("engine other does not support transport ")
    assert missing.sentence.endswith(found[0])
    assert missing.allowed == found[1]


def test_the_workloads_of_an_engine_are_those_that_it_names() -> None:
    assert workloads_of(engines()["reference"]) == frozenset({"windowed-aggregation"})
    assert workloads_of(engines()["spark"]) == frozenset(job.workload for job in BUILT_IN)
    assert workloads_of(engines()["simulated"]) is None, "any"


def test_an_engine_without_jobs_implements_nothing() -> None:
    empty = Other()
    empty.jobs = ()
    assert (workloads_of(empty), transports_of(empty), rows({"other": empty})) == (frozenset(), frozenset(), [])


def test_a_simulated_engine_needs_nothing_from_the_system() -> None:
    assert engines()["simulated"].requirements(SimulatedOptions(), "queue") == ()


def test_what_an_experiment_wants_becomes_a_situation_of_an_engine() -> None:
    params = WindowedAggregationParams().model_dump()
    transport = TransportChoice("kafka", {"format": "json"})
    wanted = Request(WorkloadChoice("windowed-aggregation", params), transport, partitions=3)
    situation = wanted.situation(engines()["simulated"], {"capacity": 5.0})
    assert situation.options == SimulatedOptions.from_resolved({"capacity": 5.0})
    assert (situation.workload, situation.transport, situation.partitions) == ("windowed-aggregation", "kafka", 3)
    assert situation.transport_options == {"format": "json"}
    assert situation.params == (WindowedAggregationParams(),)
    assert situation.ranged == ""


def test_a_parameter_that_is_searched_gives_one_set_of_parameters_for_each_value() -> None:
    choice = WorkloadChoice("windowed-aggregation", WindowedAggregationParams().model_dump())
    wanted = Request(choice, searched=(WINDOW, Span(values=(8e9, 16e9))))
    cases = wanted.cases()
    assert [getattr(case, "window", None) for case in cases] == [8 * SECOND, 16 * SECOND]
    assert all(isinstance(getattr(case, "window", None), int) for case in cases), "whole nanoseconds"
    assert wanted.situation(Other(), {}).ranged == "", "a list has no values between"


def test_of_a_range_the_ends_are_known() -> None:
    choice = WorkloadChoice("windowed-aggregation", WindowedAggregationParams().model_dump())
    wanted = Request(choice, searched=(WINDOW, Span(between=(4e9, 64e9))))
    assert [getattr(case, "window", None) for case in wanted.cases()] == [4 * SECOND, 64 * SECOND]
    assert wanted.situation(Other(), {}).ranged == "window"


@pytest.mark.parametrize("workload", [None, WorkloadChoice("no-such-workload", {})])
def test_without_a_known_workload_there_are_no_parameters(workload: WorkloadChoice | None) -> None:
    assert Request(workload).cases() == []
