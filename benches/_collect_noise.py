"""Collects the noise of real Spark trials, for ``benches/real_noise.py`` to replay. Not part of ``make bench``.

    python -m benches._collect_noise --transport queue --out noise-queue.npz
    python -m benches._collect_noise --merge noise-*.npz --out benches/data/real_noise.npz

One Spark application, warmed up, and one trial after the other at shares of the load that its cores can process: eight
trials of 60 s, which take about 11 minutes with the warm-up. ``--applications`` repeats this with a new application.
``--hog`` takes so much of Spark's core, all the time or in bursts. Kept of each trial are its seconds, every
acknowledgement, and the events and the duration of every micro-batch; no verdict ends a trial, and outputs are not
compared. The file is written after each trial, so an interrupted recording keeps the trials before.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.contract import System
from streamgauge.engines.spark.explain import BATCH_LOG
from streamgauge.judge import decide, measure
from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, TrialRequest
from streamgauge.model.units import format_duration, format_rate
from streamgauge.parse import read
from streamgauge.run.explore import open_run, setup_of, trial_of
from streamgauge.run.systems import SystemFailed
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, NullObserver, RunContext, RunLimits, TrialSetup
from streamgauge.store.journal import read_columns, read_rows

SHARES = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 0.95)
"""Shares of the load that Spark's core can process. The estimate of that load is about the limit, so three or four of
these trials are overloaded. The last one shows whether the compiler has become faster meanwhile."""
WARMUP = 3
QUESTION = """
name: noise
workload: {{name: windowed-aggregation, window: 4s, slide: 2s}}
transport: {transport}
engine: {{name: spark, cores: 1, trigger: {trigger}, warm_limit: 45s, warm_load: {warm}}}
find: nothing
load: {{values: [100k/s]}}
objective: [lag-trend <= 1%, lost == 0]
trial: {{duration: {length}, warmup: {warmup}s, limit: {length}}}
"""
HOG = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
os.sched_setaffinity(0, {int(sys.argv[1])})
share, on, off = map(float, sys.argv[2:5])
print(os.getpid(), flush=True)
while os.path.exists(f"/proc/{sys.argv[5]}"):
    stop = time.monotonic() + on
    while time.monotonic() < stop and os.path.exists(f"/proc/{sys.argv[5]}"):
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


@dataclass
class Progress(NullObserver):
    """Prints what happens, with the time since the beginning."""

    began: float = field(default_factory=time.monotonic)

    def message(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", flush=True)


@contextmanager
def hog(core: int, share: float, on: float, off: float) -> Iterator[None]:
    """Another process takes a share of a core, ``on`` seconds long with ``off`` seconds between."""
    if not share:
        yield
        return
    argv = [sys.executable, "-c", HOG, *map(str, (core, share, on, off, os.getpid()))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as born:
        assert born.stdout is not None
        pid = int(born.stdout.readline())
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kept(recording: Recording, folder: Path) -> dict[str, Any]:
    """All that the bench needs of one trial, as plain columns. Without a log of acknowledgements it has none."""
    batches = read_columns(folder / BATCH_LOG)
    columns = {f"seconds/{name}": column for name, column in recording.seconds.columns.items()}
    with suppress(OSError, KeyError):
        acks = read_rows(folder / "acks-0")
        columns |= {f"acks/{name}": acks[name].to_numpy() for name in ("time", "published", "served", "acknowledged")}
    return columns | {f"batches/{name}": batches[name] for name in ("time", "input_rows", "trigger_ms")}


def question_of(arguments: argparse.Namespace) -> Experiment:
    """The experiment that has these trials."""
    warm, length = "60k/s" if arguments.transport == "kafka" else "150k/s", f"{arguments.length}s"
    chosen = {"transport": arguments.transport, "trigger": arguments.trigger}
    return read(QUESTION.format(**chosen, warm=warm, length=length, warmup=WARMUP))


@dataclass
class Collection:
    """The trials so far. The file is written after each of them."""

    question: Experiment
    arguments: argparse.Namespace
    progress: Progress = field(default_factory=Progress)
    found: list[dict[str, Any]] = field(default_factory=list)

    def perform(self) -> None:
        """All trials of all applications."""
        count = self.arguments.applications
        for number in range(1, count + 1):
            self.progress.message(f"application {number} of {count}, {self.arguments.transport}")
            with tempfile.TemporaryDirectory(prefix="sg") as name:
                limits = RunLimits(cache=cache_folder())
                with open_run(self.question, "noise", Path(name), limits, self.progress) as context:
                    try:
                        self._application(Path(name), context)
                    except SystemFailed as error:
                        self.progress.message(f"Spark failed, so this application has no further trial: {error}")

    def _application(self, root: Path, context: RunContext) -> None:
        """One trial at each share of the load that Spark's core can process."""
        choice, shares = self.question.engines[0], self.arguments.shares
        setup = self._setup(choice, 1.0, 0, root, context)
        assert context.systems is not None
        limit = context.systems.estimate_limit(setup)
        if not limit:
            self.progress.message("the limit could not be estimated, so there is no load for trials")
            return
        system: System | None = None
        application = ""
        with hog(setup.placement.sut[0], self.arguments.hog, self.arguments.on, self.arguments.off):
            for number, share in enumerate(shares, 1):
                folder = root / f"trial-{number:03}"
                folder.mkdir()
                setup = self._setup(choice, float(round(share * limit, -3)), number, folder, context)
                serving = context.systems.get(setup)
                if serving is not system:  # Spark is started again after a trial that it did not survive
                    system, application = serving, secrets.token_hex(4)
                self.progress.message(f"trial {number} of {len(shares)} at {format_rate(setup.trial.load)}")
                self._trial(setup, folder, {"application": application, "share": share})

    def _setup(self, choice: EngineChoice, load: float, number: int, folder: Path, context: RunContext) -> TrialSetup:
        trial = trial_of(self.question, choice, TrialRequest("load", load, "measure"), number)
        rule = Patient(self.arguments.length + WARMUP)
        setup = setup_of(trial, choice.name, DiscardingRecorder(folder), context, rule)
        return replace(setup, check_outputs=False)

    def _trial(self, setup: TrialSetup, folder: Path, about: dict[str, Any]) -> None:
        trial, asked = setup.trial, self.arguments
        recording = execute(setup)
        measured = measure(recording)
        verdict = decide(recording, measured, self.question.objectives)
        about |= {"transport": asked.transport, "load": trial.load, "hog": asked.hog, "on": asked.on, "off": asked.off}
        about |= {"trigger": trial.trigger / 1e9, "verdict": str(verdict.kind)}
        taken = f"others took {measured.foreign_share:.1%}, steal {measured.steal_share:.1%}"
        self.progress.message(f"  {verdict.kind}, {taken}: {verdict.reasons[0][:110]}")
        try:
            self.found.append({"about": about, **kept(recording, folder)})
        except (OSError, KeyError) as error:
            self.progress.message(f"  not kept: {error}")
            return
        write(asked.out, self.found)
        batches = len(self.found[-1]["batches/time"])
        self.progress.message(f"  {batches} micro-batches kept; {len(self.found)} trials in {asked.out}")


def collect(arguments: argparse.Namespace) -> None:
    """Perform the trials and write them down. An interrupt ends the processes and keeps what was recorded."""
    collection = Collection(question_of(arguments), arguments)
    expected = arguments.applications * (100 + len(arguments.shares) * (arguments.length + 10))
    collection.progress.message(f"this takes about {format_duration(expected * 1_000_000_000)}")
    signal.signal(signal.SIGTERM, interrupt)
    try:
        collection.perform()
    except KeyboardInterrupt:
        print(f"interrupted: {len(collection.found)} trials are in {arguments.out}", flush=True)
        sys.exit(130)


def interrupt(*_: object) -> NoReturn:
    """SIGTERM ends the recording as Ctrl-C does."""
    raise KeyboardInterrupt


def write(path: Path, trials: list[dict[str, Any]]) -> None:
    """Trials as one compressed file of columns, which replaces an older one when it is complete."""
    columns = {f"{i}/{name}": column for i, trial in enumerate(trials) for name, column in trial.items()}
    columns = {
        n: np.frombuffer(json.dumps(c).encode(), np.uint8) if n.endswith("about") else c for n, c in columns.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.stem}.partial.npz")
    np.savez_compressed(partial, **columns)
    partial.replace(path)


def load(path: Path) -> list[dict[str, Any]]:
    """What ``write`` wrote."""
    trials: dict[int, dict[str, Any]] = {}
    with np.load(path, allow_pickle=False) as stored:
        for key in stored.files:
            number, _, name = key.partition("/")
            value = stored[key]
            trials.setdefault(int(number), {})[name] = json.loads(value.tobytes()) if name == "about" else value
    return [trials[number] for number in sorted(trials)]


def shares_of(text: str) -> Sequence[float]:
    """Shares of the limit from a list such as ``0.5,0.9,1.1``."""
    shares = tuple(float(part) for part in text.split(","))
    if not all(0 < share < 10 for share in shares):
        raise argparse.ArgumentTypeError(f"shares of the limit must be above 0 and below 10, not {text}")
    return shares


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--transport", choices=("queue", "kafka"), default="queue")
    parser.add_argument("--trigger", default="1s")
    parser.add_argument("--length", type=int, default=60, help="judged seconds of each trial")
    parser.add_argument("--shares", type=shares_of, default=SHARES, help="loads as shares of the limit, as in 0.5,0.9")
    parser.add_argument("--applications", type=int, default=1, help="Spark applications, one after the other")
    parser.add_argument("--hog", type=float, default=0.0, help="share of Spark's core that another process takes")
    parser.add_argument("--on", type=float, default=1e9, help="seconds for which it takes this share")
    parser.add_argument("--off", type=float, default=0.0, help="seconds between, in which it takes nothing")
    parser.add_argument("--merge", type=Path, nargs="*", help="write these files into one")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(words)


def main() -> None:
    """Record, or merge what was recorded."""
    arguments = parsed()
    if arguments.merge:
        write(arguments.out, [trial for path in arguments.merge for trial in load(path)])
    else:
        collect(arguments)


if __name__ == "__main__":
    main()
