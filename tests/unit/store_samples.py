"""Small values of every kind that the store keeps."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from streamgauge.model.experiment import EngineChoice, Experiment, Span, WorkloadChoice
from streamgauge.model.facts import EngineFacts, TrialFacts
from streamgauge.model.finding import Bound, Finding
from streamgauge.model.measurement import (
    Check,
    Estimate,
    Interval,
    LatencySummary,
    Measurement,
    Verdict,
    VerdictKind,
)
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant, ramp
from streamgauge.model.seconds import COLUMNS, KINDS, Account, Latencies, Seconds
from streamgauge.model.trial import Outcome, Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.store import Run, Store, StoredTrial

NOW = datetime(2026, 11, 15, 23, 53, 12, 345678, tzinfo=UTC)
TEXT = "name: Quick start  # ≤ 5 %\r\nfind: sustainable-throughput\n"
ENVIRONMENT = {"version": 1, "cpu": {"model": "Abacus", "usable": [0, 1]}, "java": None}

EXPERIMENT = Experiment(
    name="Quick start",
    workload=WorkloadChoice("windowed-aggregation", {"window": 8 * SECOND, "skew": 0.25, "key": "user"}),
    engines=(EngineChoice("a", "simulated", {"capacity": 730e3}), EngineChoice("b", "simulated", {})),
    what="sustainable-throughput",
    objectives=(
        Objective("lag-trend", "<=", 0.01, relative=True, text="lag-trend <= 1%"),
        Objective("event-time", "<", 2.0 * SECOND, statistic="p99"),
    ),
    span=Span(between=(1e4, 5e6)),
    profile=ramp(1.0, 2.0, 3 * SECOND),
)

MEASUREMENT = Measurement(
    load=1e5,
    published_rate=1e5,
    served_rate=99_999.5,
    warmup_seconds=2,
    judged_seconds=3,
    steady=True,
    runaway=False,
    lag_trend=Interval(1.5, -math.inf, math.inf, math.nan, 3, 0.5, 2.0),
    latency_trend=None,
    capacity=None,
    lag_start=0.0,
    lag_end=12.0,
    lag_corridor=40.0,
    latency_corridor=0.5,
    longest_queue=400,
    drops=0,
    latencies={"event-time": LatencySummary(10, 5, 1e6, 1e5, 1e7, {"p50": 9e5})},
    account=Account(expected=10, observed=10, checked=True),
)

VERDICT = Verdict(
    VerdictKind.SUSTAINED,
    ("the queue grows by 1.5 events/s, within 1 % of the load",),
    (Check("lag-trend <= 1%", "holds", 1.5, 1000.0, "1.5 ≤ 1000"),),
    Estimate(730e3, 1e3),
)

FACTS = TrialFacts(EngineFacts(settings={"spark": "4.3", "ratio": math.inf}))

FINDING = Finding(
    line="",
    engine="a",
    dimension="load",
    unit="rate",
    status="bracketed",
    holds=Bound(7e5, (1, 3)),
    fails=Bound(7.3e5, (2,)),
    sentence="a holds 700k/s and fails at 730k/s",
    trials=3,
)


def trial(number: int = 1, engine: str = "a") -> Trial:
    return Trial(
        number=number,
        ask=TrialRequest("load", 1e5, "probe", (("instances", 4.0),)),
        workload="windowed-aggregation",
        params={"window": 8 * SECOND},
        engine=engine,
        options={"capacity": 730e3},
        instances=4,
        profile=constant(1e5),
        duration=60 * SECOND,
        limit=300 * SECOND,
        warmup=None,
        warmup_limit=60 * SECOND,
        queue_bound=0,
        seed=7,
    )


def seconds(count: int = 5, start: int = 0, per_second: int = 4, seed: int = 1) -> Seconds:
    """All columns and both kinds of latencies, with numbers up to 2^62."""
    rng = np.random.default_rng([seed, start])
    columns = {name: rng.integers(-1, 1 << 62, count) for name in COLUMNS}
    at = np.repeat(np.arange(start, start + count, dtype=np.int64), per_second)
    latencies = {
        kind: Latencies(at, rng.integers(0, 20_000, len(at)), rng.integers(1, 1 << 40, len(at))) for kind in KINDS
    }
    return Seconds(start, columns, latencies)


def recording(number: int = 1, engine: str = "a") -> Recording:
    outcome = Outcome("decided", "clearly sustained", ("last line",), Account(expected=10, observed=10))
    return Recording(trial(number, engine), seconds(), outcome, FACTS)


def keep(run: Run, number: int = 1, engine: str = "a") -> StoredTrial:
    """One whole trial in the run."""
    partial = run.begin(trial(number, engine))
    partial.append(recording(number, engine).seconds)
    return partial.finish(recording(number, engine), MEASUREMENT, VERDICT)


def new_run(root: Path, after: int = 0, token: str = "ab12") -> Run:  # noqa: S107
    """A run made ``after`` seconds."""
    return Store(root).create(EXPERIMENT, TEXT, ENVIRONMENT, NOW + timedelta(seconds=after), token, ["run", "quick"])


def whole_run(root: Path) -> Run:
    """A concluded run with two trials."""
    run = new_run(root)
    keep(run, 1)
    keep(run, 2, "b")
    run.write_conclusion([FINDING], "", 0, 120 * SECOND)
    return run


def same_seconds(left: Seconds, right: Seconds) -> bool:
    """Equal in every number and in what was recorded at all."""
    return (
        (left.start, set(left.columns), set(left.latencies)) == (right.start, set(right.columns), set(right.latencies))
        and all(np.array_equal(left[name], right[name]) for name in COLUMNS)
        and all(
            np.array_equal(getattr(left.latency(kind), field), getattr(right.latency(kind), field))
            for kind in KINDS
            for field in ("second", "bucket", "count")
        )
    )
