"""Why Spark stopped where it did: its own numbers over a stretch of a trial, as sentences with figures. Pure but
for reading the two journals that the session wrote."""

from pathlib import Path

import numpy as np

from streamgauge.engines.contract import Watermark
from streamgauge.model.facts import Explanation, MicroBatches
from streamgauge.model.units import duration_text, format_count, format_size, share_text
from streamgauge.store.journal import Ints, read_columns

BATCH_LOG, NUMBER_LOG = "spark-batches.arrows", "spark-numbers.arrows"
BATCH_PARTS = {
    "trigger_ms": "triggerExecution",
    "add_batch_ms": "addBatch",
    "planning_ms": "queryPlanning",
    "latest_offset_ms": "latestOffset",
    "get_batch_ms": "getBatch",
    "wal_ms": "walCommit",
    "commit_ms": "commitOffsets",
}
"""Columns of ``spark-batches`` ← parts of a micro-batch by Spark's names."""
BATCHES = (
    *("time", "batch", "input_rows", "state_rows", "state_updated", "state_bytes", "state_dropped", "state_commit_ms"),
    *BATCH_PARTS,
    *("newest_us", "watermark_us"),
)
NUMBERS = ("time", "jvm_cpu_us", "python_cpu_us", "gc_ms", "compile_ms", "heap_bytes")

Columns = dict[str, Ints]
_MILLI = 1_000_000


def explain(folder: Path, since_ns: int, until_ns: int, cores: int) -> tuple[Explanation, ...]:
    """The parts of Spark's time between two moments of the monotonic clock, the largest first."""
    numbers, batches = (_between(folder / name, since_ns, until_ns) for name in (NUMBER_LOG, BATCH_LOG))
    parts = [*_cpu(numbers, cores), *_batches(batches)]
    return tuple(sorted(parts, key=lambda part: part.share or 0.0, reverse=True))


def micro_batches(folder: Path, since_ns: int, until_ns: int, trigger_ns: int) -> MicroBatches | None:
    """How long micro-batches took between two moments, beside the trigger; None if none ended there."""
    batches = _between(folder / BATCH_LOG, since_ns, until_ns)
    took = batches["trigger_ms"][batches["add_batch_ms"] > 0] if batches else np.zeros(0, np.int64)
    if not len(took):
        return None
    trigger = trigger_ns / _MILLI if trigger_ns else None
    return MicroBatches(len(took), round(float(took.mean()), 1), float(took.max()), trigger)


def watermark(path: Path) -> Watermark | None:
    """The watermark that the query reports in the log of its micro-batches; None if it has none.

    Spark puts out the windows up to the watermark of a micro-batch in this micro-batch, so they are all out when it is
    done. The watermark itself comes from the events of the one before.
    """
    batches = read_columns(path)
    if not batches:
        return None
    done = batches["add_batch_ms"] > 0  # Spark also reports moments at which it had nothing to do
    passed, newest = (batches[name][done] for name in ("watermark_us", "newest_us"))
    if not len(passed) or passed.max() < 0:
        return None
    seen = np.maximum.accumulate(newest)[:-1]
    behind = (seen - passed[1:])[(passed[1:] > 0) & (seen > 0)]
    return Watermark(int(passed.max()), int(behind.min()) if len(behind) else 0)


def _between(path: Path, since_ns: int, until_ns: int) -> Columns:
    columns = read_columns(path)
    if not columns:
        return {}
    inside = (columns["time"] >= since_ns) & (columns["time"] <= until_ns)
    return {name: column[inside] for name, column in columns.items()}


def _part(what: str, share: float, sentence: str) -> Explanation:
    return Explanation(what, round(float(share), 4), sentence)


def _cpu(numbers: Columns, cores: int) -> list[Explanation]:
    """How busy the cores were, and with what."""
    if not numbers or len(numbers["time"]) < 2:
        return []
    change = {name: int(column[-1] - column[0]) for name, column in numbers.items()}
    had = change["time"] / 1_000 * cores
    jvm, python = change["jvm_cpu_us"] / had, change["python_cpu_us"] / had
    gc, compiler = (change[name] * 1_000 / had for name in ("gc_ms", "compile_ms"))
    noun = "core" if cores == 1 else f"{cores} cores"
    parts = [
        _part(
            "cores",
            jvm + python,
            f"Spark used {share_text(round(jvm + python, 3))} of its {noun}: the JVM {share_text(round(jvm, 3))}, "
            f"the Python workers {share_text(round(python, 3))}",
        ),
        _part(
            "garbage collection", gc, f"garbage collection took {share_text(round(gc, 3))} of the available core time"
        ),
    ]
    if compiler > 0.01:
        parts.append(
            _part(
                "compiler",
                compiler,
                f"JIT compilation took {share_text(round(compiler, 3))} of the available core time",
            )
        )
    return parts


def _batches(batches: Columns) -> list[Explanation]:
    """Where the time of the micro-batches went, and how much state there was."""
    if not batches or not len(batches["time"]) or not batches["trigger_ms"].sum():
        return []
    count, total = len(batches["time"]), float(batches["trigger_ms"].sum())
    work, rows = float(batches["add_batch_ms"].sum()), int(batches["input_rows"].sum())
    planning = float(batches["planning_ms"].sum())
    overhead = total - work
    mean = duration_text(round(total / count) * _MILLI)
    parts = [
        _part(
            "batch overhead",
            overhead / total,
            f"{count} micro-batches of {mean} and {format_count(rows // count)} events on average; "
            f"{share_text(round(overhead / total, 3))} of the batch time was overhead: planning "
            f"{share_text(round(planning / total, 3))}, offsets and write-ahead log the rest",
        )
    ]
    state, held = int(batches["state_rows"].max()), int(batches["state_bytes"].max())
    committing = float(batches["state_commit_ms"].sum()) / total
    if state or held:
        parts.append(
            _part(
                "state",
                committing,
                f"state: {format_count(state)} rows, {format_size(held)}; writing it took "
                f"{share_text(round(committing, 3))} of the batch time",
            )
        )
    dropped = int(batches["state_dropped"].sum())
    if dropped:
        parts.append(
            _part("late rows", 1.0, f"{format_count(dropped)} rows arrived after the watermark and were dropped")
        )
    return parts
