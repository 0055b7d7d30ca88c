"""The reference result equals the plainest possible one, for any window, slide, load and cut."""

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.references.window_sums import COLUMNS, WindowSums
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

Row = tuple[int, int, int, int, int]
MICRO = 1_000


def rows(answer: Columns) -> list[Row]:
    return list(zip(*(answer[name].tolist() for name in COLUMNS), strict=True))


def plain(stream: Purchases, window: int, slide: int, events: int) -> list[Row]:
    """Every event into every window that holds it, one by one. Times in microseconds."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    made = stream.events(0, events)
    for key, price, due in zip(*(made[name].tolist() for name in ("gem_pack_id", "price", "due")), strict=True):
        start = due // slide * slide
        while start > due - window:
            found[start, key].append((price, due))
            start -= slide
    return [
        (start, key, sum(price for price, _ in held), len(held), max(due for _, due in held))
        for (start, key), held in sorted(found.items())
    ]


@st.composite
def questions(draw: st.DrawFn) -> tuple[WindowedAggregationParams, Purchases]:
    window = draw(st.integers(1, 3_000_000))
    slide = draw(st.integers(max(1, window // 12), window))
    packs, shape = draw(st.integers(1, 30)), draw(st.sampled_from(["normal", "uniform", "zipf", "single"]))
    params = WindowedAggregationParams.model_validate(
        {
            "window": f"{window}us",
            "slide": f"{slide}us",
            "gem_packs": packs,
            "distribution": shape,
            "hot": draw(st.sampled_from([0, 0.5])) if packs > 1 and shape != "single" else 0,
            "hot_period": f"{draw(st.integers(1, 2_000))}ms",
        }
    )
    pieces = st.lists(st.tuples(st.integers(1, SECOND), st.floats(0, 120)), min_size=1, max_size=4)
    profile = draw(st.one_of(st.builds(constant, st.floats(1, 120)), pieces.map(steps)))
    span = min(2 * SECOND, 400 * slide * MICRO)  # keeps the number of windows small
    origin = draw(st.integers(-(10**12), 10**12))
    return params, Purchases(params, profile.plan(max(span, profile.duration)), draw(st.integers(0, 9)), 0, origin)


@given(questions(), st.data())
@settings(max_examples=100, deadline=None)
def test_the_reference_result_equals_the_plain_one(
    question: tuple[WindowedAggregationParams, Purchases], data: st.DataObject
) -> None:
    params, stream = question
    window, slide, total = params.window // MICRO, params.slide // MICRO, stream.plan.total
    cuts = sorted(data.draw(st.lists(st.integers(0, total), max_size=3)))
    reference = WindowSums(stream, params.window, params.slide)
    for events in [*cuts, total]:
        assert rows(reference.until({"purchases": events})) == plain(stream, window, slide, events)


def test_every_event_is_in_exactly_as_many_windows_as_overlap() -> None:
    params = WindowedAggregationParams.model_validate({"window": "3s", "slide": "1s"})
    plan = constant(20_000).plan(10 * SECOND)
    purchases = Purchases(params, plan, seed=1, origin=5 * 10**17)
    answer = WindowSums(purchases, params.window, params.slide).until({"purchases": plan.total})
    assert answer["count"].sum() == 3 * plan.total
    assert np.all(np.diff(answer["window_start"] * params.gem_packs + answer["gem_pack_id"]) > 0)
