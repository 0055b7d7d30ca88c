"""Systems that stay up between trials: started once, warmed up, and replaced when they died or are not shared.

A new system is warmed up under a fixed load until the CPU time that an event costs is flat: before that its
compiler's progress would be mistaken for capacity.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from streamgauge.engines.base import Engine, Ground, Standing, StandingEngine, Warming
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Ask, Recording, Trial
from streamgauge.model.units import SECOND, format_duration, format_rate
from streamgauge.run.clock import elapsed_ns
from streamgauge.run.launch import Launcher
from streamgauge.run.perform import perform
from streamgauge.run.place import bind, place, usable_cores
from streamgauge.run.stage import pinned
from streamgauge.run.watching import Silence
from streamgauge.stats.flat import flat
from streamgauge.store.durable import make_folder
from streamgauge.workloads.base import Workload

Say = Callable[[str], None]
_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""


@dataclass(slots=True)
class _Warmth:
    """Watches a warm-up: it is over when an event costs what it cost before."""

    limit: int
    costs: list[float] = field(default_factory=list)

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once two stretches in a row cost the same, or the limit is reached."""
        events, used = seconds["acknowledged"], seconds["sut_cpu"]
        self.costs = [
            float(used[i : i + _SPAN].sum()) / done if (done := float(events[i : i + _SPAN].sum())) else math.inf
            for i in range(len(events) % _SPAN, len(events), _SPAN)
        ]
        return flat(self.costs) or seconds.stop * SECOND >= self.limit


@dataclass(frozen=True, slots=True)
class _Thrown:
    """A keeper for seconds that nobody needs; the journals are in the folder."""

    path: Path

    def append(self, seconds: Seconds) -> None:
        """Nothing."""


@dataclass(slots=True)
class _System:
    standing: Standing
    said: dict[str, Any]


class Systems:
    """The systems of a run that stay up, one per engine of the experiment. A context manager: it ends them all."""

    def __init__(self, folder: Path, runtime: Path | None, say: Say) -> None:
        self._folder, self._runtime, self._say = folder, runtime, say
        self._launcher: Launcher | None = None
        self._systems: dict[str, _System] = {}
        self._count = 0

    def of(self, engine: Engine, trial: Trial, workload: Workload) -> Standing | None:
        """A warm system for this trial; None for engines that start one for every trial anyway."""
        if not isinstance(engine, StandingEngine):
            return None
        found = self._systems.get(trial.engine)
        if found is None or not found.standing.alive():
            self._drop(trial.engine)
            found = self._systems[trial.engine] = self._start(engine, trial, workload)
        return found.standing

    def hint(self, engine: Engine, trial: Trial, workload: Workload) -> float:
        """Events per second that its cores could do if each cost what it cost at the end of the warm-up."""
        if self.of(engine, trial, workload) is None:
            return 0.0
        costs = self._systems[trial.engine].said.get("microseconds_per_event") or [0.0]
        cores = max(1, len(place(trial.options).sut))
        return cores * 1e6 / costs[-1] if costs[-1] > 0 else 0.0

    def facts(self, trial: Trial) -> dict[str, Any]:
        """What is said of the system that served a trial."""
        found = self._systems.get(trial.engine)
        return {"warmed": found.said} if found else {}

    def done(self, engine: Engine, trial: Trial, *, intact: bool) -> None:
        """A trial is over. What is not shared, or is not clean, does not serve another."""
        found = self._systems.get(trial.engine)
        if found is None or not isinstance(engine, StandingEngine):
            return
        left = found.standing.left()
        if left:
            self._say(f"{trial.engine} is started anew: {'; '.join(left)}")
        if left or not (intact and engine.warming(trial.options).shared):
            self._drop(trial.engine)

    def _start(self, engine: StandingEngine, trial: Trial, workload: Workload) -> _System:
        self._launcher = self._launcher or Launcher(self._runtime)
        self._count += 1
        folder, placement = self._folder / f"{self._count:03}", place(trial.options)
        make_folder(folder)
        begun = elapsed_ns()
        self._say(f"starting {trial.engine}")
        with pinned(placement.driver):
            # nothing is measured yet: until it is warm it may use all cores, so that its compiler is done sooner
            ground = Ground(folder, placement.sut, usable_cores())
            standing = engine.stand(trial.options, ground, self._launcher)
        system = _System(standing, {"started": round((elapsed_ns() - begun) / SECOND, 1)})
        warming = engine.warming(trial.options)
        if warming.limit:
            self._say(
                f"warming {trial.engine} up at {format_rate(warming.load)} until an event costs the same CPU time"
            )
            system.said |= self._warm(engine, system.standing, _warm_trial(trial, warming), workload, folder)
        bind([process.guard for process in system.standing.processes()], placement.sut)
        return system

    def _warm(
        self, engine: StandingEngine, standing: Standing, trial: Trial, workload: Workload, folder: Path
    ) -> dict[str, Any]:
        watch, place_of_it = _Warmth(trial.limit), folder / "warm-up"
        make_folder(place_of_it)
        recording: Recording = perform(
            trial,
            engine,
            workload,
            watch,
            _Thrown(place_of_it),
            listener=Silence(),
            runtime=self._runtime,
            standing=standing,
            checked=False,
        )
        seconds = recording.seconds.stop
        self._say(f"warm after {format_duration(seconds * SECOND)}")
        costs = [round(cost, 3) for cost in watch.costs if math.isfinite(cost)]
        return {"seconds": seconds, "load": trial.load, "microseconds_per_event": costs, "flat": flat(watch.costs)}

    def _drop(self, name: str) -> None:
        gone = self._systems.pop(name, None)
        if gone is not None:
            gone.standing.stop()

    def close(self) -> None:
        """End all systems and remove the runtime folder."""
        try:
            for name in list(self._systems):
                self._drop(name)
        finally:
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None

    def __enter__(self) -> "Systems":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _warm_trial(trial: Trial, warming: Warming) -> Trial:
    """The same job under a load that is not judged."""
    return replace(
        trial,
        number=0,
        ask=Ask("load", warming.load, "measure"),
        profile=constant(warming.load),
        duration=warming.limit,
        limit=warming.limit,
        stall=warming.limit,
        warmup=0,
        queue_bound=0,
    )
