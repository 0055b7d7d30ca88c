"""The workload that hands every event on: its answer is each event once, by its number."""

import numpy as np
import pytest

from streamgauge.judge.outputs import account
from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.workloads.ingest import IngestParams, ingest
from streamgauge.workloads.registry import workloads

ORIGIN = 1_700_000_000 * SECOND
PLAN = constant(1_000).plan(10 * SECOND)
PARAMS = IngestParams().model_dump()


def test_every_event_is_in_the_answer_once_with_its_due_time() -> None:
    assert ingest.reference is not None
    assert ingest.stream is not None
    answer = ingest.reference(PARAMS, PLAN, 7, ORIGIN).until(500)
    events = ingest.stream(PARAMS, PLAN, 7, ORIGIN).events(0, 500)
    assert answer["sequence"].tolist() == list(range(500))
    assert np.array_equal(answer["max_due"], events["due"])


def test_a_stretch_of_event_time_holds_the_events_that_are_due_in_it() -> None:
    assert ingest.reference is not None
    origin = ORIGIN // 1_000
    part = ingest.reference(PARAMS, PLAN, 7, ORIGIN).windows(origin + 1_000_000, origin + 1_250_000)
    assert (part["sequence"][0], len(part["sequence"])) == (1_000, 250)


def test_what_is_lost_double_or_unknown_is_counted_by_number() -> None:
    assert ingest.reference is not None
    answer = ingest.reference(PARAMS, PLAN, 7, ORIGIN).until(100)
    numbers = np.array([*range(50), *range(52, 90), 7, 100], np.int64)
    observed = {"sequence": numbers}
    found = account(answer, observed, window=1, closed=90, identity=ingest.identity)
    assert (found.lost, found.duplicate, found.wrong, found.not_reached) == (2, 1, 1, 10)


@pytest.mark.parametrize("name", ["windowed-aggregation", "ingest"])
def test_a_workload_that_is_answered_says_what_an_output_looks_like(name: str) -> None:
    workload = workloads()[name]
    columns = dict(workload.outputs)
    assert set(workload.identity) <= set(columns)
    assert columns["max_due"] == columns["max_ingested"] == "timestamp[us, tz=UTC]"
    assert workload.one_to_one == (name == "ingest")
