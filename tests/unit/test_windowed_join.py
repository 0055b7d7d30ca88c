"""The windowed join: the share of purchases that find an ad, the events of both streams, and the expected pairs."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from streamgauge.model.profile import LoadProfile, constant, ramp, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import EARLY_MAX_DUE, Columns, Inputs, plans_of, rows_of_job
from streamgauge.workloads.data.offers import offer_problem
from streamgauge.workloads.data.random import CountedWords, stream_state, words_at
from streamgauge.workloads.data.shopping import ADS, PURCHASES, Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
STREAMS = ("purchases", "ads")
Ints = npt.NDArray[np.int64]


def params_of(**values: Any) -> WindowedJoinParams:  # noqa: ANN401
    return WindowedJoinParams.model_validate(values)


def inputs_of(params: WindowedJoinParams, profile: LoadProfile, horizon: int, seed: int = 7) -> Inputs:
    return Inputs(plans_of(windowed_join.streams(params), profile, horizon), seed, ORIGIN)


def made(params: WindowedJoinParams, profile: LoadProfile, horizon: int, seed: int = 7) -> dict[str, Columns]:
    """All events of both streams."""
    inputs = inputs_of(params, profile, horizon, seed)
    return {name: windowed_join.events(params, name, inputs).events(0, inputs.plans[name].total) for name in STREAMS}


def keys(events: Columns) -> Ints:
    return events["user_id"].astype(np.int64) << 32 | events["gem_pack_id"]


def found_shares(events: dict[str, Columns], params: WindowedJoinParams) -> tuple[float, int]:
    """The share of the purchases of all whole windows that find an ad in their window, and how many purchases."""
    window, slide = params.window // 1_000, params.period // 1_000
    due = {name: events[name]["due"] for name in STREAMS}
    begin, end = max(each[0] for each in due.values()), min(each[-1] for each in due.values())
    matched = total = 0
    for start in range(-(-int(begin) // slide) * slide, int(end) - window + 1, slide):
        left, right = (
            keys(events[name])[np.searchsorted(due[name], start) : np.searchsorted(due[name], start + window)]
            for name in STREAMS
        )
        matched += int(np.isin(left, right).sum())
        total += len(left)
    return matched / total, total


@pytest.mark.parametrize("distribution", ["normal", "uniform", "zipf", "single"])
@pytest.mark.parametrize(
    ("rate", "windows", "selectivity", "ads"),
    [
        (20_000, ("2s", "1s"), "1%", "50%"),
        (20_000, ("2s", "2s"), "1%", "10%"),
        (100_000, ("2s", "1s"), "1%", "50%"),
        (5_000, ("1s", "250ms"), "5%", "25%"),
        (50_000, ("1500ms", "1s"), "100%", "50%"),
        (50_000, ("1s", "1s"), "30%", "75%"),
        (50_000, ("1s", "400ms"), "50%", "33.34%"),
        (400_000, ("1s", "500ms"), "0.1%", "50%"),
    ],
)
def test_the_selectivity_is_met_at_any_load_and_window(
    rate: int, windows: tuple[str, str], selectivity: str, ads: str, distribution: str
) -> None:
    window, slide = windows
    params = params_of(window=window, slide=slide, selectivity=selectivity, ads=ads, distribution=distribution)
    share, purchases = found_shares(made(params, constant(rate), 5 * SECOND), params)
    assert purchases > 10_000
    assert share == pytest.approx(params.selectivity, rel=0.05)


@pytest.mark.parametrize("users", [2, 30, 1_000, 1_000_000])
@pytest.mark.parametrize("selectivity", [0.01, 0.5])
def test_the_selectivity_does_not_depend_on_the_number_of_users(users: int, selectivity: float) -> None:
    params = params_of(window="1s", slide="1s", selectivity=selectivity, users=users, gem_packs=3)
    share, _ = found_shares(made(params, constant(40_000), 4 * SECOND), params)
    assert share == pytest.approx(selectivity, rel=0.05)


@pytest.mark.parametrize(
    "profile",
    [ramp(1_000, 60_000, 4 * SECOND), steps([(SECOND, 50_000.0), (SECOND, 5_000.0), (3 * SECOND, 80_000.0)])],
    ids=["ramp", "steps"],
)
def test_the_selectivity_is_met_while_the_load_changes(profile: LoadProfile) -> None:
    params = params_of(window="1s", slide="500ms", selectivity="2%", ads="40%")
    share, _ = found_shares(made(params, profile, 5 * SECOND), params)
    assert share == pytest.approx(0.02, rel=0.05)


def test_a_match_is_still_one_after_billions_of_events() -> None:
    params = params_of(selectivity="3.3%", ads="12.34%")
    offers, late = params.offers(7), 10**11 + 7
    numbers = [blocks.numbers(late, 1000) for blocks in (offers.purchases, offers.shown)]
    per_ad = (1 - offers.ads) / offers.ads
    assert np.abs(numbers[0] - numbers[1] * float(per_ad)).max() < 2 * float(per_ad) + 1e-3 * float(per_ad)
    found, events = offers.shown.within(int(numbers[1][0]), int(numbers[1][-1]) + 1)
    assert (found.tolist(), events.tolist()) == (list(range(late, late + 1000)), numbers[1].tolist())


def test_every_block_has_exactly_one_match() -> None:
    offers = params_of(selectivity="7%", ads="30%").offers(3)
    for blocks in (offers.purchases, offers.shown):
        numbers = blocks.numbers(0, 5_000)
        assert [blocks.block_of(number) for number in numbers.tolist()] == list(range(5_000))


def test_purchases_that_find_no_ad_and_ads_that_find_no_purchase_have_separate_users() -> None:
    params = params_of(selectivity="10%", users=1_000, ads="50%")
    events = made(params, constant(50_000), 2 * SECOND)
    buyers = params.offers(7).buyers
    assert buyers == 100
    users = {name: events[name]["user_id"] for name in STREAMS}
    assert (users["purchases"] < buyers).mean() == pytest.approx(0.1, abs=1e-4)
    assert (users["ads"] < buyers).mean() == pytest.approx(0.1, abs=1e-4)
    assert ((users["ads"] < buyers) | (users["ads"] >= 1_000)).all()
    assert users["ads"].max() < 2_000
    counts = np.bincount(users["purchases"], minlength=1_000)
    assert counts.min() > 0, "all users make purchases, equally often"
    assert counts.std() / np.sqrt(counts.mean()) < 1.2


def test_purchases_without_offers_are_those_of_the_windowed_aggregation() -> None:
    params = params_of(selectivity="1%")
    inputs = inputs_of(params, constant(10_000), SECOND)
    joined = windowed_join.events(params, "purchases", inputs).events(0, 5_000)
    plain = Purchases(WindowedAggregationParams(), inputs.plans["purchases"], 7, origin=ORIGIN).events(0, 5_000)
    assert all(np.array_equal(joined[name], plain[name]) for name in ("gem_pack_id", "price", "due"))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("selectivity", ["1%", "37%", "100%"])
def test_any_range_of_a_stream_is_a_slice_of_the_whole(stream: str, selectivity: str) -> None:
    params = params_of(selectivity=selectivity, ads="50%", gem_packs=2_000)
    source = windowed_join.events(params, stream, inputs_of(params, constant(200_000), SECOND))
    whole = source.events(0, 100_000)
    for start, stop, stride, offset in (
        (0, 100_000, 1, 0),
        (1_234, 99_999, 1, 0),
        (17, 90_000, 3, 1),
        (99_999, 100_000, 2, 0),
        (5, 99_000, 64, 63),
        (500, 500, 2, 1),
    ):
        part = source.events(start, stop, stride, offset)
        for name, column in whole.items():
            assert np.array_equal(part[name], column[start + (offset - start) % stride : stop : stride])


GOLDEN = {
    "purchases": "52acf5adecbef1e8eb0bba9986af026bc2d74a8c272487ec7f356b7a2293208a",
    "ads": "5eb9d2f1c6ce0c5b3e11a150002d87fed7b993537d0c3b021b2994875deb1d83",
}


@pytest.mark.parametrize("stream", STREAMS)
def test_the_events_are_the_same_bytes_on_every_machine(stream: str) -> None:
    params = params_of(selectivity="3%", ads="40%")
    source = windowed_join.events(params, stream, inputs_of(params, constant(300_000), SECOND))
    digest = hashlib.sha256()
    for name, column in source.events(0, 100_000).items():
        digest.update(name.encode() + column.astype(column.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == GOLDEN[stream]


def test_events_have_the_columns_of_their_schema() -> None:
    events = made(params_of(), constant(1_000), SECOND)
    assert [*events["purchases"]] == [name for name, _ in PURCHASES]
    assert [*events["ads"]] == [name for name, _ in ADS]
    assert sum(column.dtype.itemsize for column in events["ads"].values()) == 16


def test_words_at_any_place_are_those_of_the_stream() -> None:
    state = stream_state(5, 2)
    counted = CountedWords(state, 3, 100).words(10**12, 100).tolist()
    assert words_at(state, np.arange(10**12, 10**12 + 300, 3)).tolist() == counted


@pytest.mark.parametrize(
    ("values", "key", "sentence"),
    [
        ({"selectivity": "50%", "ads": "10%"}, "selectivity", "use a selectivity of at most 11.11%, or more ads"),
        ({"selectivity": "1%", "users": 1}, "users", "use at least 2 users"),
    ],
)
def test_a_selectivity_that_cannot_be_met_is_refused(values: dict[str, Any], key: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        params_of(**values)
    (error,) = refused.value.errors()
    assert error["ctx"]["key"] == key
    assert sentence in error["msg"]


@pytest.mark.parametrize(
    ("selectivity", "ads", "users", "possible"),
    [(1.0, 0.5, 1, True), (1.0, 0.4999, 10, False), (0.01, 0.0099, 10, False), (0.01, 0.01, 10, True)],
)
def test_as_many_ads_are_needed_as_purchases_find_one(
    selectivity: float, ads: float, users: int, possible: bool
) -> None:
    assert (offer_problem(selectivity, ads, users) == ("", "")) == possible


def test_a_job_that_emits_early_has_the_later_event_of_each_pair() -> None:
    params = params_of(window="400ms", slide="200ms", selectivity="50%", users=20, gem_packs=3)
    inputs = inputs_of(params, constant(2_000), 2 * SECOND)
    rows = windowed_join.reference(params, inputs).until({"purchases": 1_000, "ads": 1_000})
    whole, early = rows_of_job(rows, early=False), rows_of_job(rows, early=True)
    assert EARLY_MAX_DUE not in {*whole, *early}
    assert {*whole} == {*early}
    assert (early["max_due"] <= whole["max_due"]).all()
    assert (early["max_due"] < whole["max_due"]).any()
    due = {name: windowed_join.events(params, name, inputs).events(0, 1_000)["due"] for name in STREAMS}
    later = np.maximum(due["purchases"][rows["purchase"]], due["ads"][rows["ad"]])
    assert np.array_equal(early["max_due"], later)
    plain = {"window_start": np.arange(3)}
    assert rows_of_job(plain, early=True) == plain


def test_no_events_give_no_rows() -> None:
    params = params_of()
    inputs = inputs_of(params, constant(1_000), SECOND)
    for events in ({"purchases": 0, "ads": 0}, {"purchases": 1, "ads": 0}, {"purchases": 0, "ads": 5}):
        rows = windowed_join.reference(params, inputs).until(events)
        assert {len(column) for column in rows.values()} == {0}
