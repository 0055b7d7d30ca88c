"""Engines of another package. The system of one stays up between trials: a real process beside the reference engine.
It fails where a test says so: at its start, in its warm-up, or under the growing load that looks for its limit.

The other one starts a system for every trial, and this system never becomes ready.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from pydantic import Field

from streamgauge.engines.contract import Deployment, Endpoints, Ground, Options, Standing, Warming
from streamgauge.engines.reference.engine import ReferenceDeployment, ReferenceEngine, ReferenceOptions, reference
from streamgauge.model.facts import EngineFacts
from streamgauge.model.options import Duration
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Child, LineReady, Running, Starts

MARK = "a system that stays up"
_STAYS = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
_FAILS = "import sys\nprint('its configuration names no such cluster', flush=True)\nsys.exit(3)"
CRASH = SECOND
"""Time under load until it crashes, where it is told to."""


class StandingOptions(ReferenceOptions):
    """Those of the reference engine, the length of the warm-up, and where it fails."""

    warm_limit: Duration = Field(default=4 * SECOND, ge=0)
    fails: str = Field(default="", description="start, warm-up, growing or describe")


class StandingReference(ReferenceEngine):
    """The engine."""

    name = "standing"
    summary = "the reference engine beside a process that stays up"
    options: type[Options] = StandingOptions

    def stand(self, options: dict[str, Any], ground: Ground, starts: Starts) -> "StandingSystem":
        """Start the process that stays up."""
        script = _FAILS if options["fails"] == "start" else _STAYS
        child = Child("standing system", (sys.executable, "-c", script, MARK), cores=ground.cores, ready=LineReady())
        return StandingSystem(starts.start(child, ground.folder), starts)

    def warming(self, options: dict[str, Any]) -> Warming:
        """A short warm-up."""
        changed = {"crash_after": CRASH} if options["fails"] == "warm-up" else {}
        return Warming(100_000.0, options["warm_limit"], options=changed)


class StandingSystem(Standing):
    """The process that stays up; each trial is a reference engine beside it."""

    def __init__(self, running: Running, starts: Starts) -> None:
        self._running, self._starts = running, starts

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running.alive()

    def processes(self) -> tuple[Running, ...]:
        """The one that stays up."""
        return (self._running,)

    @contextmanager
    def serve(self, trial: Trial, endpoints: Endpoints) -> Iterator[Deployment]:
        """A reference engine for this trial."""
        fails = trial.options["fails"]
        crash = {"crash_after": 2 * CRASH} if fails == "growing" and trial.profile.shape == "steps" else {}
        with reference.deploy(replace(trial, options=trial.options | crash), endpoints, self._starts) as deployment:
            yield Told(
                *deployment.processes(), facts=EngineFacts("standing", settings={"standing": standing()}), fails=fails
            )

    def left(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def stop(self) -> None:
        """End the process."""
        self._running.stop()


class Told(ReferenceDeployment):
    """A deployment that tells how many systems stay up, or cannot tell anything."""

    def __init__(self, running: Running, *, facts: EngineFacts, fails: str) -> None:
        super().__init__(running, facts)
        self._fails = fails

    def describe(self) -> EngineFacts:
        """How many systems stay up."""
        if self._fails == "describe":
            raise ConnectionError("its page of settings does not answer")
        return super().describe()


class UnstartableReference(ReferenceEngine):
    """An engine that starts a system for every trial, whose process ends before it is ready."""

    name = "unstartable"
    summary = "a process for every trial that ends before it is ready"

    @contextmanager
    def deploy(self, trial: Trial, endpoints: Endpoints, starts: Starts) -> Iterator[Deployment]:
        """Start the process that ends with exit code 3."""
        child = Child("system of a trial", (sys.executable, "-c", _FAILS), cores=endpoints.cores, ready=LineReady())
        running = starts.start(child, endpoints.folder)
        yield ReferenceDeployment(running, self.describe(trial.options))


def standing() -> int:
    """How many processes of this kind are below the controller."""
    return sum(MARK in process.cmdline() for process in psutil.Process(os.getpid()).children(recursive=True))


def installed(folder: Path) -> dict[str, str]:
    """The environment of a command that finds these engines, as if their package was installed in this folder."""
    information = folder / "standing_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: standing-plugin\nVersion: 1.0\n", encoding="utf-8")
    entry = "[streamgauge.engines]\nstanding = standing_plugin:engine\nunstartable = standing_plugin:unstartable\n"
    (information / "entry_points.txt").write_text(entry, encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    paths = [str(folder), str(Path(__file__).parent), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


engine = StandingReference()
unstartable = UnstartableReference()
