"""Engines of another package. The system of one stays up between trials: a real process beside the reference engine.
It fails where a test says so: at its start, in its warm-up, or under the growing load that looks for its limit.

The other one starts a system for every trial, and this system never becomes ready.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
from pydantic import Field

from streamgauge.engines.contract import (
    Deployment,
    Failure,
    Host,
    JobRun,
    Layout,
    Options,
    Position,
    System,
    Traits,
    Watermark,
)
from streamgauge.engines.reference.engine import ReferenceEngine, ReferenceOptions
from streamgauge.engines.toolkit import ProcessDeployment, per_trial
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.options import Duration
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import LineReady, ProcessSpec, RunningProcess

MARK = "a system that stays up"
_STAYS = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
_FAILS = "import sys\nprint('its configuration names no such cluster', flush=True)\nsys.exit(3)"
CRASH = SECOND
"""Time under load until it crashes, where it is told to."""
GROWN = 10 * SECOND
"""The same under a growing load, which is fixed at first."""


class StandingOptions(ReferenceOptions):
    """Those of the reference engine, the length of the warm-up, and where it fails."""

    warm_limit: Duration = Field(default=4 * SECOND, ge=0)
    fails: str = Field(default="", description="start, warm-up, growing or describe")


class StandingReference(ReferenceEngine):
    """The engine."""

    name = "standing"
    summary = "the reference engine beside a process that stays up"
    options: type[Options] = StandingOptions

    @contextmanager
    def start(self, layout: Layout, options: ReferenceOptions, host: Host) -> Iterator[System]:
        """Start the process that stays up."""
        assert isinstance(options, StandingOptions)
        script = _FAILS if options.fails == "start" else _STAYS
        spec = ProcessSpec("standing system", (sys.executable, "-c", script, MARK), cores=host.cores, ready=LineReady())
        running = host.start(spec)
        try:
            with super().start(layout, options, host) as per_trial_system:
                yield StandingSystem(running, per_trial_system)
        finally:
            running.stop()

    def traits(self, options: ReferenceOptions) -> Traits:
        """One system for all trials, with a short warm-up."""
        assert isinstance(options, StandingOptions)
        changed = {"crash_after": CRASH} if options.fails == "warm-up" else {}
        return replace(
            super().traits(options),
            shared=True,
            warm_load=100_000.0,
            warm_limit_ns=options.warm_limit,
            warm_min_ns=options.warm_limit if options.fails == "growing" else 0,  # the crash comes before its end
            warm_options=changed,
        )


class StandingSystem:
    """The process that stays up; each trial is a reference engine beside it."""

    def __init__(self, running: RunningProcess, per_trial_system: System) -> None:
        self._running, self._per_trial = running, per_trial_system

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running.alive()

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """The one that stays up, and that of the trial."""
        return {"standing": (self._running,), **self._per_trial.processes()}

    @contextmanager
    def deploy(self, run: JobRun[StandingOptions]) -> Iterator[Deployment]:
        """A reference engine for this trial."""
        trial, fails = run.trial, run.options.fails
        crash = {"crash_after": GROWN} if fails == "growing" and trial.profile.shape == "steps" else {}
        trial = replace(trial, options=trial.options | crash)
        with self._per_trial.deploy(replace(run, trial=trial)) as deployment:
            facts = EngineFacts("standing", settings={"standing": standing()})
            yield DescribedDeployment(deployment, facts, fails)

    def leftovers(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


class DescribedDeployment:
    """A deployment whose facts are how many systems stay up, or that cannot describe itself."""

    def __init__(self, deployment: Deployment, facts: EngineFacts, fails: str) -> None:
        self._deployment, self._facts, self._fails = deployment, facts, fails

    def alive(self) -> bool:
        """Whether the process of the trial runs."""
        return self._deployment.alive()

    def failure(self) -> Failure | None:
        """Nothing more is known."""
        return self._deployment.failure()

    def position(self) -> Position | None:
        """What the process of the trial reports."""
        return self._deployment.position()

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """Nothing."""
        return self._deployment.probe(since_ns, until_ns)

    def watermark(self) -> Watermark | None:
        """That of the process of the trial."""
        return self._deployment.watermark()

    def describe(self) -> EngineFacts:
        """How many systems stay up."""
        if self._fails == "describe":
            raise ConnectionError("its page of settings does not answer")
        return self._facts

    def end(self) -> None:
        """End the process of the trial."""
        self._deployment.end()


class UnstartableReference(ReferenceEngine):
    """An engine that starts a system for every trial, whose process ends before it is ready."""

    name = "unstartable"
    summary = "a process for every trial that ends before it is ready"

    def start(self, layout: Layout, options: ReferenceOptions, host: Host) -> AbstractContextManager[System]:
        """A system whose process ends with exit code 3 in every trial."""

        def deploy(run: JobRun[ReferenceOptions]) -> ProcessDeployment:
            spec = ProcessSpec("system of a trial", (sys.executable, "-c", _FAILS), cores=host.cores, ready=LineReady())
            host.start(spec, run.folder)  # this raises a LaunchError
            raise AssertionError("the process became ready")

        return per_trial(deploy)


def standing() -> int:
    """How many processes of this kind are below the controller."""
    return sum(MARK in process.cmdline() for process in psutil.Process(os.getpid()).children(recursive=True))


def installed(folder: Path) -> dict[str, str]:
    """The environment of a command that finds these engines, as if their package was installed in this folder."""
    information = folder / "shared_system_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: standing-plugin\nVersion: 1.0\n", encoding="utf-8")
    names = {"standing": "engine", "unstartable": "unstartable"}
    points = [f"{name} = shared_system_plugin:{value}" for name, value in names.items()]
    entry = "\n".join(["[streamgauge.engines]", *points, ""])
    (information / "entry_points.txt").write_text(entry, encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    paths = [str(folder), str(Path(__file__).parent), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


engine = StandingReference()
unstartable = UnstartableReference()
