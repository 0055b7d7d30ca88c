"""The JSON Schema for editors and the parser accept the same values, for every key of an experiment file."""

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from streamgauge.engines.registry import engines
from streamgauge.parse import ExperimentError, read, schema
from streamgauge.parse.read import KEYS
from streamgauge.parse.sections import SearchSection, TrialSection
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.workloads.registry import workloads

SCHEMA = schema()
VALID = Draft202012Validator(SCHEMA)
FORM = re.compile(
    "is written like|needs a unit|a rate is|a size needs|"
    "must be (text|a mapping|a list|true or false|a number|a name)|must have 1 to 64|"
    "unknown (value|key|option|parameter|profile|engine|workload|transport|metric|statistic)|is missing|is empty|"
    "is not an objective|is not a metric|statistic|does not support (a percentage|[<>=])|per second|"
    "must be a whole number|needs (a parameter|between or values)|a mapping needs|is not allowed in the|at most 4000"
)
"""What the parser says of a value whose form is wrong. Bounds and combinations of keys are not part of the schema."""
BASE: dict[str, Any] = {
    "name": "x",
    "workload": {"name": "windowed-aggregation"},
    "engine": {"name": "simulated"},
    "find": "sustainable-throughput",
    "load": {"between": ["10k/s", "5M/s"]},
}
PROFILES: dict[str, dict[str, Any]] = {
    "constant": {"rate": "1k/s"},
    "steps": {"steps": [["1s", "1k/s"]]},
    "ramp": {"from": "1/s", "to": "1k/s", "over": "10s"},
    "spikes": {"base": "1/s", "peak": "1k/s", "every": "10s", "length": "1s", "over": "30s"},
    "fluctuating": {"rate": "1k/s", "low": "10%", "over": "30s"},
    "replay": {"rates": ["1k/s"], "step": "1s"},
}
Slot = tuple[dict[str, Any], tuple[str | int, ...]]


def names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def slots() -> Iterator[Slot]:
    """Every place of a file that has a value, with a file in which the rest is right."""
    yield from ((BASE, (key,)) for key in KEYS)
    for name, workload in workloads().items():
        file = BASE | {"workload": {"name": name}}
        yield from ((file, ("workload", key)) for key in ("name", *names(workload.params)))
    for name, engine in engines().items():
        file = BASE | {"engine": {"name": name}}
        yield from ((file, ("engine", key)) for key in ("name", "label", "nonsense", *names(engine.options)))
    yield from ((BASE | {"search": {}}, ("search", key)) for key in names(SearchSection))
    yield from ((BASE | {"trial": {}}, ("trial", key)) for key in names(TrialSection))
    for shape, given_ in PROFILES.items():
        file = BASE | {"find": "nothing", "load": {"profile": shape, **given_}}
        yield from ((file, ("load", key)) for key in ("profile", *given_))
    yield from ((BASE | {"load": {}}, ("load", key)) for key in ("between", "values"))
    yield BASE, ("load", "between", 0)
    kafka = BASE | {"engine": {"name": "reference"}, "transport": {"name": "kafka"}}
    yield from ((kafka, ("transport", key)) for key in ("name", *names(KafkaOptions)))
    cluster = kafka | {"transport": {"name": "kafka", "cluster": {"bootstrap": "a:1"}}}
    yield from ((cluster, ("transport", "cluster", key)) for key in names(ClusterOptions))
    counted = BASE | {"find": "demand", "instances": {}}
    yield from ((counted, ("instances", key)) for key in ("between", "values"))
    for name, workload in workloads().items():
        for dimension in workload.dimensions:
            file = BASE | {"workload": {"name": name}, "load": {"rate": "1/s"}}
            file["find"] = {"extreme": dimension.name, "values": [None]}
            yield file, ("find", "values", 0)


SLOTS = [*slots()]
NUMBERS = ["0", "1", "4", "1.5", "1_000", "1e3", "1e-2", "-1", "", "07", "1e", ".5", "9" * 30]
UNITS = ["", "s", "ms", "µs", "min", "d", "/s", "k/s", "M / min", "k", "G", "%", "GiB", "kB", "B", "x", "e", " "]
OBJECTIVES = [
    *("lag-trend <= 1%", "lag-trend<2k/s", "lag-trend == 0", "event-time p99 < 2s", "event-time < 2s", "latency < 2s"),
    *(
        "processing-time p99.9 <= 250 ms",
        "event-time p98 < 2s",
        "drops == 0",
        "drops < 1%",
        "lost <= 1%",
        "queue <= 5M",
    ),
    *("latency-trend <= 10ms/s", "latency-trend <= 1%", "output-error <= 0.1%", "lost p99 < 1", "queue > 5", "lost"),
]
WORDS = ["auto", "simulated", "spark", "queue", "kafka", "nothing", "demand", "extreme", "all", "tuned", "x y", "a.b-c"]
TEXTS = [f"{number}{unit}" for number in NUMBERS for unit in UNITS] + OBJECTIVES + WORDS + [" 8s ", "8s\t", "ü", "1"]
PLAIN: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    7,
    -1,
    10**18,
    2**63 - 1,
    2**63,
    0.0,
    0.25,
    1.5,
    3.0,
    1e3,
    -0.5,
    1e17,
    1e19,
]
WHOLES: list[Any] = [
    [],
    {},
    ["1k/s"],
    ["1s", "2s"],
    [1, 2],
    ["1k"],
    [["1s", "1k/s"]],
    {"name": "x"},
    {"between": [1, 2]},
]
scalars = st.one_of(
    st.sampled_from(PLAIN),
    st.sampled_from(TEXTS),
    st.integers(-10, 10**19),
    st.floats(-1e3, 1e19, allow_nan=False).map(lambda value: value + 0.0),
    st.text(max_size=6).filter(lambda text: not text.endswith("\n")),
)
values = st.one_of(scalars, st.sampled_from(WHOLES), st.lists(scalars, max_size=3))


def put(slot: Slot, value: object) -> dict[str, Any]:
    file, path = copy.deepcopy(slot[0]), slot[1]
    holder: Any = file
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    if path == ("engines",):
        del file["engine"]
    return file


def disagreement(slot: Slot, value: object) -> str:
    """How the schema and the parser differ on a value; empty if they do not."""
    file = put(slot, value)
    accepted = VALID.is_valid(file)
    try:
        read(json.dumps(file), "x.yaml")
    except ExperimentError as error:
        wrong_form = [problem.message for problem in error.problems if FORM.search(problem.message)]
        if accepted and wrong_form:
            return f"{slot[1]} = {value!r}: the schema accepts it, the parser says: {wrong_form[0]}"
        return ""
    return "" if accepted else f"{slot[1]} = {value!r}: the parser accepts it, the schema does not"


def test_schema_and_parser_agree_on_values_that_people_write() -> None:
    tried = random.Random(12)
    cases = [(slot, tried.choice([*PLAIN, *WHOLES, *TEXTS])) for slot in SLOTS for _ in range(3)]
    found = [disagreement(slot, value) for slot, value in cases]
    assert [sentence for sentence in found if sentence] == []


@settings(max_examples=400, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SLOTS), values)
def test_schema_and_parser_agree_on_random_values(slot: Slot, value: object) -> None:
    assert disagreement(slot, value) == ""


@pytest.mark.parametrize(
    ("path", "value", "right"),
    [
        (("seed",), "1", False),
        (("seed",), 2**63 - 1, True),
        (("instances",), "1k", True),
        (("trial", "duration"), 60, False),
        (("load", "between", 0), 1000, False),
        (("trial", "repetitions"), 3, True),
        (("transport", "acks"), 1, True),
        (("transport", "acks"), 2, False),
    ],
)
def test_values_on_which_they_once_differed(path: tuple[str | int, ...], value: object, right: bool) -> None:
    slot = (BASE | {"trial": {}, "transport": {"name": "kafka"}}, path)
    assert VALID.is_valid(put(slot, value)) is right
    assert disagreement(slot, value) == ""


@pytest.mark.parametrize(
    ("value", "right"), [({"a": 10}, True), ({"a": True}, True), ({"a": 0.5}, True), ({"a": None}, False), ([1], False)]
)
def test_settings_of_spark_are_numbers_truth_values_or_texts_for_both(value: object, right: bool) -> None:
    slot = (BASE | {"engine": {"name": "spark"}}, ("engine", "settings"))
    assert VALID.is_valid(put(slot, value)) is right
    assert disagreement(slot, value) == ""


def test_every_key_of_a_file_is_tried() -> None:
    assert {path[0] for _, path in SLOTS} == {*KEYS}
    assert {path[1] for _, path in SLOTS if path[0] == "trial" and len(path) > 1} == {*names(TrialSection)}
