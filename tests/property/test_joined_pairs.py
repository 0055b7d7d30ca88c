"""The expected pairs of the windowed join equal the plainest possible join, for any window, slide, load and cut."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns, Inputs, plans_of
from streamgauge.workloads.references import joins
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

MICRO = 1_000
Row = tuple[int, ...]


def rows(answer: Columns) -> list[Row]:
    return sorted(zip(*(answer[name].tolist() for name in joins.COLUMNS), strict=True))


def plain(params: WindowedJoinParams, inputs: Inputs, events: dict[str, int]) -> list[Row]:
    """Every event into every window that holds it, one by one, and all pairs of each window and key."""
    window, slide = params.window // MICRO, params.period // MICRO
    held: dict[tuple[int, int, int], dict[str, list[tuple[int, int, int]]]] = defaultdict(
        lambda: {"purchases": [], "ads": []}
    )
    for stream, count in events.items():
        made = windowed_join.events(params, stream, inputs).events(0, count)
        prices = made["price"].tolist() if "price" in made else [0] * count
        columns = (made[name].tolist() for name in ("user_id", "gem_pack_id", "due"))
        for number, (user, pack, due, price) in enumerate(zip(*columns, prices, strict=True)):
            start = due // slide * slide
            while start > due - window:
                held[start, user, pack][stream].append((number, due, price))
                start -= slide
    return sorted(
        (
            *(start, start + window, purchase, ad, user, pack, price),
            max(moment for each in sides.values() for _, moment, _ in each),
            max(due, other),
        )
        for (start, user, pack), sides in held.items()
        for purchase, due, price in sides["purchases"]
        for ad, other, _ in sides["ads"]
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[WindowedJoinParams, Inputs]:
    window = draw(st.integers(1, 3_000_000))
    slide = draw(st.integers(max(1, window // 9), window))
    ads = draw(st.sampled_from([0.1, 0.5, 0.75, 0.9]))
    most = min(1.0, ads / (1 - ads))
    params = WindowedJoinParams.model_validate(
        {
            "window": f"{window}us",
            "slide": f"{slide}us",
            "gem_packs": draw(st.integers(1, 5)),
            "users": draw(st.integers(2, 10)),
            "distribution": draw(st.sampled_from(["normal", "uniform", "zipf", "single"])),
            "ads": ads,
            "selectivity": draw(st.sampled_from([0.02, 0.1, 0.11, most / 2, most * 0.999])),
        }
    )
    pieces = st.lists(st.tuples(st.integers(1, SECOND), st.floats(0, 150)), min_size=1, max_size=4)
    profile = draw(st.one_of(st.builds(constant, st.floats(1, 150)), pieces.map(steps)))
    span = min(2 * SECOND, 400 * slide * MICRO)  # keeps the number of windows small
    plans = plans_of(windowed_join.streams(params), profile, max(span, profile.duration))
    return params, Inputs(plans, draw(st.integers(0, 9)), draw(st.integers(-(10**12), 10**12)))


@pytest.mark.parametrize("rows_together", [1 << 22, 50], ids=["whole", "in-parts"])
@given(question=questions(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_expected_pairs_equal_the_plain_ones(
    rows_together: int, question: tuple[WindowedJoinParams, Inputs], data: st.DataObject
) -> None:
    params, inputs = question
    reference = windowed_join.reference(params, inputs)
    totals = {name: plan.total for name, plan in inputs.plans.items()}
    cut = {name: data.draw(st.integers(0, total)) for name, total in totals.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "_ROWS", rows_together)
        for events in (cut, totals):
            assert rows(reference.until(events)) == plain(params, inputs, events)
