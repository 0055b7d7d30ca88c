"""Collects the noise of real Spark trials, for ``benches/real_noise.py`` to replay. Not part of ``make bench``.

    python -m benches._collect_noise --transport queue --out noise-queue.npz
    python -m benches._collect_noise --merge noise-*.npz --out benches/data/real_noise.npz

One Spark application, warmed up, and one trial after the other at shares of the load that its cores can process.
``--hog`` takes so much of Spark's core, all the time or in bursts. Kept of each trial are its seconds, every
acknowledgement, and the events and the duration of every micro-batch; no verdict ends a trial.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.spark.explain import BATCH_LOG
from streamgauge.judge import decide, measure
from streamgauge.model.experiment import Experiment
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, TrialRequest
from streamgauge.parse import read
from streamgauge.run.explore import open_run, setup_of, trial_of
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, NullObserver, RunContext, RunLimits
from streamgauge.store.journal import read_columns, read_rows

SHARES = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3, 0.85)
QUESTION = """
name: noise
workload: {{name: windowed-aggregation, window: 4s, slide: 2s}}
transport: {transport}
engine: {{name: spark, cores: 1, trigger: {trigger}, warm_limit: 45s, warm_load: {warm}}}
find: nothing
load: {{values: [100k/s]}}
objective: [lag-trend <= 1%, lost == 0]
trial: {{duration: {length}, warmup: 3s, limit: {length}}}
"""
HOG = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
os.sched_setaffinity(0, {int(sys.argv[1])})
share, on, off = map(float, sys.argv[2:5])
print(os.getpid(), flush=True)
ends = time.monotonic() + 900
while time.monotonic() < ends:
    stop = time.monotonic() + on
    while time.monotonic() < stop:
        begun = time.monotonic()
        while time.monotonic() < begun + share * 0.02:
            pass
        time.sleep((1 - share) * 0.02)
    time.sleep(off)
"""


class Patient:
    """An early-stop rule that ends no trial before its time."""

    silence = 0
    stalled = False

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def due(self, stop: int) -> bool:
        return stop >= self._seconds

    def decided(self, seconds: Seconds) -> bool:
        return seconds.stop >= self._seconds


class Printing(NullObserver):
    """An observer that prints messages."""

    def message(self, text: str) -> None:
        print(text, flush=True)


@contextmanager
def hog(core: int, share: float, on: float, off: float) -> Iterator[None]:
    """Another process takes a share of a core, ``on`` seconds long with ``off`` seconds between."""
    if not share:
        yield
        return
    argv = [sys.executable, "-c", HOG, *map(str, (core, share, on, off))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as born:
        assert born.stdout is not None
        pid = int(born.stdout.readline())
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)


def kept(recording: Recording, folder: Path) -> dict[str, Any]:
    """All that the bench needs of one trial, as plain columns."""
    acks, batches = read_rows(folder / "acks-0"), read_columns(folder / BATCH_LOG)
    columns = {f"seconds/{name}": column for name, column in recording.seconds.columns.items()}
    columns |= {f"acks/{name}": acks[name].to_numpy() for name in ("time", "published", "served", "acknowledged")}
    return columns | {f"batches/{name}": batches[name] for name in ("time", "input_rows", "trigger_ms")}


def collect(arguments: argparse.Namespace) -> None:
    """Perform the trials and write them down."""
    warm = "60k/s" if arguments.transport == "kafka" else "150k/s"
    length = f"{arguments.length}s"
    question = read(QUESTION.format(transport=arguments.transport, trigger=arguments.trigger, warm=warm, length=length))
    with tempfile.TemporaryDirectory(prefix="sg") as name:
        limits = RunLimits(cache=cache_folder())
        with open_run(question, "noise", Path(name), limits, Printing()) as context:
            found = perform_all(question, Path(name), context, arguments)
    write(arguments.out, found)


def perform_all(
    question: Experiment, root: Path, context: RunContext, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """One trial at each share of the load that Spark's core can process."""
    choice, found = question.engines[0], list[dict[str, Any]]()
    rule = Patient(arguments.length + 3)
    first = trial_of(question, choice, TrialRequest("load", 1.0, "measure"), 0)
    setup = setup_of(first, choice.name, DiscardingRecorder(root), context, rule)
    assert context.systems is not None
    hint = context.systems.estimate_limit(setup)
    with hog(setup.placement.sut[0], arguments.hog, arguments.on, arguments.off):
        for number, share in enumerate(SHARES, 1):
            trial = trial_of(question, choice, TrialRequest("load", float(round(share * hint, -3)), "measure"), number)
            folder = root / f"trial-{number:03}"
            folder.mkdir()
            recording = execute(setup_of(trial, choice.name, DiscardingRecorder(folder), context, rule))
            verdict = decide(recording, measure(recording), question.objectives)
            print(f"{share} {trial.load:,.0f}/s {verdict.kind} {verdict.reasons[0][:90]}", flush=True)
            about = {"transport": arguments.transport, "load": trial.load, "hog": arguments.hog}
            about |= {"trigger": trial.trigger / 1e9, "verdict": str(verdict.kind), "share": share}
            try:
                found.append({"about": about, **kept(recording, folder)})
            except (OSError, KeyError) as error:
                print(f"not kept: {error}")
            write(arguments.out, found)
    return found


def write(path: Path, trials: list[dict[str, Any]]) -> None:
    """Trials as one compressed file of columns."""
    columns = {f"{i}/{name}": column for i, trial in enumerate(trials) for name, column in trial.items()}
    columns = {
        n: np.frombuffer(json.dumps(c).encode(), np.uint8) if n.endswith("about") else c for n, c in columns.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **columns)


def load(path: Path) -> list[dict[str, Any]]:
    """What ``write`` wrote."""
    trials: dict[int, dict[str, Any]] = {}
    with np.load(path, allow_pickle=False) as stored:
        for key in stored.files:
            number, _, name = key.partition("/")
            value = stored[key]
            trials.setdefault(int(number), {})[name] = json.loads(value.tobytes()) if name == "about" else value
    return [trials[number] for number in sorted(trials)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=("queue", "kafka"), default="queue")
    parser.add_argument("--trigger", default="1s")
    parser.add_argument("--length", type=int, default=26)
    parser.add_argument("--hog", type=float, default=0.0, help="share of Spark's core that another process takes")
    parser.add_argument("--on", type=float, default=1e9)
    parser.add_argument("--off", type=float, default=0.0)
    parser.add_argument("--merge", type=Path, nargs="*", help="write these files into one")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.merge:
        write(arguments.out, [trial for path in arguments.merge for trial in load(path)])
    else:
        collect(arguments)


if __name__ == "__main__":
    main()
