"""The reference result of windowed-aggregation: exact, however it is cut, at sizes that a plain count cannot reach."""

from typing import Any

import numpy as np
import pytest

from streamgauge.model.profile import Plan, constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.references import window_sums
from streamgauge.workloads.references.window_sums import COLUMNS, WindowSums
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
PLAN = constant(200_000).plan(20 * SECOND)


class Sums:
    """The sums of one stream of purchases, asked for by the number of its events."""

    def __init__(
        self,
        params: WindowedAggregationParams,
        plan: Plan = PLAN,
        *,
        seed: int = 7,
        origin: int = ORIGIN,
        stream: int = 0,
    ) -> None:
        self.sums = WindowSums(Purchases(params, plan, seed, stream, origin), params.window, params.slide)

    def until(self, events: int) -> Columns:
        return self.sums.until({"purchases": events})


def reference(**params: Any) -> Sums:  # noqa: ANN401
    return Sums(WindowedAggregationParams.model_validate(params))


def same(left: Columns, right: Columns) -> bool:
    return all(np.array_equal(left[name], right[name]) for name in COLUMNS)


def test_windows_are_aligned_to_the_epoch_and_contain_what_spark_puts_into_them() -> None:
    params = WindowedAggregationParams.model_validate({"window": "8s", "slide": "4s", "distribution": "single"})
    answer = Sums(params, constant(10).plan(8 * SECOND), seed=1, origin=10 * SECOND).until(80)
    assert answer["window_start"].tolist() == [4_000_000, 8_000_000, 12_000_000, 16_000_000]
    assert answer["count"].tolist() == [20, 60, 60, 20]
    assert answer["max_due"].tolist() == [11_900_000, 15_900_000, 17_900_000, 17_900_000]


def test_sums_equal_those_of_the_events_that_engines_see() -> None:
    made = Purchases(WindowedAggregationParams(), PLAN, 7, 0, ORIGIN).events(0, PLAN.total)
    answer = reference().until(PLAN.total)
    for row in range(0, len(answer["sum"]), 37):
        start, key = int(answer["window_start"][row]), int(answer["gem_pack_id"][row])
        held = (made["gem_pack_id"] == key) & (made["due"] >= start) & (made["due"] < start + 8_000_000)
        assert answer["sum"][row] == made["price"][held].sum()
        assert answer["count"][row] == held.sum()
        assert answer["max_due"][row] == made["due"][held].max()


def test_the_reference_result_does_not_depend_on_the_cut() -> None:
    whole = reference(slide="3s").until(PLAN.total)
    cut = reference(slide="3s")
    for events in [0, 1, 16_384, 16_385, 1_000_000, 2_999_999]:
        cut.until(events)
    assert same(cut.until(PLAN.total), whole)


def test_with_fewer_events_than_before_it_begins_again() -> None:
    asked = reference()
    early = asked.until(1_000_000)
    asked.until(3_000_000)
    assert same(asked.until(1_000_000), early)


def test_totals_do_not_depend_on_how_many_events_are_added_together(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reference(distribution="single").until(PLAN.total)
    monkeypatch.setattr(window_sums, "_MAX_CHUNK", 30_000)
    assert same(reference(distribution="single").until(PLAN.total), whole)


def test_windows_in_a_pause_of_the_load_do_not_exist() -> None:
    plan = steps([(SECOND, 100.0), (9 * SECOND, 0.0), (SECOND, 100.0)]).plan(11 * SECOND)
    params = WindowedAggregationParams.model_validate({"window": "2s", "slide": "1s"})
    answer = Sums(params, plan, seed=1, origin=0).until(plan.total)
    assert sorted(set(answer["window_start"].tolist())) == [-1_000_000, 0, 9_000_000, 10_000_000]


def test_no_events_have_no_expected_rows() -> None:
    answer = reference().until(0)
    assert [len(answer[name]) for name in COLUMNS] == [0] * 5


def test_another_stream_has_another_reference_result() -> None:
    other = Sums(WindowedAggregationParams(), stream=1)
    assert not np.array_equal(other.until(100_000)["sum"], reference().until(100_000)["sum"])


def test_windows_finer_than_a_microsecond_are_refused() -> None:
    params = WindowedAggregationParams.from_resolved({"slide": 1_500})
    with pytest.raises(ValueError, match="microseconds"):
        Sums(params).until(1)


def test_a_slide_that_is_longer_than_the_window_is_refused() -> None:
    params = WindowedAggregationParams.from_resolved({"window": SECOND, "slide": 2 * SECOND})
    with pytest.raises(ValueError, match="longer than the window"):
        Sums(params).until(1)
