"""What differs between a stored trial and the same one judged again is named, value by value."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judge_samples import recording

from streamgauge.analyze.journals import journals_of
from streamgauge.analyze.rejudge import differences_in_seconds, differences_in_values, rejudge
from streamgauge.judge import decide, measure
from streamgauge.model.facts import TrialFacts
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Latencies, Seconds
from streamgauge.store.durable import FileDigest
from streamgauge.store.facts import facts_from_json
from streamgauge.store.trials import Extent, StoredTrial

NO_OBJECTIVES: tuple[Objective, ...] = ()


def seconds(published: list[int], cells: list[tuple[int, int, int]]) -> Seconds:
    columns = [np.array(column, np.int64) for column in zip(*cells, strict=True)]
    return Seconds(0, {"published": np.array(published, np.int64)}, {"event-time": Latencies(*columns)})


def test_counts_of_one_bucket_may_come_in_several_rows() -> None:
    once = seconds([1, 2], [(0, 7, 5), (1, 9, 1)])
    twice = seconds([1, 2], [(1, 9, 1), (0, 7, 2), (0, 7, 3), (0, 8, 0)])
    assert [*differences_in_seconds(once, twice)] == []


def test_a_column_and_a_bucket_that_differ_are_named() -> None:
    stored, again = seconds([1, 2, 3], [(0, 7, 5)]), seconds([1, 5, 3], [(0, 8, 5)])
    assert [*differences_in_seconds(stored, again)] == [
        "the column published differs in 1 of 3 seconds (second 1: 2 stored, 5 recomputed)",
        "the event-time latencies differ in 2 buckets (second 0, bucket 7: 5 stored, 0 recomputed; "
        "second 0, bucket 8: 0 stored, 5 recomputed)",
    ]
    shorter = seconds([1], [(0, 7, 5)])
    assert [*differences_in_seconds(stored, shorter)] == ["the seconds stored are 0 to 2, those recomputed 0 to 0"]


def test_a_trial_is_the_same_as_itself_and_not_as_another() -> None:
    kept = recording()
    measured = measure(kept)
    verdict = decide(kept, measured, NO_OBJECTIVES)
    same = rejudge(kept, (measured, verdict), NO_OBJECTIVES, kept.seconds)
    assert (same.same, same.source, same.verdict) == (True, "journals", verdict)
    assert rejudge(kept, (measured, verdict), NO_OBJECTIVES, None).source == "seconds"
    wrong = rejudge(kept, (replace(measured, drops=7, load=float("nan")), verdict), NO_OBJECTIVES, None)
    assert wrong.differences == (
        f"measurement.load was stored as nan, and is {measured.load} now",
        "measurement.drops was stored as 7, and is 0 now",
    )


def test_values_are_compared_to_the_innermost() -> None:
    nan = float("nan")
    assert [*differences_in_values("x", {"a": (1, nan)}, {"a": (1, nan)})] == [], "a number that is none equals itself"
    found = [*differences_in_values("x", {"a": (1, nan)}, {"a": (1, 2.0)})]
    assert found == ["x.a[1] was stored as nan, and is 2.0 now"]
    assert [*differences_in_values("x", (1,), (1, 2))] == ["x was stored as (1,), and is (1, 2) now"]


@pytest.mark.parametrize(
    ("facts", "driver", "sut"),
    [
        ({"driver_cores": [0, 1], "sut_cores": [2]}, (0, 1), (2,)),
        ({"placement": "the driver on core 0, 1, the system under test on core 2, 3"}, (0, 1), (2, 3)),
        ({"placement": "nothing is pinned: the driver and the system under test share all cores"}, (), ()),
    ],
)
def test_the_cores_are_those_of_the_trial(
    tmp_path: Path, facts: dict[str, object], driver: tuple[int, ...], sut: tuple[int, ...]
) -> None:
    kept = recording()
    measured = measure(kept)
    verdict = decide(kept, measured, ())
    (tmp_path / "collector.json").write_text('{"firing": "window_end"}')
    marks = {name: FileDigest(0, "") for name in ("driver-0.json", "driver-1.json", "collector.json", "driver-0.log")}
    stored = StoredTrial(
        tmp_path,
        kept.trial,
        kept.outcome,
        measured,
        verdict,
        facts_from_json({"wall_ns": 1_234_567, **facts}),
        Extent(0, 9, ()),
        marks,
    )
    found = journals_of(stored)
    assert found is not None
    assert (found.drivers, found.stop, found.origin_us, found.firing) == (2, 9, 1_234, "window_end")
    assert (found.driver_cores, found.sut_cores) == (driver, sut)
    assert journals_of(replace(stored, files={})) is None, "simulated time"
    assert journals_of(replace(stored, facts=TrialFacts())) is None, "its load never began"
