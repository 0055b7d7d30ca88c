"""The systems under test of a run: started once, warmed up, and replaced when they ended or are not shared.

A new system is warmed up until the CPU time that an event costs is stable, under a fixed load or under one that grows
to find the limit: before that, the progress of its compiler would be mistaken for capacity.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import cast

from streamgauge.engines.contract import RealEngine, System
from streamgauge.model.facts import WarmUp
from streamgauge.model.layout import Layout
from streamgauge.model.trial import INTACT, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, duration_text, format_rate
from streamgauge.processes.clock import elapsed_ns
from streamgauge.processes.control import ControlError, ControlRefused
from streamgauge.processes.launch import Launcher, LaunchError, LocalHost
from streamgauge.processes.placement import controller_pinned, usable_cores
from streamgauge.run.trial.perform import perform
from streamgauge.run.trial.setup import DiscardingRecorder, EarlyStop, NullObserver, TrialSetup
from streamgauge.run.trial.supervise import not_started
from streamgauge.run.warm_up import FIXED_NS, WarmUpWatch, growing_load_probe, growing_load_trial, warm_up_trial
from streamgauge.store.durable import make_folder
from streamgauge.store.runs import newest_session, sweep_sessions

Key = tuple[str, Layout]
"""The label of the engine in the experiment, and the layout."""


@dataclass(slots=True)
class _RunningSystem:
    """A system that is up, and how it was started and warmed up."""

    system: System
    host: LocalHost
    stack: ExitStack
    warm_up: WarmUp
    warmed: bool = False

    def bind(self) -> None:
        """Bind it to the cores of the system under test."""
        self.host.pin([process for group in self.system.processes().values() for process in group])

    def is_warm(self, seconds: int, load: float, cost_us: tuple[float, ...], steady: bool | None = None) -> None:
        """Its warm-up is over: bind it to its cores, and record how it was warmed up."""
        self.bind()
        self.warmed = True
        self.warm_up = replace(self.warm_up, seconds=float(seconds), load=load, cost_us=cost_us, steady=steady)


class SystemFailed(Exception):
    """A system did not start, or failed in its warm-up: the trial that needs it has this outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class SystemPool:
    """The systems of a run that are up, by engine and layout. A context manager: it ends them all."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is where the systems have their logs and working files."""
        self._folder = folder
        self._launcher: Launcher | None = None
        self._systems: dict[Key, _RunningSystem] = {}
        self._failed: dict[Key, Outcome] = {}
        """Failures that no trial has reported yet."""
        self._limits: dict[Key, int] = {}
        """What a growing load found. A system that it broke is started again."""
        sweep_sessions(folder)  # what a run that was killed could not remove
        self._count = newest_session(folder)

    def get(self, setup: TrialSetup) -> System:
        """A system for this trial, warm if its engine can be warmed up.

        Raises SystemFailed if it does not start or its warm-up fails.
        """
        key = _key(setup)
        if key in self._failed:
            raise SystemFailed(self._failed.pop(key))
        return self._running(setup, warm=True).system

    def _running(self, setup: TrialSetup, *, warm: bool) -> _RunningSystem:
        """The system of this trial: the one that is up, or a new one, warm if it is required and has a warm-up."""
        key = _key(setup)
        found = self._systems.get(key)
        if found is None or not found.system.alive():
            self._stop(key)
            found = self._systems[key] = self._start(setup)
        if warm and setup.traits.warm_limit_ns and not found.warmed:
            try:
                self._warm_up(found, setup, self._folder / f"{self._count:03}" / "warm-up")
            except BaseException:
                self._stop(key)
                raise
        return found

    def estimate_limit(self, setup: TrialSetup) -> float:
        """About the load that the cores of the system can process, by a load that grows; 0 if it has no warm-up.

        The growing load is also the warm-up of a new system. The first trial reports a failure. A crash under this load
        is an overload far beyond the limit: the system is started again, and what was seen before counts.
        """
        traits, name, key = setup.traits, setup.trial.engine, _key(setup)
        if not traits.warm_limit_ns:
            return 0.0
        try:
            running = self._running(setup, warm=False)
            found = self._grow(running, setup, self._folder / f"{self._count:03}" / "reach")
        except SystemFailed as error:
            self._stop(key)
            self._failed[key] = error.outcome
            return 0.0
        self._limits[key] = round(found)
        say = setup.context.observer.message
        say(f"{name} falls behind at about {format_rate(found)}" if found else f"The limit of {name} is not known yet")
        return float(self._limits[key])  # as it is stored: a run that is resumed must find the same

    def _grow(self, running: _RunningSystem, setup: TrialSetup, folder: Path) -> float:
        """Increase the load until the system falls behind. Raises SystemFailed if it fails before the load grows."""
        traits, name, say = setup.traits, setup.trial.engine, setup.context.observer.message
        doing = "Increasing" if running.warmed else f"Warming up {name} and increasing"
        say(f"{doing} the load until {name} falls behind, to choose the load of the first trial")
        trial = growing_load_trial(setup.trial, traits)
        growing = setup.engine.traits(type(setup.options).from_resolved(trial.options))
        probe = growing_load_probe(growing, len(setup.placement.sut), running.bind, warm=running.warmed)
        recording = self._unjudged(running, setup, trial, probe, folder)
        outcome, lasted = recording.outcome, recording.seconds.stop
        if outcome.ending not in INTACT:
            if outcome.users_fault or lasted * SECOND <= FIXED_NS:
                raise _warm_up_failed(setup, outcome)
            who = "the load driver failed" if outcome.ending == "driver-failed" else f"{name} {outcome.ending}"
            say(f"{who} under the increasing load: {outcome.detail}. {name} is started again")
            self._stop(_key(setup))
        elif not running.warmed:
            running.is_warm(lasted, traits.warm_load, probe.finite_costs)
        return probe.estimate

    def warm_up_facts(self, setup: TrialSetup) -> WarmUp | None:
        """How the system of a trial was started and warmed up; None if its engine has no warm-up."""
        found, limit = self._systems.get(_key(setup)), self._limits.get(_key(setup))
        known = found.warm_up if found and found.warmed else None
        if limit is None:
            return known
        return replace(known or WarmUp(), estimated_limit=float(limit))

    def finished(self, setup: TrialSetup, *, intact: bool) -> None:
        """A trial is over. A system that is not shared, or is not clean, does not serve another."""
        found = self._systems.get(_key(setup))
        if found is None:
            return
        left = found.system.leftovers()
        if left:
            name = setup.trial.engine
            setup.context.observer.message(
                f"{name} is stopped and started again, because the trial left this running: {'; '.join(left)}"
            )
        if left or not (intact and setup.traits.shared):
            self._stop(_key(setup))

    def release(self, label: str) -> None:
        """End the systems of an engine whose search is over."""
        for key in [key for key in {*self._systems, *self._failed} if key[0] == label]:
            self._failed.pop(key, None)
            self._stop(key)

    def _start(self, setup: TrialSetup) -> _RunningSystem:
        engine, traits, placement = cast(RealEngine, setup.engine), setup.traits, setup.placement
        limits, observer = setup.context.limits, setup.context.observer
        self._launcher = self._launcher or Launcher(limits.runtime)
        self._count += 1
        folder = self._folder / f"{self._count:03}"
        make_folder(folder)
        began = elapsed_ns()
        if traits.warm_limit_ns:
            observer.message(f"Starting {setup.trial.engine}")
        # nothing is measured yet: until it is warm it may use all cores, so that its compiler is done sooner
        boot = usable_cores() if traits.warm_limit_ns else placement.sut
        name = setup.trial.transport.name
        host = LocalHost(self._launcher, folder, limits.cache, placement.sut, boot, observer.message, name)
        stack = ExitStack()
        try:
            with controller_pinned(placement.driver):
                system = stack.enter_context(engine.start(setup.layout, setup.options, host))
        except (LaunchError, ControlError, ControlRefused) as error:
            stack.close()
            raise SystemFailed(not_started(error)) from error
        return _RunningSystem(system, host, stack, WarmUp(started=round((elapsed_ns() - began) / SECOND, 1)))

    def _warm_up(self, running: _RunningSystem, setup: TrialSetup, folder: Path) -> None:
        """Warm a new system up. One that fails at this load has failed: no trial would show more."""
        traits, name, observer = setup.traits, setup.trial.engine, setup.context.observer
        observer.message(
            f"Warming up {name} at {format_rate(traits.warm_load)} until the CPU time per event is stable (at most "
            f"{duration_text(traits.warm_limit_ns)})"
        )
        watch = WarmUpWatch(traits.warm_limit_ns, traits.warm_min_ns)
        recording = self._unjudged(running, setup, warm_up_trial(setup.trial, traits), watch, folder)
        if recording.outcome.ending not in INTACT:
            raise _warm_up_failed(setup, recording.outcome)
        seconds = recording.seconds.stop
        observer.message(f"The warm-up took {duration_text(seconds * SECOND)}")
        running.is_warm(seconds, traits.warm_load, watch.finite_costs, watch.steady)

    @staticmethod
    def _unjudged(
        running: _RunningSystem, setup: TrialSetup, trial: Trial, early_stop: EarlyStop, folder: Path
    ) -> Recording:
        """A load that is not judged, and what happened under it."""
        make_folder(folder)
        return perform(
            replace(
                setup,
                system=running.system,
                options=type(setup.options).from_resolved(trial.options),
                trial=trial,
                early_stop=early_stop,
                recorder=DiscardingRecorder(folder),
                context=replace(setup.context, observer=NullObserver()),
                check_outputs=False,
            )
        )

    def _stop(self, key: Key) -> None:
        gone = self._systems.pop(key, None)
        if gone is not None:
            gone.stack.close()

    def close(self) -> None:
        """End all systems, remove the runtime folder and what is temporary in their folders."""
        try:
            for key in list(self._systems):
                self._stop(key)
        finally:
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None
            sweep_sessions(self._folder)

    def __enter__(self) -> "SystemPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _key(setup: TrialSetup) -> Key:
    return setup.trial.engine, setup.layout


def _warm_up_failed(setup: TrialSetup, outcome: Outcome) -> SystemFailed:
    """The failure of a system that failed in its warm-up."""
    detail = f"it {outcome.ending} in its warm-up at {format_rate(setup.traits.warm_load)}: {outcome.detail}"
    if outcome.ending == "driver-failed":
        detail = f"in the warm-up of {setup.trial.engine}: {outcome.detail}"
    return SystemFailed(replace(outcome, detail=outcome.detail if outcome.users_fault else detail, unready=True))
