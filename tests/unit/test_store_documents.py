"""Values come back from JSON as they were, and a document that was touched is refused."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import store_samples as sample
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.experiment import Experiment, TransportChoice
from streamgauge.model.measurement import Interval, Measurement
from streamgauge.store import StoreError
from streamgauge.store.documents import FORMAT, READERS, decode, encode, read_content, read_value
from streamgauge.store.facts import facts_from_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def same(left: object, right: object) -> bool:
    """Equal, where nan equals nan and 1 is not 1.0."""
    return repr(left) == repr(right)


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not strict JSON")


@settings(deadline=None)
@given(VALUES)
def test_any_plain_value_comes_back_as_it_was(value: object) -> None:
    data = encode("test", {"held": value})
    document = json.loads(data, parse_constant=no_constant)
    assert document["format"] == FORMAT
    assert same(decode(data, Path("memory"), "test"), {"held": value})


def test_an_experiment_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_bytes(encode("experiment", sample.EXPERIMENT))
    assert read_value(tmp_path / "e.json", "experiment", Experiment) == sample.EXPERIMENT


@pytest.mark.parametrize(
    ("name", "broker", "exact_offsets"), [("queue", False, True), ("kafka", True, False), ("other", True, False)]
)
def test_the_traits_of_the_transport_of_an_older_document_follow_from_its_name(
    tmp_path: Path, name: str, broker: bool, exact_offsets: bool
) -> None:
    written = replace(sample.EXPERIMENT, transport=TransportChoice(name, {}))
    path = tmp_path / "e.json"
    path.write_bytes(encode("experiment", written))
    content = read_content(path, "experiment")
    del content["transport"]["broker"], content["transport"]["exact_offsets"]
    path.write_bytes(encode("experiment", content))
    found = read_value(path, "experiment", Experiment).transport
    assert (found.name, found.broker, found.exact_offsets) == (name, broker, exact_offsets)


@pytest.mark.parametrize(
    ("options", "unchecked"),
    [
        ({"pipeline": "job.py:orders"}, True),
        ({"pipeline": "job.py:orders", "reference": "job.py:expected"}, False),
        ({"pipeline": "", "reference": ""}, False),
        ({}, False),
    ],
)
def test_an_older_trial_with_a_function_without_a_reference_is_known_to_be_unchecked(
    options: dict[str, str], unchecked: bool
) -> None:
    content = READERS[2]("trial", {"trial": {"options": options}, "facts": {"engine": "spark"}})
    assert facts_from_json(content["facts"]).engine.unchecked_job is unchecked


def test_numbers_that_json_does_not_support_survive(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(encode("m", sample.MEASUREMENT))
    read = read_value(tmp_path / "m.json", "m", Measurement)
    assert same(read, sample.MEASUREMENT)
    assert read.lag_trend is not None
    assert math.isnan(read.lag_trend.error)
    assert read.lag_trend.low == -math.inf


def test_numbers_of_numpy_are_stored_as_numbers(tmp_path: Path) -> None:
    facts = {"count": np.int64(3), "share": np.float64(0.5), "on": np.bool_(True), "odd": np.float32("nan")}
    (tmp_path / "f.json").write_bytes(encode("facts", facts))
    read = read_content(tmp_path / "f.json", "facts")
    assert same(read, {"count": 3, "share": 0.5, "on": True, "odd": math.nan})


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}, b"bytes"])
def test_what_has_no_json_is_refused_when_it_is_written(value: object) -> None:
    with pytest.raises(TypeError, match="stored document"):
        encode("test", value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is damaged"),
        ("[]", "is not a document of streamgauge"),
        ("NaN", "NaN is not JSON"),
        ("[" * 100_000, "is damaged"),
        ('{"format": "one", "kind": "a", "sha256": "", "content": 1}', "its format is 'one', not a number"),
        ('{"format": 0, "kind": "a", "sha256": "", "content": 1}', "format 0 does not exist"),
        ('{"format": 1, "kind": "b", "sha256": "", "content": 1}', "should be a document of kind 'a', not 'b'"),
        ('{"format": 1, "kind": "a", "sha256": "", "content": 1}', "does not match its digest"),
        ('{"format": 3, "kind": "a"' + ', "sha256": "", "content": 1}', "newer streamgauge .format 3.; upgrade"),
    ],
)
def test_a_document_that_is_none_states_what_is_wrong_with_which_file(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "thing.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=says) as caught:
        read_content(path, "a")
    assert str(path) in str(caught.value)


def test_a_document_of_another_shape_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "i.json").write_bytes(encode("interval", {"mean": "many"}))
    with pytest.raises(StoreError, match=r"i\.json cannot be read: mean: .*number"):
        read_value(tmp_path / "i.json", "interval", Interval)


def test_keys_that_a_later_version_added_are_passed_over(tmp_path: Path) -> None:
    held = {"mean": 1.0, "low": 0.0, "high": 2.0, "error": 0.5, "samples": 3, "mood": "fine"}
    (tmp_path / "i.json").write_bytes(encode("interval", held))
    assert read_value(tmp_path / "i.json", "interval", Interval) == Interval(1.0, 0.0, 2.0, 0.5, 3)
