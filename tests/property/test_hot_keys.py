"""Hot gem packs have their share of the events in every period, move on after it, and follow from number and time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from streamgauge.model.profile import LoadProfile, constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.hot_keys import HotKeys
from streamgauge.workloads.data.random import CountedWords, stream_state
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

ORIGIN = 1_700_000_000 * SECOND + 123_000


@pytest.mark.parametrize("distribution", ["normal", "uniform", "zipf"])
@pytest.mark.parametrize(("share", "count"), [(0.9, 1), (0.5, 3), (0.05, 20), (1.0, 2)])
def test_hot_packs_have_their_share_in_every_period(distribution: str, share: float, count: int) -> None:
    params = WindowedAggregationParams.model_validate(
        {"hot": share, "hot_packs": count, "hot_period": "500ms", "distribution": distribution}
    )
    plain = WindowedAggregationParams.model_validate({"distribution": distribution})
    plan = constant(100_000).plan(10 * SECOND)
    hot, cold = (Purchases(each, plan, 7, origin=ORIGIN).events(0, plan.total) for each in (params, plain))
    period = (hot["due"] - ORIGIN // 1_000) // 500_000
    for k in range(20):
        packs, before = hot["gem_pack_id"][period == k], cold["gem_pack_id"][period == k]
        chosen = (k * count + np.arange(count)) % 100
        usual = np.isin(before, chosen).mean()
        assert np.isin(packs, chosen).mean() == pytest.approx(share + (1 - share) * usual, abs=0.01)
        each = [(packs == one).mean() - (1 - share) * (before == one).mean() for one in chosen]
        assert each == pytest.approx([share / count] * count, abs=0.01), "each of them as often"
    for name in ("user_id", "price", "due"):
        assert np.array_equal(hot[name], cold[name]), "nothing else changes"


profiles = st.one_of(
    st.builds(constant, st.floats(1, 3_000)),
    st.lists(st.tuples(st.integers(1, SECOND), st.floats(0, 3_000)), min_size=1, max_size=4).map(steps),
)


@given(profiles, st.integers(1, 2 * SECOND), st.integers(1, 9), st.floats(0.01, 1), st.data())
@settings(max_examples=100, deadline=None)
def test_the_hot_pack_of_an_event_follows_from_its_number_and_its_due_time(
    profile: LoadProfile, period: int, count: int, share: float, data: st.DataObject
) -> None:
    plan = profile.plan(3 * SECOND)
    if plan.total == 0:
        return
    hot, keys = HotKeys(share, count, period, 23, plan), np.full(plan.total, -1, np.int64)
    words = np.concatenate(
        [
            CountedWords(stream_state(3, 0), 1, 16_384).words(low, min(16_384, plan.total - low)).copy()
            for low in range(0, plan.total, 16_384)
        ]
    )
    hot.fill(words, 0, 1, keys)
    chosen = np.flatnonzero(keys >= 0)
    low = plan.due(chosen) // period * count
    assert (((keys[chosen] - low) % 23) < count).all()
    start = data.draw(st.integers(0, plan.total - 1))
    stride = data.draw(st.integers(1, 7))
    part = np.full(len(words[start::stride]), -1, np.int64)
    hot.fill(words[start::stride], start, stride, part)
    assert np.array_equal(part, keys[start::stride])
    numbers = np.sort(np.array(data.draw(st.lists(st.integers(0, plan.total - 1), max_size=20)), np.int64))
    found = np.full(len(numbers), -1, np.int64)
    hot.fill_at(words[numbers], numbers, found)
    assert np.array_equal(found, keys[numbers])


@pytest.mark.parametrize("stream", ["purchases", "ads"])
def test_any_range_of_a_stream_with_hot_packs_is_a_slice_of_the_whole(stream: str) -> None:
    params = WindowedJoinParams.model_validate(
        {"hot": "70%", "hot_packs": 5, "hot_period": "30ms", "selectivity": "40%", "gem_packs": 2_000}
    )
    inputs = Inputs(plans_of(windowed_join.streams(params), constant(200_000), SECOND), 3, ORIGIN)
    source = windowed_join.events(params, stream, inputs)
    whole = source.events(0, 100_000)
    for start, stop, stride, offset in ((1_234, 99_999, 1, 0), (17, 90_000, 3, 1), (5, 99_000, 64, 63)):
        part = source.events(start, stop, stride, offset)
        for name, column in whole.items():
            assert np.array_equal(part[name], column[start + (offset - start) % stride : stop : stride])


def test_ads_are_hot_when_purchases_are_and_the_selectivity_stays() -> None:
    params = WindowedJoinParams.model_validate(
        {"hot": "80%", "hot_period": "100ms", "selectivity": "10%", "window": "1s", "slide": "1s"}
    )
    inputs = Inputs(plans_of(windowed_join.streams(params), constant(100_000), 2 * SECOND), 3, ORIGIN)
    made = {n: windowed_join.events(params, n, inputs).events(0, inputs.plans[n].total) for n in ("purchases", "ads")}
    for events in made.values():
        period = (events["due"] - ORIGIN // 1_000) // 100_000
        assert (events["gem_pack_id"] == period % 100).mean() == pytest.approx(0.8, abs=0.02)
    window = {name: events["due"] // 1_000_000 for name, events in made.items()}
    first = int(window["purchases"][0]) + 1
    keys = {
        name: (events["user_id"].astype(np.int64) << 32 | events["gem_pack_id"])[window[name] == first]
        for name, events in made.items()
    }
    assert np.isin(keys["purchases"], keys["ads"]).mean() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("values", [{"gem_packs": 9, "hot_packs": 5}, {"distribution": "single"}])
def test_hot_packs_without_others_that_could_become_hot_are_refused(values: dict[str, object]) -> None:
    assert WindowedAggregationParams.model_validate(values).hot == 0
    with pytest.raises(ValidationError, match="use at most half of them, or hot: 0%"):
        WindowedAggregationParams.model_validate({**values, "hot": "10%"})
