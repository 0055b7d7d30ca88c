"""Logs of Spark's micro-batches and of its JVM, written while the query runs.

An explanation, never the measurement: the logs ``spark-batches`` and ``spark-numbers`` in the trial's folder.
"""

import json
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streamgauge.engines.spark.explain import BATCH_LOG, BATCH_PARTS, BATCHES, NUMBER_LOG, NUMBERS
from streamgauge.store.journal import GrowingRows, int64_schema

JVM_GONE = (Py4JError, OSError)
"""What a call into a JVM that has ended raises."""
_EVERY = 2.0
_EPOCH = datetime.fromtimestamp(0, UTC)
_MOMENTS = {"newest_us": "max", "watermark_us": "watermark"}
"""Columns of ``spark-batches`` ← moments of event-time by Spark's names."""
BATCH_SCHEMA, NUMBER_SCHEMA = int64_schema(*BATCHES), int64_schema(*NUMBERS)


def batch_row(progress: dict[str, Any], now_ns: int) -> dict[str, int]:
    """A micro-batch as a row, from Spark's progress in JSON. Durations in milliseconds, 0 where it took none."""
    spent, states = progress.get("durationMs", {}), progress.get("stateOperators", [])
    row = {
        "time": now_ns,
        "batch": int(progress["batchId"]),
        "input_rows": int(progress.get("numInputRows", 0)),
        "state_rows": sum(max(0, int(s.get("numRowsTotal", 0))) for s in states),
        "state_updated": sum(max(0, int(s.get("numRowsUpdated", 0))) for s in states),
        "state_bytes": sum(max(0, int(s.get("memoryUsedBytes", 0))) for s in states),
        "state_dropped": sum(max(0, int(s.get("numRowsDroppedByWatermark", 0))) for s in states),
        "state_commit_ms": sum(max(0, int(s.get("commitTimeMs", 0))) for s in states),
    }
    row |= {name: int(spent.get(part, 0)) for name, part in BATCH_PARTS.items()}
    moments = progress.get("eventTime", {})
    return row | {name: _micros(moments.get(part)) for name, part in _MOMENTS.items()}


def _micros(moment: str | None) -> int:
    """A moment of Spark's as microseconds since 1970; −1 if there is none."""
    return -1 if moment is None else (datetime.fromisoformat(moment) - _EPOCH) // timedelta(microseconds=1)


class BatchRecorder:
    """Writes the progress of the query of one trial.

    It polls for new progress. A listener in Python would receive every micro-batch, but Spark passes
    it the progress field by field over a socket, which takes a tenth of a core at one micro-batch a second.
    """

    def __init__(self) -> None:
        self._log: GrowingRows | None = None
        self._query: Any = None
        self._seen = -1

    def open(self, folder: Path) -> None:
        """A new trial begins."""
        self._log, self._query, self._seen = GrowingRows(folder / BATCH_LOG, BATCH_SCHEMA), None, -1

    def follow(self, query: StreamingQuery) -> None:
        """This is the query of the trial."""
        self._query = query._jsq

    def look(self) -> None:
        """Write the micro-batches since the last call."""
        if self._log is None or self._query is None:
            return
        for progress in self._query.recentProgress():
            if int(progress.batchId()) > self._seen:
                fields = json.loads(str(progress.json()))
                self._seen = int(fields["batchId"])
                # the moment of its report: its start by the wall clock, and how long it took
                row = batch_row(fields, _ended(fields))
                self._log.append({name: [value] for name, value in row.items()})

    def close(self) -> None:
        """The trial is over."""
        if self._log is not None:
            self.look()
            self._log.close()
        self._log = self._query = None


def _ended(progress: dict[str, Any]) -> int:
    """When a micro-batch was done, on the monotonic clock."""
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    took = progress.get("durationMs", {}).get("triggerExecution", 0) / 1e3
    return time.monotonic_ns() - int((time.time() - began - took) * 1e9)


class JvmSampler:
    """Every two seconds: CPU of the JVM and of the Python workers, garbage collection, compiler, heap."""

    def __init__(self, spark: SparkSession, recorder: BatchRecorder) -> None:
        self._recorder = recorder
        jvm: Any = spark._jvm
        self._beans = jvm.java.lang.management.ManagementFactory
        self._jvm = psutil.Process(int(jvm.java.lang.ProcessHandle.current().pid()))
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, folder: Path) -> None:
        """A new trial begins."""
        log = GrowingRows(folder / NUMBER_LOG, NUMBER_SCHEMA)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(log,), name="numbers", daemon=True)
        self._thread.start()

    def _run(self, log: GrowingRows) -> None:
        more = True
        with suppress(*JVM_GONE):
            while more:
                row = self.row()
                log.append({name: [value] for name, value in row.items()})
                self._recorder.look()
                more = not self._stop.wait(_EVERY)
        log.close()

    def row(self) -> dict[str, int]:
        """The counters now, all of them since the session began."""
        beans = self._beans
        collectors = list(beans.getGarbageCollectorMXBeans())
        own = self._jvm.cpu_times()
        workers = [_cpu(child) for child in self._jvm.children(recursive=True)]
        return {
            "time": time.monotonic_ns(),
            "jvm_cpu_us": round((own.user + own.system) * 1e6),
            "python_cpu_us": round((sum(workers) + own.children_user + own.children_system) * 1e6),
            "gc_ms": sum(int(c.getCollectionTime()) for c in collectors),
            "compile_ms": int(beans.getCompilationMXBean().getTotalCompilationTime()),
            "heap_bytes": int(beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()),
        }

    def stop(self) -> None:
        """A last row, then close the log."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


def _cpu(process: psutil.Process) -> float:
    try:
        used = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(used.user + used.system + used.children_user + used.children_system)
