"""The collector as a process: stamps, keeps and counts exactly what was committed."""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from secrets import token_urlsafe

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlRefused
from streamgauge.processes.launch import Launcher
from streamgauge.run.driver.specs import CollectorControl, CollectorSpec, collector_process
from streamgauge.stats import buckets
from streamgauge.store.journal import read_parts, read_rows
from streamgauge.transports.queue.outputs import QueueOutputWriter

MILLI = 1_000_000
STAMP = pa.timestamp("us", "UTC")
TIMEOUT = 60.0
"""Seconds that the collector may take to finish."""
SCHEMA = pa.schema([("key", pa.int64()), ("window_end", STAMP), ("max_due", STAMP), ("max_ingested", STAMP)])


def outputs(keys: list[int], due_us: int, late_us: int = 0) -> pa.RecordBatch:
    """Rows of one window, due at one moment and ingested a little later."""
    stamps = [np.full(len(keys), value, np.int64) for value in (due_us, due_us, due_us + late_us)]
    return pa.record_batch([pa.array(keys), *(pa.array(s).view(STAMP) for s in stamps)], schema=SCHEMA)


class Collecting:
    """A collector process with its channels."""

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.token, self.folder, self.clock = token_urlsafe(24), folder, Clock()
        self.location = f"grpc+unix://{launcher.runtime}/collector.sock"
        spec = CollectorSpec(folder=folder, transport="queue", firing="window_end")
        child = collector_process(spec, {"location": self.location, "token": self.token}, launcher.runtime, ())
        self.process = launcher.start(child.process, folder)
        self.control = CollectorControl(child.connect())
        self.writer = QueueOutputWriter(self.location, self.token)
        self.wall_ns = self.clock.wall_ns()
        self.control.start(self.clock.monotonic_ns(), self.wall_ns)

    def put(self, batch: int, attempt: int, *rows: pa.RecordBatch, partition: int = 0, commit: bool = False) -> None:
        self.writer.put("sums", batch, SCHEMA, rows, partition=partition, attempt=attempt, commit=commit)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collecting]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        yield Collecting(launcher, tmp_path)


def test_exactly_the_committed_attempts_are_kept_with_their_arrival(collector: Collecting) -> None:
    due = collector.wall_ns // 1000 - 1_000_000
    collector.put(0, 0, outputs([1, 2], due))
    collector.put(0, 1, outputs([1, 2], due), outputs([3], due + 500_000, 100_000))
    collector.put(0, 0, outputs([4], due), partition=1)
    assert collector.writer.commit("sums", 0, [(0, 1), (1, 0)]) == 4
    assert collector.writer.commit("sums", 0, [(0, 1), (1, 0)]) == 0
    after = collector.clock.wall_ns() // 1000
    counts = collector.control.finish(TIMEOUT)
    assert (counts["arrived"], counts["committed"], counts["discarded"], counts["repeated_commits"]) == (6, 4, 2, 1)
    kept = read_parts(collector.folder / "outputs" / "sums")
    assert kept is not None
    assert kept["key"].to_pylist() == [1, 2, 3, 4]
    emitted = kept["emitted_us"].to_numpy()
    assert (emitted >= collector.wall_ns // 1000).all()
    assert (emitted <= after).all()
    seconds = read_rows(collector.folder / "collector-seconds").to_pydict()
    rows_of, results_of = Counter[int](), Counter[int]()
    for second, arrived, results in zip(seconds["second"], seconds["outputs"], seconds["firings"], strict=True):
        rows_of[second] += arrived
        results_of[second] += results
    assert +rows_of == {0: 4}, "a row counts in the second in which it arrived"
    assert +results_of == {-1: 2}, "a window result counts in the second in which it was due"
    rows = read_rows(collector.folder / "collector-latencies").to_pylist()
    for kind, stamp in ((0, "max_due"), (1, "max_ingested")):
        got = sorted(b for r in rows if r["kind"] == kind for b in [r["bucket"]] * r["count"])
        latency = emitted - kept[stamp].cast(pa.int64()).to_numpy()
        assert got == sorted(buckets.index(latency).tolist())


def test_one_put_can_commit_itself_and_negative_latencies_are_counted_apart(collector: Collecting) -> None:
    collector.put(0, 0, outputs([1, 2], collector.wall_ns // 1000 + 3_600_000_000), commit=True)
    assert collector.control.finish(TIMEOUT)["committed"] == 2
    assert sum(read_rows(collector.folder / "collector-seconds")["negative"].to_pylist()) == 2
    assert read_rows(collector.folder / "collector-latencies").num_rows == 0


PUT_AND_DIE = """
import os, sys, json
import pyarrow as pa
from pyarrow import flight
from streamgauge.transports.queue.server import call_options
client = flight.FlightClient(sys.argv[1])
key = json.dumps({"query": "sums", "batch": 0, "partition": 0, "attempt": 0}).encode()
rows = pa.record_batch({"key": [1, 2, 3]})
writer, _ = client.do_put(flight.FlightDescriptor.for_command(key), rows.schema, call_options(sys.argv[2]))
writer.write_batch(rows)
os.kill(os.getpid(), 9)
"""


def test_a_sender_killed_in_the_middle_leaves_nothing_that_could_be_committed(collector: Collecting) -> None:
    subprocess.run((sys.executable, "-c", PUT_AND_DIE, collector.location, collector.token), check=False)
    ends = time.monotonic() + 5
    while collector.writer.status()["discarded"] != 3:
        assert time.monotonic() < ends, "the broken attempt was never discarded"
        time.sleep(0.01)
    with pytest.raises(pa.ArrowException, match="cannot commit batch 0"):
        collector.writer.commit("sums", 0, [(0, 0)])
    collector.put(0, 1, outputs([1, 2, 3], 0))
    assert collector.writer.commit("sums", 0, [(0, 1)]) == 3


def test_sigterm_leaves_whole_files(collector: Collecting) -> None:
    collector.put(0, 0, outputs([1], 0), commit=True)
    collector.process.stop()
    kept = read_parts(collector.folder / "outputs" / "sums")
    assert kept is not None
    assert kept.num_rows == 1
    assert (collector.folder / "collector-seconds.parquet").exists()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([None, 1], pa.int64()).cast(STAMP), "the output column max_due has nulls (1 row has no value)"),
        (pa.array(["noon", "night"]), "the output column max_due is string: it must be a timestamp"),
    ],
)
def test_moments_that_cannot_be_used_are_reported_while_the_load_continues_and_every_row_is_kept(
    collector: Collecting, column: pa.Array, said: str
) -> None:
    rows = pa.record_batch({"key": [1, 2], "max_due": column})
    collector.writer.put("own", 0, rows.schema, [rows], commit=True)
    ends = time.monotonic() + 30
    while not (reported := collector.control.status()["unstamped"]):
        assert time.monotonic() < ends, "the collector never reported them"
        time.sleep(0.01)
    assert said in reported
    begun = time.monotonic()
    assert said in collector.control.finish(TIMEOUT)["unstamped"]
    assert time.monotonic() - begun < 30, "nothing waits for a thread that ended"
    kept = read_parts(collector.folder / "outputs" / "own")
    assert kept is not None
    assert kept["key"].to_pylist() == [1, 2]


def test_outputs_that_cannot_be_written_are_reported_without_waiting(collector: Collecting) -> None:
    (collector.folder / "outputs").write_text("a file where a folder should be")
    collector.put(0, 0, outputs([1], 0), commit=True)
    begun = time.monotonic()
    with pytest.raises(ControlRefused, match="the collector cannot count or write the outputs"):
        collector.control.finish(TIMEOUT)
    assert time.monotonic() - begun < 30, "a minute is the patience for outputs that are still being written"
