"""The workload ``traffic``: its records, and the reference result of each stage against a computation from the JSON."""

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.judge.compare_columns import columns_of
from streamgauge.model.profile import Plan, constant, ramp
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.traffic import CARS, FLOW, SLOWEST, SPEED, SPEEDS, STREAMS
from streamgauge.workloads.traffic import TrafficParams, traffic

ORIGIN = 1_700_000_000_923_456_789
PARAMS = TrafficParams.model_validate({"locations": 7, "lanes": 3, "window": "10ms"})
PLANS = plans_of(STREAMS, ramp(4_000, 9_000, SECOND), SECOND)
INPUTS = Inputs(PLANS, 11, ORIGIN)
Row = dict[str, Any]


def texts(made: Mapping[str, Any]) -> list[str]:
    """The records of some events."""
    found: list[str] = made["json"].to_pylist()
    return found


def records(stream: str, count: int) -> list[Row]:
    """The first observations of a stream, read from their JSON."""
    made = traffic.events(PARAMS, stream, INPUTS).events(0, count)
    rows = [json.loads(text) for text in texts(made)]
    for number, (row, due) in enumerate(zip(rows, made["due"].tolist(), strict=True)):
        moment = datetime.fromisoformat(row["time"]) - datetime(1970, 1, 1, tzinfo=UTC)
        row |= {"sequence": number, "due": due, "micros": round(moment.total_seconds() * 1e6)}
    return rows


def expected(stage: int, events: Mapping[str, int], window: str = "10ms") -> list[Row]:
    """The reference result of a stage, as rows; nulls are None."""
    params = TrafficParams.model_validate({"locations": 7, "lanes": 3, "window": window, "stage": stage})
    columns = traffic.reference(params, INPUTS).until(events)
    lists = {name: np.ma.array(column).tolist() for name, column in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


@pytest.mark.parametrize("stream", [FLOW, SPEED])
def test_a_record_is_json_of_180_to_200_bytes_with_the_time_at_which_it_is_due(stream: str) -> None:
    made = traffic.events(PARAMS, stream, INPUTS).events(0, 500)
    widths = {len(text) for text in texts(made)}
    assert len(widths) == 1
    assert 180 <= widths.pop() <= 200
    for row in records(stream, 500):
        assert row["type"] == stream
        assert row["micros"] == row["due"]
        assert 50 <= row["lat"] <= 54
        assert 3 <= row["lon"] <= 8
        assert 80 <= row["accuracy"] <= 100
    values = {row["cars" if stream == FLOW else "speed"] for row in records(stream, 3_000)}
    assert values == set(range(CARS)) if stream == FLOW else values == set(range(SLOWEST, SLOWEST + SPEEDS))


def test_each_lane_of_each_location_is_observed_once_in_a_round() -> None:
    rows = records(FLOW, 42)
    places = [(row["location"], row["lane"]) for row in rows]
    assert len(set(places[:21])) == 21
    assert places[:21] == places[21:]
    assert {row["lane"] for row in rows} == {1, 2, 3}


def test_both_streams_have_one_partner_for_every_time_location_and_lane() -> None:
    flow, speed = ([(row["time"], row["location"], row["lane"]) for row in records(s, 2_000)] for s in (FLOW, SPEED))
    assert flow == speed
    assert len(set(flow)) == len(flow)


@pytest.mark.parametrize("stride", [1, 2, 7])
def test_a_range_of_a_partition_is_a_slice_of_the_whole(stride: int) -> None:
    source = traffic.events(PARAMS, SPEED, INPUTS)
    whole = source.events(0, 1_000)
    for offset in range(stride):
        part = source.events(301, 907, stride, offset)
        first = 301 + (offset - 301) % stride
        assert texts(part) == texts(whole)[first:907:stride]
        assert part["due"].tolist() == whole["due"][first:907:stride].tolist()


def test_a_range_without_events_is_empty() -> None:
    made = traffic.events(PARAMS, FLOW, INPUTS).events(5, 5)
    assert len(made["json"]) == len(made["due"]) == 0


def test_records_are_the_same_bytes_on_every_machine() -> None:
    made = traffic.events(TrafficParams(), FLOW, Inputs({FLOW: constant(1000).plan(SECOND)}, 3, 10**18)).events(7, 8)
    assert texts(made) == [
        '{"type":"flow","location":"RWS01_MONIBAS_000003","lat":51.494459,"lon":5.751873,"lane":2,"lanes":2,'
        '"time":"2001-09-09T01:46:40.007000Z","period":60,"cars":28,"accuracy": 83,"inputs":74,"error":0}'
    ]


def test_the_load_is_two_streams_times_lanes_times_frequency() -> None:
    assert traffic.rate(TrafficParams()) == 26_000
    assert traffic.rate(TrafficParams.model_validate({"locations": 10, "lanes": 4, "frequency": "0.5/s"})) == 40


def test_stage_0_expects_every_record_of_both_streams() -> None:
    rows = expected(0, {FLOW: 70, SPEED: 60})
    made = {stream: traffic.events(PARAMS, stream, INPUTS).events(0, 70)["json"] for stream in (FLOW, SPEED)}
    digests = {s: columns_of(pa.table({"json": t}), ["json"], ["json"])["json"].tolist() for s, t in made.items()}
    wanted = [
        {"sequence": row["sequence"], "stream": stream, "json": digests[stream][n], "max_due": row["due"]}
        for stream, count in ((FLOW, 70), (SPEED, 60))
        for n, row in enumerate(records(stream, count))
    ]
    assert rows == wanted


def test_stage_1_expects_the_fields_of_every_record() -> None:
    wanted = [
        {
            "sequence": row["sequence"],
            "stream": stream,
            "location": row["location"],
            "lane": row["lane"],
            "cars": row.get("cars"),
            "speed": row.get("speed"),
            "max_due": row["micros"],
        }
        for stream, count in ((FLOW, 70), (SPEED, 60))
        for row in records(stream, count)
    ]
    assert expected(1, {FLOW: 70, SPEED: 60}) == wanted


def pairs(count: int) -> list[Row]:
    """Flow and speed joined on time, location and lane, by a dictionary."""
    speeds = {(row["time"], row["location"], row["lane"]): row["speed"] for row in records(SPEED, count)}
    return [row | {"speed": speeds[row["time"], row["location"], row["lane"]]} for row in records(FLOW, count)]


def test_stage_2_expects_the_pairs_that_both_streams_have() -> None:
    names = ("sequence", "location", "lane", "cars", "speed")
    wanted = [{name: row[name] for name in names} | {"max_due": row["micros"]} for row in pairs(55)]
    assert expected(2, {FLOW: 55, SPEED: 60}) == expected(2, {FLOW: 60, SPEED: 55}) == wanted


def totals(count: int, window: int) -> dict[tuple[int, str], list[Row]]:
    """The pairs of each window and location."""
    found: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in pairs(count):
        found[row["micros"] // window * window, row["location"]].append(row)
    return dict(sorted(found.items()))


def test_stage_3_expects_the_cars_and_the_mean_speed_of_each_window() -> None:
    wanted = [
        {
            "window_start": start,
            "location": location,
            "cars": sum(row["cars"] for row in rows),
            "speed": sum(row["speed"] for row in rows) / len(rows),
            "count": len(rows),
            "max_due": max(row["micros"] for row in rows),
        }
        for (start, location), rows in totals(2_000, 10_000).items()
    ]
    assert expected(3, {FLOW: 2_000, SPEED: 2_001}) == wanted


@pytest.mark.parametrize(("window", "micros"), [("10ms", 10_000), ("1ms", 1_000)])
def test_stage_4_expects_the_changes_over_5_and_10_windows(window: str, micros: int) -> None:
    cars = {key: sum(row["cars"] for row in rows) for key, rows in totals(2_500, micros).items()}
    found = expected(4, {FLOW: 2_500, SPEED: 2_500}, window)
    assert [(row["window_start"], row["location"]) for row in found] == list(cars)
    nulls = 0
    for row in found:
        now = cars[row["window_start"], row["location"]]
        assert row["cars"] == now
        for name, back in (("short_change", 5), ("long_change", 10)):
            before = cars.get((row["window_start"] - back * micros, row["location"]))
            assert row[name] == ((now - before) / before if before else None)
            nulls += before is None or before == 0
    assert 0 < nulls < 2 * len(found)


@pytest.mark.parametrize("stage", range(5))
def test_without_events_nothing_is_expected(stage: int) -> None:
    assert expected(stage, {FLOW: 0, SPEED: 0}) == []


@pytest.mark.parametrize("stage", range(5))
def test_the_reference_result_has_columns_of_the_output(stage: int) -> None:
    params = TrafficParams.model_validate({"stage": stage})
    plans: Mapping[str, Plan] = plans_of(STREAMS, constant(100), SECOND)
    columns = traffic.reference(params, Inputs(plans, 1, 0)).until({FLOW: 10, SPEED: 10})
    contract = traffic.output(params)
    assert {*contract.identity} <= {*columns} <= {name for name, _ in contract.schema}
    assert contract.numbered == (stage < 3)
