"""Assemble: the journals of a trial's processes → Seconds. Reads a growing trial as well as a whole one."""

from pathlib import Path

import numpy as np

from streamgauge.model.facts import DRIVER, SUT, RoleUsage, RowLatencies, UpdateLatencies
from streamgauge.model.layout import Placement
from streamgauge.model.seconds import LARGEST_OF_DRIVERS, SUMMED_BY_DRIVERS, Kind, Latencies, Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.collector.counts import FIRST_ROW, KIND_NUMBER, LAST_ROW
from streamgauge.run.driver.journals import DELAY_NUMBER
from streamgauge.stats import buckets
from streamgauge.store.journal import Ints, read_columns

Rows = dict[str, Ints]

MISSING = "missing-latencies"
"""Journal of the latencies that outputs have at least which never came."""


def assemble(folder: Path, drivers: int, placement: Placement, stop: int | None = None) -> Seconds:
    """The seconds of a trial that every load driver has closed, at most the first ``stop``."""
    parts = [read_columns(folder / f"driver-{n}-seconds") for n in range(drivers)]
    length = min(len(p.get("second", ())) for p in parts)
    length = length if stop is None else min(length, stop)
    columns = _driver_columns([{name: column[:length] for name, column in p.items()} for p in parts], length)
    collected = read_columns(folder / "collector-seconds")
    for name in ("outputs", "firings", "negative"):
        columns[name] = _by_second(collected, name, length)
    columns["collector_hiccup"] = _largest(read_columns(folder / "collector-health"), "hiccup", length)
    columns |= _monitor_columns(folder, length, placement)
    kinds = _latencies([read_columns(folder / name) for name in ("collector-latencies", MISSING)], KIND_NUMBER, length)
    kinds |= _latencies([read_columns(folder / f"driver-{n}-delays") for n in range(drivers)], DELAY_NUMBER, length)
    return Seconds(0, columns, kinds)


def newest(before: Seconds, now: Seconds) -> Seconds:
    """What is new since a trial was assembled before: the seconds that were added, and the latencies that came.

    Latencies of earlier seconds come later too. Journals only grow, so those that were there before come first.
    """
    stretch, kinds = now.between(before.stop, now.stop), dict[Kind, Latencies]()
    for kind, latency in now.latencies.items():
        early = np.flatnonzero(latency.second < before.stop)[len(before.latency(kind).count) :]
        chosen = np.sort(np.concatenate([early, np.flatnonzero(latency.second >= before.stop)]))
        kinds[kind] = Latencies(latency.second[chosen], latency.bucket[chosen], latency.count[chosen])
    return Seconds(stretch.start, stretch.columns, kinds)


def _driver_columns(parts: list[Rows], length: int) -> dict[str, Ints]:
    """The seconds of all load drivers as one: counts add up, extremes keep the larger."""
    if not length:
        return {
            name: np.zeros(0, np.int64) for name in (*SUMMED_BY_DRIVERS, *LARGEST_OF_DRIVERS, "ack_time", "ack_lag")
        }
    columns = {name: np.sum([p[name] for p in parts], axis=0) for name in SUMMED_BY_DRIVERS}
    columns |= {name: np.max([p[name] for p in parts], axis=0) for name in LARGEST_OF_DRIVERS}
    columns["ack_time"] = np.max([p["ack_time"] for p in parts], axis=0)
    # load drivers are acknowledged one after the other: one without an acknowledgement keeps the lag of its last
    lags = np.sum([_last_known(p["ack_lag"]) for p in parts], axis=0)
    columns["ack_lag"] = np.where(columns["ack_time"] >= 0, lags, -1)
    return columns


def _last_known(lag: Ints) -> Ints:
    known = np.maximum.accumulate(np.where(lag >= 0, np.arange(len(lag)), -1))
    return np.where(known >= 0, lag[np.maximum(known, 0)], 0)


def _by_second(rows: Rows, name: str, length: int) -> Ints:
    if not rows:
        return np.zeros(length, np.int64)
    inside = (rows["second"] >= 0) & (rows["second"] < length)
    return np.bincount(rows["second"][inside], rows[name][inside], length).astype(np.int64)


def _largest(rows: Rows, name: str, length: int) -> Ints:
    """The largest value of each second, by the time of the row."""
    column = np.zeros(length, np.int64)
    if rows:
        second = rows["time"] // SECOND
        inside = (second >= 0) & (second < length)
        np.maximum.at(column, second[inside], rows[name][inside])
    return column


def _monitor_columns(folder: Path, length: int, placement: Placement) -> dict[str, Ints]:
    """What the monitor recorded, row by row in the second in which its snapshot ended."""
    roles, cores = read_columns(folder / "monitor-roles"), read_columns(folder / "monitor-cores")
    sut_cpu, driver_cpu, waited = (
        _of_role(roles, role, source, length)
        for role, source in ((SUT, "cpu_us"), (DRIVER, "cpu_us"), (DRIVER, "run_delay_ns"))
    )
    foreign, _, span, _ = _of_cores(cores, placement.sut, length)
    _, stolen, passed, _ = _of_cores(cores, _most_stolen(cores, placement.sut), length)
    strange, robbed, _, busy = _of_cores(cores, placement.driver, length)
    return {
        "sut_cpu": sut_cpu,
        "driver_cpu": driver_cpu,
        # the load driver's threads also wait for each other: only the share of other processes counts
        "run_delay": waited * np.clip(np.maximum(strange, robbed), 0, busy) // np.maximum(busy, 1),
        "foreign": foreign * 1_000_000 // np.maximum(span, 1),
        "steal": stolen * 1_000_000 // np.maximum(passed, 1),
    }


def _most_stolen(rows: Rows, cores: tuple[int, ...]) -> tuple[int, ...]:
    """The one of these cores with the most steal time in the trial: a micro-batch waits for its slowest core.

    CPU of other processes is the mean over the cores instead: threads move, so only its sum over cores is exact.
    """
    if not rows or not cores:
        return cores
    return (max(cores, key=lambda core: int(rows["steal_us"][rows["core"] == core].sum())),)


def _of_role(rows: Rows, role: str, name: str, length: int) -> Ints:
    column = np.zeros(length, np.int64)
    if rows:
        chosen = np.flatnonzero(rows["role"] == role)
        _put(column, rows["time"][chosen], rows[name][chosen])
    return column


def _of_cores(rows: Rows, cores: tuple[int, ...], length: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Microseconds on these cores: used by other processes, stolen, elapsed, and not idle."""
    columns = tuple(np.zeros(length, np.int64) for _ in range(4))
    if rows and cores:
        chosen = np.flatnonzero(np.isin(rows["core"], cores))
        for column, name in zip(columns, ("foreign_us", "steal_us", "span_us", "busy_us"), strict=True):
            _put(column, rows["time"][chosen], rows[name][chosen])
    return columns[0], columns[1], columns[2], columns[3]


def _put(column: Ints, time: Ints, values: Ints) -> None:
    second = np.rint(time / SECOND).astype(np.int64) - 1
    inside = (second >= 0) & (second < len(column))
    np.add.at(column, second[inside], values[inside].astype(np.int64))


def unwatched(folder: Path, stop: int) -> float:
    """Seconds among the first ``stop`` of a trial that no row of the monitor covers.

    A row covers the time since the snapshot before it, so a late one misses nothing.
    """
    rows = read_columns(folder / "monitor-cores")
    if not rows or not len(rows["core"]):
        return float(stop)
    selected = rows["core"] == rows["core"][0]
    ends = rows["time"][selected]
    begins = np.maximum(ends - rows["span_us"][selected] * 1_000, np.concatenate([[0], ends[:-1]]))
    limit = stop * SECOND
    covered = np.clip(ends, 0, limit) - np.clip(begins, 0, limit)
    return float(limit - np.maximum(covered, 0).sum()) / SECOND


def role_usage(folder: Path, role: str, start: int, stop: int) -> RoleUsage | None:
    """What a role used on average in these seconds; None if the monitor has no row of it."""
    rows, length = read_columns(folder / "monitor-roles"), stop - start
    if length <= 0 or not rows or not np.any(rows["role"] == role):
        return None
    cpu, read, written = (
        float(_of_role(rows, role, column, stop)[start:].sum()) / length
        for column in ("cpu_us", "read_bytes", "write_bytes")
    )
    return RoleUsage(cpu / 1e6, read, written)


def update_latencies(folder: Path, start: int, stop: int) -> UpdateLatencies:
    """Event-time latencies of the first and of the last row of every window in these seconds.

    Empty if a window is emitted once.
    """
    rows = read_columns(folder / "collector-latencies")
    return UpdateLatencies(*(_row_latencies(rows, kind, start, stop) for kind in (FIRST_ROW, LAST_ROW)))


def _row_latencies(rows: Rows, kind: int, start: int, stop: int) -> RowLatencies | None:
    if not rows:
        return None
    selected = (rows["kind"] == kind) & (rows["second"] >= start) & (rows["second"] < stop)
    if not selected.any():
        return None
    bucket, count = rows["bucket"][selected], rows["count"][selected]
    return RowLatencies(
        int(count.sum()), *(buckets.quantile(bucket, count, share / 100) / 1e3 for share in (50, 90, 99))
    )


def _latencies(journals: list[Rows], numbers: dict[Kind, int], length: int) -> dict[Kind, Latencies]:
    """Counts of several journals as one; ``numbers`` are those of the kinds in them."""
    parts = [rows for rows in journals if rows]
    if not parts:
        return {}
    rows = {name: np.concatenate([part[name] for part in parts]) for name in ("kind", "second", "bucket", "count")}
    result: dict[Kind, Latencies] = {}
    for kind, number in numbers.items():
        selected = (rows["kind"] == number) & (rows["second"] >= 0) & (rows["second"] < length)
        if selected.any():
            result[kind] = Latencies(rows["second"][selected], rows["bucket"][selected], rows["count"][selected])
    return result
