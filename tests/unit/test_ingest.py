"""The workload that hands every event on: its answer is each event once, by its number."""

import numpy as np
import pytest

from streamgauge.judge.outputs import compare_outputs
from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.ingest import IngestParams, ingest
from streamgauge.workloads.registry import workloads

ORIGIN = 1_700_000_000 * SECOND
PLAN = constant(1_000).plan(10 * SECOND)
PARAMS = IngestParams()
INPUTS = Inputs({"purchases": PLAN}, 7, ORIGIN)


def test_every_event_is_expected_once_with_its_due_time() -> None:
    answer = ingest.reference(PARAMS, INPUTS).until({"purchases": 500})
    events = ingest.events(PARAMS, "purchases", INPUTS).events(0, 500)
    assert answer["sequence"].tolist() == list(range(500))
    assert np.array_equal(answer["max_due"], events["due"])


def test_what_is_lost_double_or_unknown_is_counted_by_number() -> None:
    answer = ingest.reference(PARAMS, INPUTS).until({"purchases": 100})
    numbers = np.array([*range(50), *range(52, 90), 7, 100], np.int64)
    observed = {"sequence": numbers}
    found = compare_outputs(answer, observed, window=1, closed=90, identity=ingest.output(PARAMS).identity).account
    assert (found.lost, found.duplicate, found.wrong, found.not_reached) == (2, 1, 1, 10)


@pytest.mark.parametrize("name", sorted(workloads()))
def test_a_workload_with_a_reference_result_has_an_output_contract(name: str) -> None:
    workload = workloads()[name]
    output = workload.output(workload.params())
    columns = dict(output.schema)
    assert set(output.identity) <= set(columns)
    assert columns["max_due"] == columns["max_ingested"] == "timestamp[us, tz=UTC]"
    assert output.window_column in (None, *columns)
    assert output.numbered == (name in ("ingest", "database-storage", "traffic") and output.window_column is None)
    numbered = {"windowed-join": [True, True], "ingest": [True], "database-storage": [True]}
    streams = workload.streams(workload.params())
    assert [stream.numbered for stream in streams] == numbered.get(name, [False] * len(streams))
