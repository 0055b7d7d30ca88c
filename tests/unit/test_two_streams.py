"""The contract of a workload and the send schedule hold for several streams: one plan per stream, all in step."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from two_streams import TwoStreamParams, TwoStreams, two_streams

from streamgauge.model.profile import LoadProfile, constant, ramp, steps
from streamgauge.model.streams import StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import (
    EventBuffer,
    PartitionBuffer,
    SendSchedule,
    open_source,
    require_streams,
)
from streamgauge.run.driver.specs import MILLI
from streamgauge.workloads.contract import Inputs, Stream, Workload, has_reference, plans_of, profiles_of
from streamgauge.workloads.ingest import IngestParams, ingest
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

WORKLOAD: Workload[TwoStreamParams] = two_streams
PARAMS = TwoStreamParams.from_resolved({"gem_packs": 10})
STREAMS = WORKLOAD.streams(PARAMS)
ORIGIN = 1_700_000_000 * SECOND + 123_000
HORIZON = 4 * SECOND
PROFILES = {
    "constant": constant(10_000),
    "ramp": ramp(1_000, 20_000, 3 * SECOND),
    "steps": steps([(SECOND, 5_000.0), (SECOND, 0.0), (SECOND, 12_000.0)]),
}
PROFILE = PROFILES["steps"]


def inputs_of(profile: LoadProfile = PROFILE) -> Inputs:
    return Inputs(plans_of(STREAMS, profile, HORIZON), seed=7, origin_ns=ORIGIN)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_every_stream_has_its_share_of_the_load_at_every_moment(profile: LoadProfile) -> None:
    plans, whole = plans_of(STREAMS, profile, HORIZON), profile.plan(HORIZON)
    moments = np.arange(0, HORIZON, 7 * MILLI)
    counts = {name: plan.count(moments) for name, plan in plans.items()}
    for stream in STREAMS:
        assert np.abs(counts[stream.name] - stream.share * whole.count(moments)).max() <= 2
    assert np.abs(sum(counts.values()) - whole.count(moments)).max() <= 2
    assert {plan.horizon for plan in plans.values()} == {HORIZON}


def test_one_stream_has_the_load_of_the_trial_as_it_is() -> None:
    (stream,) = windowed_aggregation.streams(WindowedAggregationParams())
    assert profiles_of([stream], PROFILE) == {"purchases": PROFILE}


def test_a_stream_that_the_job_writes_itself_has_no_plan() -> None:
    feedback = Stream("groups", (), share=0.0)
    assert list(plans_of([*STREAMS, feedback], PROFILE, HORIZON)) == ["purchases", "ads"]


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_shares_that_do_not_add_up_to_one_are_refused(share: float) -> None:
    purchases, ads = STREAMS
    with pytest.raises(ValueError, match="purchases, ads must add up to 1, not"):
        plans_of([purchases, replace(ads, share=share)], PROFILE, HORIZON)


@pytest.mark.parametrize("stream", ["purchases", "ads"])
def test_any_range_of_a_stream_can_be_made_without_those_before_it(stream: str) -> None:
    source = WORKLOAD.events(PARAMS, stream, inputs_of())
    whole = source.events(0, 2_000)
    for start, stop, stride, offset in (
        (0, 2_000, 1, 0),
        (1_234, 1_999, 1, 0),
        (17, 1_500, 3, 1),
        (1_999, 2_000, 2, 0),
    ):
        part = source.events(start, stop, stride, offset)
        for name, column in whole.items():
            assert np.array_equal(part[name], column[start + (offset - start) % stride : stop : stride])


def test_the_streams_have_different_events() -> None:
    purchases, ads = (WORKLOAD.events(PARAMS, stream.name, inputs_of()).events(0, 1_000) for stream in STREAMS)
    assert not np.array_equal(purchases["gem_pack_id"], ads["gem_pack_id"])


@pytest.mark.parametrize("events", [(0, 0), (700, 0), (1, 900), (2_500, 800), (12_000, 4_000)])
def test_the_reference_result_is_that_of_the_first_events_of_each_stream(events: tuple[int, int]) -> None:
    inputs, expected = inputs_of(), Counter[tuple[int, int, str]]()
    until = {stream.name: count for stream, count in zip(STREAMS, events, strict=True)}
    for name, count in until.items():
        made = WORKLOAD.events(PARAMS, name, inputs).events(0, count)
        for pack, due in zip(made["gem_pack_id"].tolist(), made["due"].tolist(), strict=True):
            expected[due // 1_000_000 * 1_000_000, pack, name] += 1
    result = WORKLOAD.reference(PARAMS, inputs)
    assert result is not None
    rows = result.until(until)
    found = {
        (start, pack, name): count
        for name in until
        for start, pack, count in zip(*(rows[n].tolist() for n in ("window_start", "gem_pack_id", name)), strict=True)
        if count
    }
    assert found == expected


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_send_has_what_is_due_of_every_stream_and_no_stream_runs_ahead(partitions: int) -> None:
    inputs, step = inputs_of(), 10 * MILLI
    schedules, buffers = dict[str, SendSchedule](), list[PartitionBuffer]()
    for stream in STREAMS:
        source = open_source(WORKLOAD, PARAMS, stream, inputs, partitions=partitions)
        schedules[stream.name] = SendSchedule(inputs.plans[stream.name], step, partitions)
        buffers += [
            PartitionBuffer(StreamPartition(stream.name, p), source, schedules[stream.name]) for p in range(partitions)
        ]
    clock = iter(range(10**9))
    ready = EventBuffer(buffers, 50 * MILLI, lambda: next(clock))
    got: dict[str, list[int]] = {stream.name: [] for stream in STREAMS}
    for number in range(HORIZON // step):
        moment = (number + 1) * step
        if number % 2:
            ready.make_ahead(number * step, HORIZON, 10**9)
        parts: list[Any] = ready.take_due(moment)
        for partition, batch in parts:
            due = batch.column("due").cast("int64").to_numpy()
            assert not len(due) or moment - step <= due[0] * 1_000 - ORIGIN <= due[-1] * 1_000 - ORIGIN < moment
            got[partition.stream] += due.tolist()
        assert {name: len(due) for name, due in got.items()} == {
            n: schedule.due_before(moment) for n, schedule in schedules.items()
        }
    for name, due in got.items():
        assert sorted(due) == WORKLOAD.events(PARAMS, name, inputs).events(0, inputs.plans[name].total)["due"].tolist()


def test_what_can_be_checked_has_streams_and_a_reference_result() -> None:
    assert has_reference(WORKLOAD, PARAMS)
    assert has_reference(ingest, IngestParams())
    assert has_reference(windowed_aggregation, WindowedAggregationParams.from_resolved({"window": 1, "slide": 1}))
    assert not has_reference(Unmade(), PARAMS)


class Unmade(TwoStreams):
    """A workload whose events streamgauge cannot make."""

    name = "unmade"

    def streams(self, params: TwoStreamParams) -> tuple[Stream, ...]:
        """None."""
        return ()


def test_a_workload_without_events_is_refused_by_the_load_generator() -> None:
    with pytest.raises(ValueError, match="does not support the workload unmade; it supports windowed-aggregation"):
        require_streams(Unmade(), PARAMS)


def test_only_an_output_without_window_is_identified_by_the_number_of_an_event() -> None:
    assert ingest.output(IngestParams()).numbered
    assert not WORKLOAD.output(PARAMS).numbered
    assert not replace(ingest.output(IngestParams()), window_column="window_end").numbered
