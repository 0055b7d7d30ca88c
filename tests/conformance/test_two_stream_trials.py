"""A workload with two streams end to end: load driver, transport, engine, collector and output check.

Workload and engine are those of another package: an entry point is all that makes them known to every process.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import two_stream_counter
from row_trials import EVENTS, KNOWN, Bench, assert_exact
from two_streams import two_streams

from streamgauge.engines.table import Row
from streamgauge.processes.placement import assign_cores
from streamgauge.run.monitor.monitor import available
from streamgauge.workloads import registry

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(
        not available() or not assign_cores(1).sut, reason="a trial on real processes needs /proc and two cores"
    ),
]

ENGINE = two_stream_counter.engine
ENTRY_POINTS = f"[{registry.GROUP}]\n{two_streams.name} = two_streams:two_streams\n"
FOLDERS = (Path(__file__).parent, Path(__file__).parents[1])
"""Where the modules of workload and engine are."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench whose processes find workload and engine, as if a package with them was installed."""
    information = tmp_path / "site" / "two_streams-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Name: two-streams\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(information.parent)
    paths = [str(each) for each in (information.parent, *FOLDERS)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    monkeypatch.setitem(KNOWN, ENGINE.name, ENGINE)
    registry._discovered.cache_clear()
    with Bench(tmp_path) as bench:
        yield bench
    registry._discovered.cache_clear()


@pytest.mark.parametrize(
    "row",
    [
        Row(ENGINE.name, two_streams.name, "default", "queue", ""),
        pytest.param(Row(ENGINE.name, two_streams.name, "default", "kafka", "binary"), marks=pytest.mark.soak),
    ],
    ids=lambda row: row.transport,
)
def test_the_outputs_of_two_streams_equal_the_reference_result(bench: Bench, row: Row) -> None:
    played = bench.play(row)
    assert {*played.acknowledged} == {"purchases", "ads"}
    assert sum(played.acknowledged.values()) == EVENTS
    assert played.acknowledged["ads"] == pytest.approx(0.25 * EVENTS, rel=0.01)
    assert_exact(played)
    account = played.account
    assert (account.lost, account.duplicate, account.wrong, account.late) == (0, 0, 0, 0)
    assert account.checked
    assert account.expected > 0


def test_the_process_of_the_engine_ends_with_its_trial(bench: Bench) -> None:
    acknowledged, leftovers = bench.stop_in_the_middle(Row(ENGINE.name, two_streams.name, "default", "queue", ""))
    assert (acknowledged > 0, leftovers) == (True, ())
    commands = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True) if child.is_running()]
    assert [command for command in commands if two_stream_counter.__name__ in command] == []
    assert two_stream_counter.__name__ in sys.modules
