"""Whatever stands in a file: an experiment or an ExperimentError, never anything else, never for long."""

import json
import time

import pytest
from experiment_text import write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge.model.experiment import Experiment
from streamgauge.parse import ExperimentError, read, shipped_names, shipped_text

thorough = settings(deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
TEXTS = [shipped_text(name) for name in shipped_names()]


def result_of(text: str | bytes, overrides: tuple[str, ...] = ()) -> Experiment | None:
    try:
        return read(text, "random.yaml", overrides)
    except ExperimentError as error:
        found = error.problems
    assert found
    assert all(problem.message for problem in found)
    return None


@thorough
@given(st.binary(max_size=400))
def test_random_bytes_never_break_the_reader(data: bytes) -> None:
    result_of(data)


@thorough
@given(st.text(max_size=300))
def test_random_text_never_breaks_the_reader(text: str) -> None:
    result_of(text)


@thorough
@given(st.text(alphabet="abn:-?[]{}&*!|>'\"%#, \n\t\r\\0x1~@`<.", max_size=120))
def test_random_punctuation_never_breaks_the_reader(text: str) -> None:
    result_of(text)


WORDS = """
name workload engine engines find load between values rate instances objective search trial seed simulated
windowed-aggregation database-storage slide window keys extreme demand capacity nothing profile steps spikes
8s 250ms 50k/s 5M 25% -1 0 1e999 .inf .nan null true ~ 99999999999999999999999 auto lag-trend<=1%
"""
words = st.sampled_from(WORDS.split())
values = st.recursive(
    words,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(words, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=12,
)


@thorough
@given(st.lists(st.tuples(words, values), max_size=8))
def test_random_yaml_with_known_words_never_breaks_the_reader(pairs: list[tuple[str, str]]) -> None:
    result_of("\n".join(f"{key}: {value}" for key, value in pairs))


@thorough
@given(st.sampled_from(TEXTS), st.data())
def test_a_valid_file_with_a_word_replaced_never_breaks_the_reader(text: str, data: st.DataObject) -> None:
    tokens = text.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        tokens[at] = data.draw(st.one_of(values, st.text(max_size=8), st.just("")))
    experiment = result_of(" ".join(tokens))
    if experiment is not None:
        assert read(write(experiment)) == experiment


rates = st.floats(0.001, 8.9e9).map(lambda rate: f"{rate!r}/s")
times = st.integers(10**9, 10**14).map(lambda nanos: f"{nanos}ns")
shares = st.floats(0.0001, 0.99).map(repr)
valid_loads = st.one_of(
    st.builds(
        "{{profile: spikes, base: 0.0001/s, peak: {}, every: 100s, length: {}ns, over: 1d}}".format,
        rates,
        st.integers(1, 10**10),
    ),
    st.builds("{{profile: fluctuating, rate: {}, low: {}}}".format, rates, shares),
    st.builds("{{profile: ramp, from: {}, to: {}, over: {}}}".format, rates, rates, times),
    st.builds("{{profile: steps, steps: [[{}, {}], [{}, {}]]}}".format, times, rates, times, rates),
    st.builds("{{profile: replay, rates: [{}, {}], step: {}}}".format, rates, rates, times),
    st.builds("{{rate: {}}}".format, rates),
)
valid_questions = st.one_of(
    valid_loads.map("find: nothing\nload: {}".format),
    valid_loads.map("find: {{extreme: slide, between: [1ms, 7s]}}\nload: {}".format),
    st.builds("find: capacity\ninstances: [1, {}]\nload: {{values: [{}]}}".format, st.integers(2, 9999), rates),
    st.builds("find: demand\ninstances: {{between: [1, {}]}}\nload: {{values: [{}]}}".format, st.integers(2, 9), rates),
)
descriptions = st.text(max_size=40).filter(str.isprintable).map(lambda text: json.dumps(text, ensure_ascii=False))


@thorough
@given(valid_questions, rates, shares, times, descriptions)
def test_a_written_experiment_reads_back_as_an_equal_one(
    question: str, rate: str, share: str, length: str, description: str
) -> None:
    text = (
        f"name: x\ndescription: {description}\nworkload: {{name: windowed-aggregation, watermark: {length}}}\n"
        f"engine: {{name: simulated, label: a, capacity: {rate}, noise: {share}, delay: {length}, crash_at: {rate}}}\n"
        f"objective: [lag-trend <= {rate}, event-time max < {length}, lost <= {float(share):.12f}%]\n"
        f"trial: {{duration: {length}, repetitions: 3, early: false, warmup: {length}}}\n"
        f"{question}\nseed: 9\n"
    )
    experiment = read(text)
    assert read(write(experiment)) == experiment
    assert write(read(write(experiment))) == write(experiment)


paths = st.lists(words, min_size=1, max_size=3).map(".".join)


@thorough
@given(st.one_of(st.tuples(paths, values).map("=".join), st.text(max_size=60)))
def test_random_overrides_never_break_the_reader(change: str) -> None:
    experiment = result_of(TEXTS[0], (change,))
    if experiment is not None:
        assert read(write(experiment)) == experiment


VALID = shipped_text("simulated")
NASTY = {
    "deep flow lists": "a: " + "[" * 60_000,
    "deep flow mappings": "a: " + "{a: " * 15_000,
    "deep block lists": "- " * 30_000,
    "deep keys": "? " * 30_000,
    "many lists": "[]," * 20_000,
    "many keys": "\n".join(f"k{i}: {i}" for i in range(6_000)),
    "many equal keys": "a: 1\n" * 12_000,
    "many anchors": "[" + "&a x, " * 9_000 + "]",
    "billion laughs": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
    "many documents": "---\n" * 16_000,
    "a long key": "k" * 60_000 + ": 1",
    "a long plain value": "name: " + "x " * 30_000,
    "a long quoted value": 'name: "' + "\\u0041" * 10_000 + '"',
    "a long comment": "#" * 65_000,
    "only spaces": " " * 65_000,
    "only newlines": "\n" * 65_000,
    "only tabs": "\t" * 65_000,
    "only carriage returns": "\r" * 65_000,
    "a huge number": "seed: " + "9" * 60_000,
    "a huge exponent": VALID.replace("730k/s", "1e999/s"),
    "a huge quantity": VALID.replace("730k/s", "9" * 39 + "/s"),
    "a huge negative number": "seed: -" + "9" * 5_000,
    "not a number": VALID.replace("730k/s", ".nan"),
    "infinity": VALID.replace("730k/s", ".inf"),
    "a bad escape": 'name: "\\UFFFFFFFF"',
    "half a character": 'name: "\\ud800"',
    "half a character, raw": "name: \ud800",
    "a null character": "name: \0",
    "a merge key": "<<: {name: x}",
    "a bad directive": "%YAML 9.9\n---\na: 1",
    "a tag directive": "%TAG ! tag:x,2000:\n---\n!x a: 1",
    "an unknown alias": "a: *b",
    "a huge tower": VALID.replace(
        "windowed-aggregation, window: 8s, slide: 4s", "hierarchical-aggregation, height: 1G"
    ),
    "too many spikes": VALID.replace(
        "{between: [10k/s, 5M/s]}",
        "{profile: spikes, base: 1/s, peak: 2/s, every: 2ns, length: 1ns, over: 7d, values: [1k/s]}",
    ),
    "UTF-16": VALID.encode("utf-16"),
    "Latin-1": "name: café".encode("latin-1"),
    "nothing": b"",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_a_hostile_file_is_refused_within_a_second(text: str | bytes) -> None:
    begin = time.process_time()  # CPU time of this process: a busy machine must not fail this
    assert result_of(text) is None
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize(
    "same",
    [
        VALID.replace("\n", "\r\n"),
        "\ufeff" + VALID,
        VALID.encode(),
        VALID.encode("utf-8-sig"),
        "---\n" + VALID + "...\n",
    ],
    ids=["CRLF", "BOM", "bytes", "bytes with BOM", "document marks"],
)
def test_line_ends_and_byte_order_marks_change_nothing(same: str | bytes) -> None:
    assert read(same) == read(VALID)
