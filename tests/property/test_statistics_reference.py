"""The statistics per key and window equal the plainest possible ones, for any window, slide, load and cut."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import LoadProfile, Plan, constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns, Inputs, Workload
from streamgauge.workloads.data.sensors import Readings
from streamgauge.workloads.downsampling import DownsamplingParams, downsampling
from streamgauge.workloads.references.statistics import EventWindows, Ints, WindowStatistics, population_variance
from streamgauge.workloads.time_attribute_aggregation import (
    VALUES,
    Attribute,
    TimeAttributeParams,
    attribute_of,
    time_attribute_aggregation,
)

Key = tuple[int, ...]
Row = tuple[int, Key, int, int, int, int, int, Fraction, Fraction]
MICRO = 1_000


def plain(events: Sequence[tuple[int, Key, int]], window: int, slide: int) -> list[Row]:
    """Every event, as due time, key and value, into every window that contains it, one by one. In microseconds."""
    found: dict[tuple[int, Key], list[tuple[int, int]]] = defaultdict(list)
    for due, key, value in events:
        start = due // slide * slide
        while start > due - window:
            found[start, key].append((value, due))
            start -= slide
    rows = []
    for (start, key), held in sorted(found.items()):
        values = [value for value, _ in held]
        mean = Fraction(sum(values), len(values))
        variance = sum(((value - mean) ** 2 for value in values), Fraction(0)) / len(values)
        newest = max(due for _, due in held)
        rows.append((start, key, len(values), sum(values), min(values), max(values), newest, mean, variance))
    return rows


def assert_same(answer: Columns, keys: tuple[str, ...], wanted: list[Row]) -> None:
    whole = [answer["window_start"], *(answer[name] for name in keys)]
    whole += [answer[name] for name in ("count", "sum", "min", "max", "max_due")]
    found = sorted(tuple(row) for row in np.transpose(np.array(whole, np.int64)).tolist()) if len(whole[0]) else []
    assert found == [(start, *key, *rest) for start, key, *rest, _, _ in wanted]
    order = np.lexsort([answer[name] for name in (*reversed(keys), "window_start")])
    for name, place in (("mean", -2), ("variance", -1)):
        exact = np.array([float(row[place]) for row in wanted])  # type: ignore[arg-type]
        np.testing.assert_allclose(answer[name][order], exact, rtol=1e-12, atol=0)


profiles: st.SearchStrategy[LoadProfile] = st.one_of(
    st.builds(constant, st.floats(1, 120)),
    st.lists(st.tuples(st.integers(1, SECOND), st.floats(0, 120)), min_size=1, max_size=4).map(steps),
)


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int, Plan, int]:
    """Window and slide in microseconds, a plan and its origin."""
    window = draw(st.integers(1, 3_000_000))
    slide = draw(st.one_of(st.just(window), st.integers(max(1, window // 12), window)))
    profile = draw(profiles)
    span = min(2 * SECOND, 400 * slide * MICRO)  # keeps the number of windows small
    return window, slide, profile.plan(max(span, profile.duration)), draw(st.integers(-(10**12), 10**18))


@given(windows(), st.integers(1, 30), st.data())
@settings(max_examples=150, deadline=None)
def test_statistics_per_sensor_equal_the_plain_ones(
    drawn: tuple[int, int, Plan, int], sensors: int, data: st.DataObject
) -> None:
    window, slide, plan, origin = drawn
    made = Readings(sensors, plan, data.draw(st.integers(0, 9)), origin=origin)
    statistics = WindowStatistics(made, EventWindows(plan, origin, window * MICRO, slide * MICRO))
    for events in (data.draw(st.integers(0, plan.total)), plan.total):
        rows = made.events(0, events)
        listed = zip(*(rows[name].tolist() for name in ("due", "sensor_id", "value")), strict=True)
        wanted = plain([(due, (sensor,), value) for due, sensor, value in listed], window, slide)
        assert_same(statistics.until(events), ("key",), wanted)


@dataclass(frozen=True)
class Copies:
    """Each event is there as often as its value modulo four: never, or with several keys."""

    readings: Readings
    codes = 40

    def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        for numbers, keys, values in self.readings.keyed_values(start, stop):
            for copy in range(3):
                some = values % 4 > copy
                yield numbers[some], keys[some] + 10 * copy, values[some]


@given(windows(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_events_may_have_several_keys_or_none(drawn: tuple[int, int, Plan, int], seed: int) -> None:
    window, slide, plan, origin = drawn
    made = Readings(10, plan, seed, origin=origin)
    statistics = WindowStatistics(Copies(made), EventWindows(plan, origin, window * MICRO, slide * MICRO))
    rows = made.events(0, plan.total)
    listed = [*zip(*(rows[name].tolist() for name in ("due", "sensor_id", "value")), strict=True)]
    wanted = [(due, (key + 10 * copy,), value) for due, key, value in listed for copy in range(value % 4)]
    assert_same(statistics.until(plan.total), ("key",), plain(wanted, window, slide))


@given(windows(), st.integers(1, 30), st.sampled_from([*VALUES]), st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_statistics_per_sensor_and_attribute_equal_the_plain_ones(
    drawn: tuple[int, int, Plan, int], sensors: int, attribute: Attribute, modulo: int
) -> None:
    window, slide, plan, origin = drawn
    written = {"window": f"{window}us", "slide": f"{slide}us", "keys": sensors, "attribute": attribute}
    params = TimeAttributeParams.model_validate(written | ({"attribute_values": modulo} if modulo else {}))
    inputs = Inputs({"readings": plan}, 3, origin)
    rows = time_attribute_aggregation.events(params, "readings", inputs).events(0, plan.total)
    values = (attribute_of(attribute, rows["due"] // 1_000_000) % params.values).tolist()
    listed = zip(rows["due"].tolist(), rows["sensor_id"].tolist(), values, rows["value"].tolist(), strict=True)
    wanted = plain([(due, (sensor, at), value) for due, sensor, at, value in listed], window, slide)
    answer = time_attribute_aggregation.reference(params, inputs).until({"readings": plan.total})
    assert_same(answer, ("sensor_id", "attribute"), wanted)


@pytest.mark.parametrize(
    ("workload", "params"),
    [(downsampling, DownsamplingParams()), (time_attribute_aggregation, TimeAttributeParams())],
    ids=lambda each: getattr(each, "name", ""),
)
def test_no_events_have_no_expected_rows(workload: Workload[DownsamplingParams], params: DownsamplingParams) -> None:
    inputs = Inputs({"readings": constant(10).plan(SECOND)}, 3, 0)
    reference = workload.reference(params, inputs)
    assert reference is not None
    events: Mapping[str, int] = {"readings": 0}
    answer = reference.until(events)
    assert {len(column) for column in answer.values()} == {0}
    assert set(answer) | {"window_end", "max_ingested"} == {name for name, _ in workload.output(params).schema}


@given(st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=2), st.integers(0, 100))
def test_the_variance_of_large_values_has_all_its_digits(values: list[int], repeated: int) -> None:
    numbers = np.array([*values, *[values[0] // 2**8 + n for n in range(repeated)]], np.int64)
    mean = Fraction(int(numbers.sum()), len(numbers))
    exact = sum((int(x) - mean) ** 2 for x in numbers) / len(numbers)
    sums = [np.array([each], np.int64) for each in (len(numbers), numbers.sum(), (numbers * numbers).sum())]
    np.testing.assert_allclose(population_variance(*sums), [float(exact)], rtol=1e-14, atol=0)


def test_an_hour_of_overlapping_windows_needs_a_few_passes_over_the_events() -> None:
    class Counted(Readings):
        handled = 0

        def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
            Counted.handled += stop - start
            return super().keyed_values(start, stop)

    plan = constant(200).plan(400 * SECOND)
    made = Counted(5, plan, 1, origin=123 * SECOND)
    WindowStatistics(made, EventWindows(plan, made.origin, 60 * SECOND, SECOND // 10)).until(plan.total)
    assert Counted.handled <= 3 * plan.total
