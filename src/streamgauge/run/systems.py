"""Systems that stay up between trials: started once, warmed up, and replaced when they died or are not shared.

A new system is warmed up under a fixed load until the CPU time that an event costs is flat: before that its
compiler's progress would be mistaken for capacity.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from streamgauge.engines.contract import Engine, Ground, Standing, StandingEngine
from streamgauge.model.facts import WarmUp
from streamgauge.model.trial import INTACT, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, format_duration, format_rate
from streamgauge.processes.clock import elapsed_ns
from streamgauge.processes.control import LineError
from streamgauge.processes.launch import Launcher, LaunchError
from streamgauge.processes.placement import bind, place, usable_cores
from streamgauge.run.trial.perform import perform
from streamgauge.run.trial.processes import pinned
from streamgauge.run.trial.setup import Silence, Unkept, Watcher
from streamgauge.run.trial.supervise import unstarted
from streamgauge.run.warm_up import Reach, Warmth, reach_trial, warm_trial
from streamgauge.store.durable import make_folder
from streamgauge.store.runs import newest_session, sweep_sessions
from streamgauge.workloads.contract import Workload

if TYPE_CHECKING:
    from streamgauge.transports.kafka.transport import Kafka

Say = Callable[[str], None]


@dataclass(slots=True)
class _System:
    standing: Standing
    engine: StandingEngine
    workload: Workload[Any]
    warm_up: WarmUp


class NotStanding(Exception):
    """A system did not start, or failed in its warm-up: the trial that needs it has this outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Systems:
    """The systems of a run that stay up, one per engine of the experiment. A context manager: it ends them all."""

    def __init__(self, folder: Path, runtime: Path | None, say: Say, kafka: "Kafka | None" = None) -> None:
        """``kafka`` is that of the run, where its events travel there: systems are warmed up on it too."""
        self._folder, self._runtime, self._say, self._kafka = folder, runtime, say, kafka
        self._launcher: Launcher | None = None
        self._systems: dict[str, _System] = {}
        self._failed: dict[str, Outcome] = {}
        """Failures that no trial has told yet, by the engine's label."""
        self._reached: dict[str, int] = {}
        """What a growing load found, by the engine's label: a system that it broke is started again."""
        sweep_sessions(folder)  # what a run that was killed could not remove
        self._count = newest_session(folder)

    def of(self, engine: Engine, trial: Trial, workload: Workload[Any]) -> Standing | None:
        """A warm system for this trial; None for engines that start one for every trial anyway.

        Raises ``NotStanding`` if it does not start or its warm-up fails.
        """
        if not isinstance(engine, StandingEngine):
            return None
        if trial.engine in self._failed:
            raise NotStanding(self._failed.pop(trial.engine))
        found = self._systems.get(trial.engine)
        if found is None or not found.standing.alive():
            self._drop(trial.engine)
            found = self._systems[trial.engine] = self._start(engine, trial, workload)
        return found.standing

    def hint(self, engine: Engine, trial: Trial, workload: Workload[Any]) -> float:
        """About what the system's cores carry, by a load that grows; 0 where there is no such system, or it failed.

        The first trial tells of a failure. A crash under this load is an overload far beyond the limit: the system is
        started again, and what was seen before counts.
        """
        try:
            if self.of(engine, trial, workload) is None or not isinstance(engine, StandingEngine):
                return 0.0
        except NotStanding as error:
            self._failed[trial.engine] = error.outcome
            return 0.0
        system, warming = self._systems[trial.engine], engine.warming(trial.options)
        if not warming.limit:
            return 0.0
        self._say(f"Increasing the load until {trial.engine} falls behind, to choose the load of the first trial")
        reach = Reach(engine.trigger(trial.options) / SECOND, max(1, len(place(trial.options).sut)))
        folder = self._folder / f"{self._count:03}" / "reach"
        outcome = self._unjudged(system, reach_trial(trial, warming), reach, folder).outcome
        if outcome.users_fault:
            self._failed[trial.engine] = outcome
        if outcome.ending not in INTACT:
            who = "the load driver failed" if outcome.ending == "driver-failed" else f"{trial.engine} {outcome.ending}"
            self._say(f"{who} under the increasing load: {outcome.detail}. {trial.engine} is started again")
            self._drop(trial.engine)
        found = self._reached[trial.engine] = round(reach.rate)
        self._say(
            f"{trial.engine} falls behind at about {format_rate(found)}"
            if found
            else f"The limit of {trial.engine} is not known yet"
        )
        return float(found)  # as it is kept: a run that goes on, or is asked again, must find the same

    def warm_up(self, trial: Trial) -> WarmUp | None:
        """How the system that served a trial was started and warmed up; None if there is no such system."""
        found, reached = self._systems.get(trial.engine), self._reached.get(trial.engine)
        if found is None and reached is None:
            return None
        return replace(found.warm_up if found else WarmUp(), estimated_limit=reached)

    def done(self, engine: Engine, trial: Trial, *, intact: bool) -> None:
        """A trial is over. What is not shared, or is not clean, does not serve another."""
        found = self._systems.get(trial.engine)
        if found is None or not isinstance(engine, StandingEngine):
            return
        left = found.standing.left()
        if left:
            self._say(
                f"{trial.engine} is stopped and started again, because this was left after the trial: {'; '.join(left)}"
            )
        if left or not (intact and engine.warming(trial.options).shared):
            self._drop(trial.engine)

    def _start(self, engine: StandingEngine, trial: Trial, workload: Workload[Any]) -> _System:
        self._launcher = self._launcher or Launcher(self._runtime)
        self._count += 1
        folder, placement = self._folder / f"{self._count:03}", place(trial.options)
        make_folder(folder)
        begun = elapsed_ns()
        self._say(f"Starting {trial.engine}")
        # nothing is measured yet: until it is warm it may use all cores, so that its compiler is done sooner
        cache = self._kafka.ground.cache if self._kafka else None
        ground = Ground(folder, placement.sut, usable_cores(), cache)
        try:
            with pinned(placement.driver):
                standing = engine.stand(trial.options, ground, self._launcher)
        except (LaunchError, LineError) as error:
            raise NotStanding(unstarted(error)) from error
        took = WarmUp(started=round((elapsed_ns() - begun) / SECOND, 1))
        system = _System(standing, engine, workload, took)
        if engine.warming(trial.options).limit:
            try:
                self._warm_up(system, trial, folder / "warm-up")
            except BaseException:
                standing.stop()
                raise
        bind([process.guard for process in system.standing.processes()], placement.sut)
        return system

    def _warm_up(self, system: _System, trial: Trial, folder: Path) -> None:
        """Warm a new system up. One that fails at this load has failed: no trial would say more."""
        warming = system.engine.warming(trial.options)
        load = format_rate(warming.load)
        self._say(
            f"Warming up {trial.engine} at {load} until the CPU time per event is stable (at most "
            f"{format_duration(warming.limit)})"
        )
        warmth = Warmth(warming.limit, warming.least)
        recording = self._unjudged(system, warm_trial(trial, warming), warmth, folder)
        outcome, seconds = recording.outcome, recording.seconds.stop
        if outcome.ending not in INTACT:
            detail = f"it {outcome.ending} in its warm-up at {load}: {outcome.detail}"
            if outcome.ending == "driver-failed":
                detail = f"in the warm-up of {trial.engine}: {outcome.detail}"
            raise NotStanding(replace(outcome, detail=outcome.detail if outcome.users_fault else detail, unready=True))
        self._say(f"The warm-up took {format_duration(seconds * SECOND)}")
        system.warm_up = replace(
            system.warm_up, seconds=seconds, load=warming.load, cost_us=warmth.cost_us, steady=warmth.steady
        )

    def _unjudged(self, system: _System, trial: Trial, watch: Watcher, folder: Path) -> Recording:
        """A load that is not judged, and what happened under it."""
        make_folder(folder)
        return perform(
            trial,
            system.engine,
            system.workload,
            watch,
            Unkept(folder),
            listener=Silence(),
            runtime=self._runtime,
            standing=system.standing,
            checked=False,
            kafka=self._kafka,
        )

    def release(self, name: str) -> None:
        """End the system of an engine whose search is over."""
        self._failed.pop(name, None)
        self._drop(name)

    def _drop(self, name: str) -> None:
        gone = self._systems.pop(name, None)
        if gone is not None:
            gone.standing.stop()

    def close(self) -> None:
        """End all systems, remove the runtime folder and what is temporary in theirs."""
        try:
            for name in list(self._systems):
                self._drop(name)
        finally:
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None
            sweep_sessions(self._folder)

    def __enter__(self) -> "Systems":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
