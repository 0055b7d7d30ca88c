"""Journals of trials that never ran, written by the very classes that write real ones, with all that is odd in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.analyze.journals import Journals
from streamgauge.model.facts import COLLECTOR, CONTROLLER, DRIVER, SUT
from streamgauge.model.layout import Placement
from streamgauge.model.units import SECOND
from streamgauge.run.collector.collector import OutputArchive
from streamgauge.run.collector.counts import KIND_NUMBER, OutputCounts, count_outputs, latency_rows
from streamgauge.run.driver.journals import DriverJournals, SendLog
from streamgauge.run.trial.assemble import MISSING
from streamgauge.store.journal import COLLECTOR_HEALTH, COLLECTOR_SECONDS, CORES, LATENCIES, ROLES, Journal
from streamgauge.transports.ledger import Acknowledgement, Confirmation
from streamgauge.transports.queue.attempts import StampedRows
from streamgauge.transports.queue.outputs import committed_rows

Random = np.random.Generator
WALL_US = 1_800_000_000_000_123
FIRING = "window_end"
PLACEMENT = Placement((0, 1), (2, 3))
US = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Made:
    """A folder of journals, and how they are to be read."""

    folder: Path
    drivers: int
    length: int
    stop: int

    @property
    def journals(self) -> Journals:
        cores = PLACEMENT.driver, PLACEMENT.sut
        return Journals(self.folder, self.drivers, self.stop, WALL_US, FIRING, *cores)


def make(
    folder: Path, seed: int, *, drivers: int = 2, length: int = 7, watched: bool = True, broker: bool = True
) -> Made:
    """A trial of so many seconds of which the last two are the tail."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for driver in range(drivers):
        drive(folder, driver, length + driver, random, broker=broker)
    collect(folder, length, random)
    if watched:
        watch(folder, length, random)
    return Made(folder, drivers, length, length - 2)


def drive(folder: Path, driver: int, length: int, random: Random, closed: bool = True, *, broker: bool = False) -> None:
    """What one driver writes; ``closed=False`` leaves it as a process that was killed does."""
    moments = _ticks(length, random)
    sends = SendLog(len(moments) + 1)
    journals = DriverJournals(folder, driver, sends, confirmed=broker)
    appends = _appends(moments, random) if broker else []
    acks, served, drops = _acks(length, random), 0, 0
    for second in range(length):
        end = (second + 1) * SECOND
        while sends.done < len(moments) and moments[sends.done][1] < end + SECOND // 50:  # some come a bit later
            intended, actual, count = moments[sends.done]
            sends.add(intended, partial(int, actual), count)
        now = [ack for ack in acks if ack.time_ns < end + SECOND // 50]
        acks = acks[len(now) :]
        served, drops = served + int(random.integers(0, 900)), drops + int(random.integers(0, 2))
        sample = {name: int(random.integers(0, 1000)) for name in ("offered", "queue", "skew", "hiccup")}
        confirmed = [append for append in appends if append.confirmed_ns < end + SECOND // 50]
        appends = appends[len(confirmed) :]
        journals.write(now, confirmed)
        drift = int(random.integers(-500, 500))
        journals.close_second(second, {**sample, "served": served, "drops": drops, "drift": drift}, now, confirmed)
    if closed:
        journals.close()


def _ticks(length: int, random: Random) -> list[tuple[int, int, int]]:
    """Intended, actual and count: in time, at the very edge of a second, late by seconds, and none for a while."""
    step = SECOND // 100
    moments, actual = [], 0
    for tick in range(1, length * 100 + 1):
        intended = tick * step
        if 2 * SECOND < intended < 3 * SECOND + 7 * step:
            continue  # a second without a tick
        late = int(random.exponential(step / 3)) if tick % 100 else 0
        if 4 * SECOND < intended < 4 * SECOND + 3 * step:
            late = SECOND + SECOND // 3
        actual = max(actual, intended + late)
        moments.append((intended, actual, int(random.integers(0, 50))))
    return moments


def _appends(moments: list[tuple[int, int, int]], random: Random) -> list[Confirmation]:
    """What a broker confirmed of these ticks: each in two parts, some of them late, in the order of confirmation."""
    found = []
    confirmed = 0
    for intended, actual, count in moments:
        for part in (count // 3, count - count // 3):
            appended = actual + int(random.exponential(SECOND // 200))
            confirmed = max(confirmed, appended + int(random.integers(0, SECOND // 100)))
            found.append(Confirmation(intended, appended, confirmed, part))
    return found


def _acks(length: int, random: Random) -> list[Acknowledgement]:
    """One before the load began, several at one moment, none for a while, one at the edge of a second."""
    times = [-SECOND // 3, *sorted(int(t) for t in random.integers(0, length * SECOND, 3 * length))]
    times = [t for t in times if not (random.random() < 0.5 and 3 * SECOND <= t < 5 * SECOND)]
    times = sorted([*times, times[2], 1 * SECOND, 6 * SECOND - 1])
    published = acknowledged = 0
    acks = []
    for time in times:
        published += int(random.integers(0, 1000))
        acknowledged = min(published, acknowledged + int(random.integers(0, 1000)))
        acks.append(Acknowledgement(time, published, published, acknowledged, published - acknowledged))
    return acks


def collect(folder: Path, length: int, random: Random) -> None:
    """What the collector makes of commits of two queries: one with window results and stamps, one with neither."""
    archive, counts = OutputArchive(folder), list[OutputCounts]()
    for batch in range(3 * length):
        commits = [("sums of packs", _arrivals(batch, length, random, US))]
        if batch % 4 == 0:
            plain = pa.record_batch({"name": [f"row {n}" for n in range(int(random.integers(1, 9)))]})
            commits.append(("plain", [StampedRows(plain, _emitted(batch, random))]))
        if batch % 5 == 0:
            commits.append(("fine stamps", _arrivals(batch, length, random, pa.timestamp("ns"))))
        for query, arrivals in commits:
            outputs = committed_rows(query, batch, arrivals)
            counts.append(count_outputs(outputs.rows, WALL_US, FIRING))
            archive.add(outputs)
        if batch % 6 == 0:
            archive.flush()
    archive.flush()
    count(folder, counts)
    with Journal(folder / MISSING, LATENCIES) as missing:
        for number in (KIND_NUMBER["missing"], KIND_NUMBER["missing-windows"]):
            rows = {"second": random.integers(-1, length + 1, 99), "kind": np.full(99, number)}
            missing.append({**rows, "bucket": random.integers(0, 9_000, 99), "count": random.integers(1, 5, 99)})


def count(folder: Path, counts: Sequence[OutputCounts]) -> None:
    """The collector's two journals of counts, and what it wrote of itself."""
    with Journal(folder / "collector-health", COLLECTOR_HEALTH) as health:
        for number, _ in enumerate(counts):
            health.append({"time": [(number - 1) * SECOND // 3], "hiccup": [number * 7919 % 1000], "behind": [0]})
    with (
        Journal(folder / "collector-seconds", COLLECTOR_SECONDS) as seconds,
        Journal(folder / "collector-latencies", LATENCIES) as cells,
    ):
        for each in counts:
            seconds.append({name: getattr(each, name) for name in COLLECTOR_SECONDS.names})
            cells.append(latency_rows(each.latencies) if each.latencies else {name: [] for name in LATENCIES.names})


def _emitted(batch: int, random: Random) -> int:
    """Somewhere around the batch's third of a second; the first ones before the load began."""
    return WALL_US + (batch - 2) * 333_333 + int(random.integers(-400_000, 400_000))


def _arrivals(batch: int, length: int, random: Random, stamp: pa.DataType) -> list[StampedRows]:
    """One to four arrivals of a commit; the same window in several, some of them without one."""
    arrivals = []
    for _ in range(int(random.integers(1, 5))):
        rows = int(random.integers(1, 60))
        emitted = _emitted(batch, random)
        window = WALL_US + random.integers(-2, 3, rows) * 1_000_000
        arrivals.append(
            StampedRows(
                pa.record_batch(
                    {
                        FIRING: _stamps(window, stamp, random.random(rows) < 0.1),
                        "max_due": _stamps(emitted - _latencies(rows, random), stamp),
                        "max_ingested": _stamps(emitted - _latencies(rows, random) // 3, stamp),
                        "mean_published": _stamps(emitted - _latencies(rows, random) // 2, stamp),
                        "total": pa.array(random.integers(0, 1 << 40, rows)),
                    }
                ),
                emitted,
            )
        )
    return arrivals


def _stamps(micros: npt.NDArray[np.int64], kind: pa.DataType, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    scale = 1000 if kind.unit == "ns" else 1
    return pa.array(micros * scale, kind, mask=missing)


def _latencies(rows: int, random: Random) -> npt.NDArray[np.int64]:
    """Every size from none to years, powers of two and their neighbours, and negative ones."""
    sizes = (1 << random.integers(0, 46, rows)) + random.integers(-1, 2, rows)
    return np.where(random.random(rows) < 0.15, -sizes % 10_000 - 5_000, sizes).astype(np.int64)


def watch(folder: Path, length: int, random: Random) -> None:
    """What the monitor saw: looks that are late or early by up to half a second, and numbers below zero."""
    with Journal(folder / "monitor-roles", ROLES) as roles, Journal(folder / "monitor-cores", CORES) as cores:
        for second in range(length):
            time = (second + 1) * SECOND + int(random.choice([0, 1, SECOND // 2, -SECOND // 2, SECOND // 2 + 1]))
            for role in (DRIVER, COLLECTOR, SUT, CONTROLLER, SUT):
                numbers: dict[str, npt.ArrayLike] = {
                    name: [int(random.integers(0, 10**9))] for name in ROLES.names if name != "role"
                }
                roles.append({**numbers, "time": [time], "role": [role]})
            for core in range(5):
                row = {name: int(random.integers(-10_000, 10**6)) for name in CORES.names}
                row |= {"time": time, "core": core, "span_us": 0 if second == 3 else 1_000_000 + second}
                cores.append({name: [value] for name, value in row.items()})
