"""A trial over time, as the columns of its charts: latency, throughput at the queue, queue length, CPU."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.model.seconds import Kind, Latencies, Seconds
from streamgauge.model.units import format_share
from streamgauge.report.view.run_report import JudgedTrial, RunReport, failing_trial, holding_trial, trials_of
from streamgauge.stats import buckets

Floats = npt.NDArray[np.float64]
Series = list[float | None]

MOST_TRIALS = 60
"""Trials whose charts are embedded: a page stays small enough to be sent."""
MOST_POINTS = 900
"""Points of a chart; seconds of a longer trial are put together. Latencies add up, so no percentile is averaged."""


@dataclass(frozen=True, slots=True)
class ChartedTrial:
    """A trial to draw, and why: it is a bound, a share of the result, or any other."""

    number: int
    role: str
    """``holds``, ``fails``, ``90%`` … or empty."""


def charted_trials(report: RunReport) -> list[ChartedTrial]:
    """The trials at the bounds first, then the others in their order, at most MOST_TRIALS."""
    chosen: dict[int, str] = {}
    for finding in report.findings:
        own = trials_of(finding, report.trials)
        proofs = [(holding_trial(finding, own), "holds"), (failing_trial(finding, own), "fails")]
        shares = [(report.trial(number), format_share(share)) for share, number in finding.also]
        for judged, role in (proofs[0], *shares, proofs[1]):
            if judged is not None:
                chosen.setdefault(judged.number, role)
    for judged in report.trials:
        chosen.setdefault(judged.number, "")
    return [ChartedTrial(number, role) for number, role in chosen.items()][:MOST_TRIALS]


def chart_data(judged: JudgedTrial, seconds: Seconds, role: str) -> dict[str, Any]:
    """One trial for the page's script. Times in seconds, latencies in seconds, CPU in cores."""
    step = max(1, math.ceil(len(seconds) / MOST_POINTS))
    groups = -(-len(seconds) // step)
    return {
        "trial": judged.number,
        "role": role,
        "engine": judged.trial.engine,
        "load": judged.load,
        "verdict": judged.verdict.kind.value,
        "warmup": judged.measurement.warmup_seconds,
        "step": step,
        "time": [seconds.start + n * step for n in range(groups)],
        "latency": _latency(seconds, step, groups),
        "throughput": {name: _mean(seconds[name], step) for name in ("published", "served", "acknowledged")},
        "queue": {"queue": _most(seconds["queue"], step), "lag": _lag(seconds, step, groups)},
        "cpu": _cpu(judged, seconds, step),
    }


def _latency(seconds: Seconds, step: int, groups: int) -> dict[str, Series]:
    found: dict[str, Series] = {}
    names: tuple[tuple[Kind, str], ...] = (("event-time", "event"), ("processing-time", "processing"))
    for kind, name in names:
        latency = seconds.latency(kind)
        if len(latency.count):
            for statistic, values in _spread(latency, seconds.start, step, groups).items():
                found[f"{name} {statistic}"] = values
    return found


def _spread(latency: Latencies, start: int, step: int, groups: int) -> dict[str, Series]:
    """p50, p99 and the largest latency of every step that has outputs."""
    found: dict[str, Series] = {name: [None] * groups for name in ("p50", "p99", "max")}
    place = (latency.second - start) // step
    order = np.argsort(place, kind="stable")
    places, first = np.unique(place[order], return_index=True)
    for at, rows in zip(places.tolist(), np.split(order, first[1:]), strict=True):
        bucket, count = latency.bucket[rows], latency.count[rows]
        if not 0 <= at < groups or not count.sum():
            continue
        found["p50"][at] = _seconds(buckets.quantile(bucket, count, 0.5))
        found["p99"][at] = _seconds(buckets.quantile(bucket, count, 0.99))
        found["max"][at] = _seconds(int(buckets.highest(bucket[count > 0].max())))
    return found


def _seconds(micros: int) -> float:
    return micros / 1e6


def _grouped(column: npt.NDArray[np.int64], step: int) -> list[npt.NDArray[np.int64]]:
    return [column[at : at + step] for at in range(0, len(column), step)]


def _mean(column: npt.NDArray[np.int64], step: int) -> Series:
    return [round(float(part.mean()), 3) for part in _grouped(column, step)]


def _most(column: npt.NDArray[np.int64], step: int) -> Series:
    return [float(part.max()) for part in _grouped(column, step)]


def _lag(seconds: Seconds, step: int, groups: int) -> Series:
    """Lag at the last acknowledgement of each step; None where there was none, so that no saw-tooth is drawn."""
    found: Series = [None] * groups
    for at, part in enumerate(_grouped(seconds["ack_lag"], step)):
        known = part[part >= 0]
        if known.size and "ack_lag" in seconds.columns:
            found[at] = float(known[-1])
    return found


def _cpu(judged: JudgedTrial, seconds: Seconds, step: int) -> dict[str, Series]:
    """CPU in cores. The share of other processes is one of the cores of the system under test."""
    found: dict[str, Series] = {}
    for name, column in (("system under test", "sut_cpu"), ("driver", "driver_cpu")):
        if seconds[column].any():
            found[name] = _scaled(_mean(seconds[column], step), 1e-6)
    if found:
        cores = judged.cores or 1
        for name in ("foreign", "steal"):
            found[name] = _scaled(_mean(seconds[name], step), cores * 1e-6)
    return found


def _scaled(series: Series, factor: float) -> Series:
    return [None if value is None else round(max(value * factor, 0.0), 4) for value in series]


def all_charts(
    report: RunReport, wanted: Sequence[ChartedTrial], recorded: Mapping[int, Seconds]
) -> list[dict[str, Any]]:
    """The charts of every wanted trial that has seconds."""
    found = []
    for choice in wanted:
        judged, seconds = report.trial(choice.number), recorded.get(choice.number)
        if judged is not None and seconds is not None and len(seconds):
            found.append(chart_data(judged, seconds, choice.role))
    return found
