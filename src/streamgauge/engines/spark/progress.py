"""What Spark says of its own micro-batches, and what the JVM says of itself, written down as it goes.

An explanation, never the measurement: the logs ``spark-batches`` and ``spark-numbers`` in the trial's folder.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streamgauge.engines.spark.explain import BATCH_LOG, BATCH_PARTS, BATCHES, NUMBER_LOG, NUMBERS
from streamgauge.engines.toolkit import Log, whole_numbers

_EVERY = 2.0
BATCH_SCHEMA, NUMBER_SCHEMA = whole_numbers(*BATCHES), whole_numbers(*NUMBERS)


def batch_row(progress: dict[str, Any], now_ns: int) -> dict[str, int]:
    """One micro-batch as a row, from the JSON that Spark tells. Durations in milliseconds, 0 where it took none."""
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
    return row | {name: int(spent.get(part, 0)) for name, part in BATCH_PARTS.items()}


class Recorder(StreamingQueryListener):
    """Writes down the progress of the query of one trial. Kept short: it runs in the process that Spark runs in."""

    def __init__(self) -> None:
        self._log: Log | None = None
        self._lock = threading.Lock()
        self.last: dict[str, Any] = {}

    def open(self, folder: Path) -> None:
        """A new trial begins."""
        with self._lock:
            self._log, self.last = Log(folder / BATCH_LOG, BATCH_SCHEMA), {}

    def close(self) -> None:
        """The trial is over; what comes later belongs to nobody."""
        with self._lock:
            if self._log is not None:
                self._log.close()
            self._log = None

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is done."""
        told = json.loads(event.progress.json)
        with self._lock:
            if self._log is not None:
                self.last = told
                row = batch_row(told, time.monotonic_ns())
                self._log.append({name: [value] for name, value in row.items()})

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing: the process that starts a query waits for it."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing: no micro-batch, no row."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing: the query itself is asked."""


class Sampler:
    """Every two seconds: CPU of the JVM and of the Python workers, garbage collection, compiler, heap."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._beans = jvm.java.lang.management.ManagementFactory
        self._jvm = psutil.Process(int(jvm.java.lang.ProcessHandle.current().pid()))
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, folder: Path) -> None:
        """A new trial begins."""
        log = Log(folder / NUMBER_LOG, NUMBER_SCHEMA)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(log,), name="numbers", daemon=True)
        self._thread.start()

    def _run(self, log: Log) -> None:
        more = True
        while more:
            row = self.row()
            log.append({name: [value] for name, value in row.items()})
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
