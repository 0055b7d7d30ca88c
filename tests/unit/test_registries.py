"""Engines, transports and workloads by name."""

import tomllib
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamgauge.engines import registry as engine_registry
from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import BUILT_IN, GROUP, engine_names, engines, load_problems
from streamgauge.model.discovery import Discovery
from streamgauge.model.discovery import discover as discover_all
from streamgauge.model.experiment import Dimension
from streamgauge.parse.fields import write_values
from streamgauge.transports import registry as transport_registry
from streamgauge.workloads import registry
from streamgauge.workloads.contract import Workload
from streamgauge.workloads.registry import workloads

ROOT = Path(__file__).parents[2]


def discover(points: Iterable[EntryPoint]) -> Discovery:
    return discover_all("engine", Engine, points)


@pytest.mark.parametrize("name", ["simulated", "reference", "spark"])
def test_the_engines_of_streamgauge_are_built_in(name: str) -> None:
    assert engines()[name].name == name
    assert load_problems() == ()
    assert name in engine_names()


@pytest.mark.parametrize(
    "value", ["streamgauge.nowhere:engine", "streamgauge.engines.contract:nothing", "a b c", "json:x"]
)
def test_a_plug_in_that_cannot_be_loaded_is_a_sentence_and_the_others_stay(value: str) -> None:
    found = discover([EntryPoint("mine", value, GROUP), *BUILT_IN])
    assert list(found.found) == ["simulated", "reference", "spark"]
    (problem,) = found.problems
    assert problem.startswith("engine mine of streamgauge cannot be loaded: ")


def test_a_plug_in_that_is_no_engine_is_a_sentence() -> None:
    (problem,) = discover([EntryPoint("mine", "json:dumps", GROUP)]).problems
    assert "does not implement the interface" in problem


def test_an_engine_named_twice_by_one_package_is_there_once() -> None:
    found = discover([*BUILT_IN, *BUILT_IN])
    assert (list(found.found), found.problems) == (["simulated", "reference", "spark"], ())


def test_a_plug_in_that_is_no_workload_is_a_sentence_and_the_others_stay() -> None:
    points = [EntryPoint("mine", "json:dumps", registry.GROUP), *registry.BUILT_IN]
    found = discover_all("workload", Workload, points)
    assert (list(found.found), registry.load_problems()) == (list(workloads()), ())
    assert [*found.found] == [point.name for point in registry.BUILT_IN]
    (problem,) = found.problems
    assert problem.endswith("does not implement the interface Workload of workloads/contract.py")


@pytest.mark.parametrize("registered", [engine_registry, transport_registry, registry], ids=lambda r: r.GROUP)
def test_what_is_built_in_is_registered_in_one_place(registered: ModuleType) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        packaged = tomllib.load(file)["project"].get("entry-points", {})
    assert registered.GROUP not in packaged, "the registry lists it, and pyproject.toml would be a second list"
    assert all(point.name == point.load().name for point in registered.BUILT_IN)


@pytest.mark.parametrize("workload", workloads().values(), ids=workloads().keys())
def test_every_dimension_is_a_parameter_of_its_workload(workload: Workload[Any]) -> None:
    assert {d.name for d in workload.dimensions} <= set(workload.params.model_fields)


@pytest.mark.parametrize(
    ("workload", "dimension"),
    [(w, d) for w in workloads().values() for d in w.dimensions],
    ids=lambda x: x.name,
)
def test_going_the_hard_way_never_makes_the_work_or_the_load_less(
    workload: Workload[Any], dimension: Dimension
) -> None:
    params = workload.params().model_dump()
    base = params[dimension.name] or (60 * 10**9 if dimension.unit == "duration" else 1)
    harder = base * 2 if dimension.harder == "higher" else base // 2
    before, after = (workload.params.from_resolved(params | {dimension.name: value}) for value in (base, harder))
    assert (workload.rate(after) or 0) * workload.work(after) >= (workload.rate(before) or 0) * workload.work(before)
    assert workload.work(after) >= workload.work(before)


def test_the_work_of_an_event_is_its_copies_in_windows_and_groups() -> None:
    known = workloads()
    sums, attributes = known["windowed-aggregation"], known["time-attribute-aggregation"]
    assert sums.work(sums.params.from_resolved({"window": 8, "slide": 4})) == 2.0
    assert attributes.work(attributes.params.from_resolved({"window": 60, "slide": 1})) == 60.0
    hierarchy = known["hierarchical-aggregation"]
    params = hierarchy.params.model_validate({"children": 10, "height": 4, "frequency": "2/s"})
    assert (hierarchy.rate(params), hierarchy.work(params)) == (20_000.0 + 1_000.4, 4.0)


@pytest.mark.parametrize("workload", workloads().values(), ids=workloads().keys())
def test_resolved_parameters_can_be_written_and_read_again(workload: Workload[Any]) -> None:
    params = workload.params()
    assert workload.params.model_validate(write_values(workload.params, params.model_dump())) == params
