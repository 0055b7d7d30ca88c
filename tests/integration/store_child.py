"""Writes trials into the results folder until it is killed, and says of each when it is finished.

``python store_child.py ROOT TOKEN`` makes a new run; without a token it goes on with the last one.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from streamgauge.model.experiment import EngineChoice, Experiment, WorkloadChoice
from streamgauge.model.finding import Finding
from streamgauge.model.measurement import Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.seconds import COLUMNS, Account, Latencies, Seconds
from streamgauge.model.trial import Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.store import Run, Store

COUNT = 20


def trial(number: int) -> Trial:
    ask = TrialRequest("load", 1000.0 * number, "probe")
    profile = constant(1000.0 * number)
    return Trial(number, ask, "w", {}, "sim", {}, 1, profile, SECOND, SECOND, None, SECOND, 0, number)


def seconds(number: int) -> Seconds:
    """The seconds of trial ``number``: every number of them can be told from it."""
    at = np.arange(COUNT, dtype=np.int64)
    columns = {name: at * 1000 + number + i for i, name in enumerate(COLUMNS)}
    return Seconds(0, columns, {"event-time": Latencies(at, at + number, at + 1)})


def measurement(number: int) -> Measurement:
    rate = 1000.0 * number
    return Measurement(
        load=rate,
        published_rate=rate,
        served_rate=rate,
        warmup_seconds=0,
        judged_seconds=COUNT,
        steady=True,
        runaway=False,
        lag_trend=None,
        latency_trend=None,
        capacity=None,
        lag_start=0.0,
        lag_end=0.0,
        lag_corridor=0.0,
        latency_corridor=0.0,
        longest_queue=0,
        drops=0,
        latencies={},
        account=Account(),
    )


def open_run(root: Path, token: str | None) -> Run:
    if token is None:
        return Store(root).find("@last")
    objective = Objective("lag-trend", "<=", 0.01)
    engines = (EngineChoice("sim", "simulated", {}),)
    experiment = Experiment("crash", WorkloadChoice("w", {}), engines, "sustainable-throughput", (objective,))
    return Store(root).create(experiment, "name: crash\n", {"version": 1}, datetime.now(UTC), token)


def write_one(run: Run, number: int) -> None:
    partial = run.begin(trial(number))
    whole = seconds(number)
    for start in range(0, COUNT, 5):
        partial.append(whole.between(start, start + 5))
    verdict = Verdict(VerdictKind.SUSTAINED, (f"trial {number}",))
    partial.finish(Recording(trial(number), whole), measurement(number), verdict)


def main(root: Path, token: str | None) -> None:
    run = open_run(root, token)
    print(f"run {run.id}", flush=True)
    with run.lock():
        number = max((t.trial.number for t in run.trials()), default=0)
        while True:
            number += 1
            write_one(run, number)
            print(f"trial {number}", flush=True)
            found = Finding("", "sim", "load", "rate", "unfinished", None, None, f"after {number}", trials=number)
            run.write_conclusion([found], "", 0, number)
            print(f"concluded {number}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
