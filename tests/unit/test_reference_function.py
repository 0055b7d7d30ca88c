"""A user's reference is called for slices of event-time if its rows depend only on the events of their window."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.model.profile import constant, ramp
from streamgauge.model.units import SECOND
from streamgauge.run.trial.custom_result import CustomResult, UserReferenceError
from streamgauge.run.trial.reference_function import UserReference
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
PARAMS = WindowedAggregationParams(window="1s", slide="1s", gem_packs=3)
PROFILES = [constant(8_000.0), ramp(1_000.0, 16_000.0, 20 * SECOND)]
EVENTS, ONE_CALL = 400_000, 80_000
_SECOND = pa.duration("us")


def tumbling(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Purchases of each gem pack in each second, as the guide has it."""
    second = pc.floor_temporal(events["due"], unit="second")
    found = pa.table({"start": second, "pack": events["gem_pack_id"]}).group_by(["start", "pack"])
    rows = found.aggregate([([], "count_all")])
    ends = pc.add(rows["start"], pa.scalar(1_000_000, _SECOND))
    return pa.table({"gem_pack_id": rows["pack"], "window_end": ends, "purchases": rows["count_all"]})


def sliding(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Mean prices in windows of 3 s that begin every second."""
    second = pc.floor_temporal(events["due"], unit="second")
    shifted = [
        pa.table({"window_end": pc.add(second, pa.scalar(ahead * 1_000_000, _SECOND)), "price": events["price"]})
        for ahead in (1, 2, 3)
    ]
    return pa.concat_tables(shifted).group_by("window_end").aggregate([("price", "mean")])


def running_total(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """All purchases so far at the end of each second: a row depends on every event before it."""
    counted = tumbling(events, params).group_by("window_end").aggregate([("purchases", "sum")]).sort_by("window_end")
    return pa.table({"window_end": counted["window_end"], "total": pc.cumulative_sum(counted["purchases_sum"])})


def first_of_a_user(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """New users in each second: a row depends on who came before."""
    first = events.group_by("user_id").aggregate([("due", "min")])
    ends = pc.add(pc.floor_temporal(first["due_min"], unit="second"), pa.scalar(1_000_000, _SECOND))
    return pa.table({"window_end": ends}).group_by("window_end").aggregate([([], "count_all")])


def expensive(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    return events.filter(pc.greater(events["price"], 5_000)).select(["user_id", "price"])


class Counted:
    """A reference that remembers how many events it was given together."""

    def __init__(self, reference: Any) -> None:  # noqa: ANN401
        self.reference, self.calls = reference, list[int]()

    def __call__(self, events: pa.Table, params: dict[str, Any]) -> pa.Table:
        self.calls.append(len(events))
        return self.reference(events, params)


def reference_of(reference: Any, profile: Any = PROFILES[0]) -> UserReference:  # noqa: ANN401
    plan = profile.plan(60 * SECOND)
    (stream,) = windowed_aggregation.streams(PARAMS)
    source = windowed_aggregation.events(PARAMS, stream.name, Inputs({stream.name: plan}, 5, ORIGIN))
    return UserReference(reference, stream, source, plan, ORIGIN, PARAMS.model_dump(), one_call=ONE_CALL)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("reference", [tumbling, sliding])
def test_slices_give_the_rows_of_one_call_and_no_call_gets_all_events(reference: Any, profile: Any) -> None:  # noqa: ANN401
    counted = Counted(reference)
    rows, whole = reference_of(counted, profile).answer(EVENTS), reference_of(reference, profile).whole(EVENTS)
    found = CustomResult(whole, closed=np.iinfo(np.int64).max // 1_000).account(rows)
    assert (found.lost, found.duplicate, found.wrong, found.observed) == (0, 0, 0, len(whole))
    assert max(counted.calls) < EVENTS / 2


@pytest.mark.parametrize("reference", [running_total, first_of_a_user])
def test_a_reference_whose_rows_depend_on_more_than_their_window_gets_all_events_together(reference: Any) -> None:  # noqa: ANN401
    counted = Counted(reference)
    rows = reference_of(counted).answer(EVENTS)
    assert counted.calls[-1] == EVENTS
    assert rows.sort_by("window_end").equals(reference_rows(reference).sort_by("window_end"))


def reference_rows(reference: Any) -> pa.Table:  # noqa: ANN401
    return reference_of(reference).whole(EVENTS)


def test_a_reference_without_windows_gets_all_events_together() -> None:
    counted = Counted(expensive)
    reference_of(counted).answer(EVENTS)
    assert counted.calls[-1] == EVENTS


def test_few_events_are_given_together_without_a_sample_before() -> None:
    counted = Counted(tumbling)
    reference_of(counted).answer(ONE_CALL)
    assert counted.calls == [ONE_CALL]


def test_what_a_reference_raises_for_all_events_is_an_error_of_the_user() -> None:
    def broken(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        raise KeyError("no such pack")

    with pytest.raises(UserReferenceError, match="no such pack"):
        reference_of(broken).answer(EVENTS)


def two_ends(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Windows with two columns for their end."""
    rows = tumbling(events, params)
    return rows.append_column("window_end", rows["window_end"])


def ends_beyond_64_bits(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Windows whose ends are whole numbers that no timestamp can have."""
    rows = tumbling(events, params)
    return rows.set_column(1, "window_end", pa.array([2**63 + 5] * len(rows), pa.uint64()))


@pytest.mark.parametrize(
    ("reference", "message"),
    [(two_ends, "two columns with the name 'window_end'"), (ends_beyond_64_bits, "'window_end' of the type uint64")],
)
def test_windows_that_cannot_be_read_in_a_long_trial_are_an_error_of_the_user(reference: Any, message: str) -> None:  # noqa: ANN401
    rows = reference_of(reference).answer(EVENTS)
    with pytest.raises(UserReferenceError, match=message):
        CustomResult(rows, closed=10).account(rows)


def test_one_window_that_ends_in_the_year_9999_leaves_all_rows_in_place() -> None:
    never, number = pa.scalar(datetime(9999, 12, 31, tzinfo=UTC), pa.timestamp("us", "UTC")), 150_007
    rare = pa.scalar((ORIGIN + number * SECOND // 8_000) // 1_000, pa.int64())

    def with_a_late_one(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        rows = tumbling(events, params)
        if not pc.any(pc.equal(events["due"].cast(pa.int64()), rare)).as_py():
            return rows
        return pa.concat_tables(
            [rows, rows.slice(0, 1).set_column(1, "window_end", pa.array([never.as_py()], never.type))]
        )

    rows, whole = reference_of(with_a_late_one).answer(EVENTS), reference_of(with_a_late_one).whole(EVENTS)
    assert len(whole) == len(reference_of(tumbling).whole(EVENTS)) + 1
    assert CustomResult(whole, closed=np.iinfo(np.int64).max // 1_000).account(rows).lost == 0
