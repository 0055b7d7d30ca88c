"""A run to make reports of: three trials and one at 90 %, with seconds as a driver would record them."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from streamgauge.judge import measure
from streamgauge.model.experiment import EngineChoice, Experiment, WorkloadChoice
from streamgauge.model.facts import EngineFacts, Explanation, Phases, TrialFacts
from streamgauge.model.finding import Bound, Finding
from streamgauge.model.measurement import LatencySummary, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Account, Kind, Latencies, Seconds
from streamgauge.model.trial import Outcome, Purpose, Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.report.view.run_report import JudgedTrial, RunReport
from streamgauge.stats import buckets

LENGTH = 35
WARMUP = 5


def trial(number: int, load: float, purpose: Purpose = "probe") -> Trial:
    return Trial(
        number=number,
        ask=TrialRequest("load", load, purpose),
        workload="windowed-aggregation",
        params={},
        engine="simulated",
        options={},
        instances=1,
        profile=constant(load),
        duration=30 * SECOND,
        limit=60 * SECOND,
        warmup=WARMUP * SECOND,
        warmup_limit=WARMUP * SECOND,
        queue_bound=0,
        seed=number,
    )


def seconds(load: float, length: int = LENGTH) -> Seconds:
    """A steady trial: 2 ms and 4 ms of latency in every even second, 0.9 cores used."""
    each = np.full(length, round(load), np.int64)
    columns = dict.fromkeys(("offered", "published", "served", "acknowledged", "queue", "ack_lag"), each)
    columns["ack_time"] = np.arange(length) * SECOND
    columns["sut_cpu"] = np.full(length, 900_000)
    columns["driver_cpu"] = np.full(length, 200_000)
    columns["foreign"] = np.full(length, -1_000)
    at = np.repeat(np.arange(0, length, 2), 2)
    bucket = np.tile(buckets.index([2_000, 4_000]), len(at) // 2)
    kinds: tuple[Kind, ...] = ("event-time", "processing-time")
    return Seconds(0, columns, {kind: Latencies(at, bucket, np.full(len(at), 10)) for kind in kinds})


def judged(
    number: int,
    load: float,
    kind: VerdictKind,
    purpose: Purpose = "probe",
    reason: str = "",
    *,
    facts: TrialFacts = TrialFacts(),  # noqa: B008 (frozen)
) -> JudgedTrial:
    asked = trial(number, load, purpose)
    latencies: dict[Kind, LatencySummary] = {
        "event-time": LatencySummary(1_000, 10, 5e6, 1e6, math.inf, {"p50": 4e6, "p90": 1.2345e9}),
    }
    measurement = replace(measure(Recording(asked, seconds(load))), latencies=latencies, lag_trend=None, capacity=None)
    outcome = Outcome(account=Account(expected=100, observed=100, checked=True))
    verdict = Verdict(kind, (reason or "the queue grows by 0/s",))
    return JudgedTrial(asked, measurement, verdict, LENGTH, outcome, facts)


FINDING = Finding(
    line="",
    engine="simulated",
    dimension="load",
    unit="rate",
    status="bracketed",
    holds=Bound(100_000.0, (2,)),
    fails=Bound(104_000.0, (3,)),
    sentence="sustainable throughput: 100k events/s passed, 104k events/s failed (4.0 % apart)",
    notes=("102k/s could not be decided (trial 4)",),
    trials=4,
    also=((0.9, 4),),
)
LOAD_BEGAN = 1_767_268_810 * SECOND
EXPLAINED = TrialFacts(
    EngineFacts("simulated", "4.3.0", settings={"profile": "tuned", "settings": {"spark.sql.shuffle.partitions": "1"}}),
    placement="the driver on core 0, the system under test on core 1",
    sut_cores=(1,),
    wall_ns=LOAD_BEGAN,
    phases=Phases(starting=4.0, load=36.0, tail=2.0, checking=1.5),
    explanation=(
        Explanation("python", 0.31, "Python workers took 31 % of the core"),
        Explanation("core", 0.97, "its core was 97 % busy"),
    ),
)
ASKED = Experiment(
    name="x",
    workload=WorkloadChoice("windowed-aggregation", {"window": 8 * SECOND, "slide": 4 * SECOND, "users": 10}),
    engines=(EngineChoice("simulated", "simulated", {}),),
    what="sustainable-throughput",
    objectives=(Objective("lag-trend", "<=", 0.01, relative=True, text="lag-trend <= 1%"),),
)
REPORT = RunReport(
    run="20260101-120000-x-ab",
    experiment="x",
    findings=(FINDING,),
    trials=(
        judged(1, 1e6, VerdictKind.OVERLOADED, "estimate", "the queue grows by 900k/s [of 1M/s]"),
        judged(2, 1e5, VerdictKind.SUSTAINED, "confirm"),
        judged(3, 1.04e5, VerdictKind.OVERLOADED, "confirm", "the queue grows by 4k/s", facts=EXPLAINED),
        judged(4, 9e4, VerdictKind.SUSTAINED, "measure"),
    ),
    asked=ASKED,
    text="name: x\n",
    environment={
        "cpu": {"model": "AMD EPYC", "usable": [0, 1], "hypervisor": True},
        "memory": {"total_bytes": 24 << 30},
        "packages": {"pyspark": "4.3.0"},
        "java": None,
    },
    created=datetime(2026, 1, 1, 12, 0, tzinfo=UTC),
    command=("bin/streamgauge", "run", "x"),
    version="0.1.0",
)
RECORDED = {t.number: seconds(t.trial.load) for t in REPORT.trials}
