"""Every row of the table of what runs: the same seeded events, and outputs that equal the reference result exactly.

A new engine, workload, variant, transport or format is tested here because it is registered. `make test` runs a short
selection, `make soak` everything, with more events (STREAMGAUGE_CONFORMANCE_EVENTS).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import psutil
import pytest
from row_trials import EVENTS, KNOWN, PARAMETERS, Bench, assert_exact, expected

from streamgauge.engines.contract import ANY_WORKLOAD
from streamgauge.engines.table import Row, rows
from streamgauge.processes.placement import assign_cores
from streamgauge.run.monitor.monitor import available
from streamgauge.transports.registry import transports
from streamgauge.workloads.registry import workloads

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(
        not available() or not assign_cores(1).sut, reason="a trial on real processes needs /proc and two cores"
    ),
]

SHORT = {
    ("reference", "windowed-aggregation", "default", "queue", ""),
    ("spark", "windowed-aggregation", "naive", "queue", ""),
    ("spark", "windowed-join", "union", "queue", ""),
    ("reference", "windowed-aggregation", "default", "kafka", "binary"),
    ("spark", "windowed-aggregation", "naive", "kafka", "binary"),
    ("plain-python", "windowed-aggregation", "default", "kafka", "binary"),
    ("spark", "traffic", "stages", "queue", ""),
}
"""The rows that `make test` runs too; of several sets of parameters the last one."""
REAL = [row for row in rows(KNOWN) if not KNOWN[row.engine].traits(KNOWN[row.engine].options()).simulated]
CHECKED = [row for row in REAL if row.workload != ANY_WORKLOAD]


def _key(row: Row) -> tuple[str, ...]:
    return row.engine, row.workload, row.variant, row.transport, row.format


def _params(found: list[Row], short: set[tuple[str, str, str, str, str]]) -> list[object]:
    """One test per row and set of parameters; those that are not in the short selection are marked."""
    cases = [(row, sets, params) for row in found for sets in [PARAMETERS.get(row.workload, ({},))] for params in sets]
    return [
        pytest.param(
            row,
            params,
            id="-".join(part for part in (*_key(row), _changes(params, sets[0])) if part).replace("*", "any"),
            marks=[] if _key(row) in short and params is sets[-1] else [pytest.mark.soak],
        )
        for row, sets, params in cases
    ]


def _changes(params: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """What distinguishes a set of parameters from the others: its first value."""
    return "".join(f"{name}{params[name]}" for name in list(first)[:1])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One launcher, one broker and one Spark session for all rows."""
    with Bench(tmp_path_factory.mktemp("conformance")) as bench:
        yield bench


def test_the_short_selection_is_in_the_table() -> None:
    assert SHORT - {_key(row) for row in REAL} == set()


@pytest.mark.parametrize(("row", "params"), _params(CHECKED, SHORT))
def test_the_outputs_equal_the_reference_result(bench: Bench, row: Row, params: Mapping[str, Any]) -> None:
    played = bench.play(row, params=params)
    assert played.acknowledged == played.published
    assert abs(sum(played.acknowledged.values()) - EVENTS) < len(played.acknowledged)
    assert_exact(played)
    account = played.account
    assert (account.lost, account.duplicate, account.wrong, account.late) == (0, 0, 0, 0)
    assert account.checked
    assert played.leftovers == ()


@pytest.mark.parametrize(("row", "params"), _params([row for row in REAL if row.workload == ANY_WORKLOAD], set()))
def test_the_outputs_of_a_users_job_equal_those_of_the_users_reference(
    bench: Bench, row: Row, params: Mapping[str, Any]
) -> None:
    account = bench.play(row, params=params).account
    assert account.checked
    assert account.observed == account.expected > 0
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0)


@pytest.mark.parametrize(("row", "params"), _params(CHECKED, SHORT))
def test_a_single_event_of_each_stream_and_an_empty_partition(
    bench: Bench, row: Row, params: Mapping[str, Any]
) -> None:
    workload = workloads()[row.workload]
    streams = len(workload.streams(workload.params()))
    played = bench.play(row, events=streams, partitions=2, params={**params, "window": "10s", "slide": "10s"})
    assert [*played.acknowledged.values()] == [1] * streams
    assert_exact(played, empty=True)


@pytest.mark.parametrize(("row", "params"), _params(CHECKED, SHORT))
def test_a_key_that_never_comes_has_no_output(bench: Bench, row: Row, params: Mapping[str, Any]) -> None:
    keys = 5_000
    many = {"gem_packs": keys, "distribution": "uniform", "keys": keys, "locations": keys}
    played = bench.play(row, events=4_000, rate=4_000.0, partitions=1, params={**params, **many})
    assert_exact(played)
    reference, _ = expected(played)
    for name in {"gem_pack_id", "sensor_id", "sensor"} & set(reference):
        assert len(np.unique(reference[name])) < keys


@pytest.mark.parametrize(("row", "params"), _params(CHECKED, SHORT))
def test_a_job_can_be_stopped_while_events_come(bench: Bench, row: Row, params: Mapping[str, Any]) -> None:
    acknowledged, leftovers = bench.stop_in_the_middle(row, params=params)
    assert acknowledged > 0
    assert leftovers == ()
    if KNOWN[row.engine].traits(KNOWN[row.engine].options()).shared:
        return  # its system stays up for other trials
    names = [" ".join(_words(process)) for process in psutil.Process().children(recursive=True)]
    assert [name for name in names if "plain_python" in name or "engines.reference" in name] == []


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.mark.parametrize(("row", "params"), _params(CHECKED, set()))
def test_a_system_that_is_killed_continues_after_a_restart(bench: Bench, row: Row, params: Mapping[str, Any]) -> None:
    played = bench.restart_in_the_middle(row, params=params)
    assert_exact(played, repeated=not transports()[row.transport].exact_offsets)
    assert (played.account.lost, played.account.wrong) == (0, 0)
