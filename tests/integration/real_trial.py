"""Real trials of the reference engine for tests: short, on real processes, disturbed at a chosen second."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from host_noise import PART_OF_TEST

from streamgauge.engines.contract import Engine, RealEngine, System
from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.model.measurement import Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Latencies, Seconds
from streamgauge.model.trial import Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND, format_share
from streamgauge.parse.objectives import objective
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.processes.placement import assign_cores
from streamgauge.run.explore import setup_of
from streamgauge.run.trial.perform import perform
from streamgauge.run.trial.setup import DiscardingRecorder, NullObserver, Observer, RunContext, RunLimits, TrialSetup
from streamgauge.store.journal import read_rows
from streamgauge.transports.contract import OpenTransport
from streamgauge.transports.queue.transport import OpenQueue
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

MILLI = 1_000_000
WARMUP, JUDGED = 1, 2
"""Seconds of a short trial: left out, and judged."""
DRIVER, COLLECTOR, ENGINE = (
    "streamgauge.run.driver.generator",
    "streamgauge.run.collector.collector",
    "streamgauge.engines.reference.worker",
)
NOISY = 0.03
"""Share of a core, used by other processes or stolen in a single second, that disturbs a trial."""
PLACEMENT = assign_cores(1)
Sabotage = Callable[[], object]

TRIAL = Trial(
    number=1,
    ask=TrialRequest("load", 200_000.0, "measure"),
    workload=windowed_aggregation.name,
    params=WindowedAggregationParams(window="200ms", slide="200ms").model_dump(),
    engine="reference",
    options={},
    instances=1,
    profile=constant(200_000.0),
    duration=JUDGED * SECOND,
    limit=JUDGED * SECOND,
    warmup=WARMUP * SECOND,
    warmup_limit=WARMUP * SECOND,
    queue_bound=0,
    seed=17,
)


def trial(load: float = 200_000.0, options: dict[str, Any] | None = None, **changes: Any) -> Trial:  # noqa: ANN401
    """A short trial. ``options`` are the reference engine's, as a user writes them."""
    chosen = ReferenceOptions(**{"capacity": "1M/s", **(options or {})}).model_dump()
    return replace(TRIAL, ask=TrialRequest("load", load, "measure"), profile=constant(load), options=chosen, **changes)


@dataclass
class Saboteur(NullObserver):
    """Does something once a trial has come to a second; it is told each second by the controller itself."""

    plan: dict[int, Sabotage]
    done: list[int] = field(default_factory=list)

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Whatever was planned up to now and is not done."""
        for second in [s for s in self.plan if s <= seconds.stop and s not in self.done]:
            self.done.append(second)
            self.plan[second]()


@dataclass(frozen=True)
class Played:
    """A real trial that is over, and what is said of it."""

    folder: Path
    recording: Recording
    measured: Measurement
    verdict: Verdict

    @property
    def reasons(self) -> str:
        """All sentences, one in a line."""
        return "\n".join(self.verdict.reasons)

    def is_(self, kind: VerdictKind, *words: str) -> None:
        """It must have this verdict, and these words in its reasons."""
        assert self.verdict.kind is kind, self
        for each in words:
            assert each in self.reasons, self

    def __str__(self) -> str:
        columns = ("offered", "published", "acknowledged", "queue", "schedule_lag", "run_delay", "foreign")
        shown = [f"  {name}: {self.recording.seconds[name].tolist()}" for name in columns]
        return "\n".join([self.verdict.kind, self.reasons, str(self.recording.outcome), *shown])

    __repr__ = __str__


def objectives(*texts: str) -> tuple[Objective, ...]:
    """The default ones, or these."""
    return tuple(map(objective, texts or ("lag-trend <= 1%", "lost == 0")))


@contextmanager
def trial_setup(
    asked: Trial,
    folder: Path,
    *,
    engine: Engine = reference,
    transport: OpenTransport | None = None,
    observer: Observer | None = None,
) -> Iterator[TrialSetup]:
    """A trial whose journals are left in a folder of the test, over the queue unless another transport is given."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        limits = RunLimits(runtime=Path(short))
        context = RunContext(limits, observer or NullObserver(), transport or OpenQueue(Path(short)))
        yield setup_of(asked, engine, DiscardingRecorder(folder), context, EarlyStopRule(asked, objectives()))


def host_in(launcher: Launcher, folder: Path, transport: str = "queue") -> LocalHost:
    """A host that gives a system its cores from the beginning, with logs in this folder."""
    return LocalHost(launcher, folder, folder, PLACEMENT.sut, PLACEMENT.sut, transport=transport)


def play(
    asked: Trial,
    folder: Path,
    sabotage: dict[int, Sabotage] | None = None,
    driver_changes: Mapping[str, Any] | None = None,
    *,
    engine: RealEngine = reference,
    system: System | None = None,
    transport: OpenTransport | None = None,
) -> Played:
    """Perform a trial and judge it. ``sabotage`` is done at the ends of these seconds.

    Without a system, one is started for this trial.
    """
    observer = Saboteur(sabotage or {})
    with ExitStack() as stack:
        setup = stack.enter_context(trial_setup(asked, folder, engine=engine, transport=transport, observer=observer))
        if system is None:
            launcher = stack.enter_context(Launcher(setup.context.limits.runtime))
            host = host_in(launcher, folder, asked.transport.name)
            system = stack.enter_context(engine.start(setup.layout, setup.options, host))
        recording = perform(replace(setup, system=system, driver_changes=driver_changes or {}))
    measured = measure(recording)
    return Played(folder, recording, measured, decide(recording, measured, objectives()))


def child(module: str) -> int:
    """The process id of a child of this process, by the module that it runs."""
    (found,) = [p.pid for p in psutil.Process().children(recursive=True) if module in _words(p)]
    return int(found)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def stop_for(pid: int, seconds: float) -> None:
    """SIGSTOP now, SIGCONT so much later."""
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()


_HOG = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
os.sched_setaffinity(0, {int(sys.argv[1])})
print(os.getpid(), flush=True)
ends, share = time.monotonic() + float(sys.argv[2]), float(sys.argv[3])
while (now := time.monotonic()) < ends:
    while time.monotonic() < now + share * 0.01:
        pass
    if share < 1:
        time.sleep((1 - share) * 0.01)
"""


def _kill(pid: int) -> None:
    """End it, unless its time was over already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def hogs(core: int, count: int = 1, longest: float = 60.0, share: float = 1.0) -> Iterator[None]:
    """Unrelated processes that use all of a core, or a share of it each: with 0.3, busy for 3 ms and asleep for 7 ms.

    They are not children of this process, or they would count as part of the run. They end by themselves after
    ``longest`` seconds.
    """
    with ExitStack() as stack:
        for _ in range(count):
            argv = [sys.executable, "-c", _HOG, str(core), str(longest), str(share)]
            born = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
            assert born.stdout is not None
            pid = int(born.stdout.readline())
            PART_OF_TEST.add(pid)
            stack.callback(_kill, pid)
            born.stdout.close()
            born.wait()
        yield


def disturbance(folder: Path, stop: int) -> str:
    """What the machine itself shows of a disturbance in the trial's seconds; nothing if it was quiet."""
    rows = read_rows(folder / "monitor-cores")
    inside = rows["time"].to_numpy() <= (stop + 0.5) * SECOND
    foreign, steal, span = (rows[name].to_numpy()[inside] for name in ("foreign_us", "steal_us", "span_us"))
    taken = [float((each / np.maximum(span, 1)).max(initial=0.0)) for each in (foreign, steal)]
    if max(taken) <= NOISY:
        return ""
    return "in one second other processes took {} of a core, the hypervisor {}".format(*map(format_share, taken))


def valid_or_disturbed(played: Played, kind: VerdictKind) -> bool:
    """Whether the trial could be judged: it must then have this verdict. False: the machine shows why it could not.

    A shared machine may disturb a trial of seconds at any time; INVALID without such a cause is our own fault.
    """
    if played.verdict.kind is kind:
        return True
    cause = disturbance(played.folder, played.recording.seconds.stop)
    assert played.verdict.kind in (VerdictKind.INVALID, VerdictKind.UNDECIDED), played
    assert cause, played
    return False


def as_if_quiet(played: Played) -> Played:
    """The trial as a quiet machine would show it: the verdict on the system under test must not depend on others.

    Only where the machine shows that it was noisy is anything left out: run delay, schedule lag, foreign CPU,
    steal, and what the generator fell short of.
    """
    if played.verdict.kind is not VerdictKind.INVALID:
        return played
    recording = played.recording
    assert disturbance(played.folder, recording.seconds.stop), played
    assert not recording.outcome.disturbances, played
    noise = ("run_delay", "schedule_lag", "hiccup", "collector_hiccup", "foreign", "steal")
    columns = {n: np.zeros_like(c) if n in noise else c for n, c in recording.seconds.columns.items()}
    columns["offered"] = columns["published"]  # a generator that was held up has published less
    kinds = recording.seconds.latencies | {"send-delay": Latencies()}
    quiet = replace(recording, seconds=replace(recording.seconds, columns=columns, latencies=kinds))
    measured = measure(quiet)
    return Played(played.folder, quiet, measured, decide(quiet, measured, objectives()))
