"""What one trial needs: its definition, its engine and workload, and who watches it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import SecretStr

from streamgauge.engines.contract import Engine, System, Traits
from streamgauge.model.layout import Layout, Placement
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.options import Options, Params
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial
from streamgauge.processes.clock import VirtualPace
from streamgauge.workloads.contract import Workload

if TYPE_CHECKING:
    from streamgauge.run.systems import SystemPool
    from streamgauge.transports.contract import OpenTransport


class EarlyStop(Protocol):
    """Decides when a trial may stop."""

    @property
    def silence(self) -> int:
        """Nanoseconds without an acknowledgement, if the trial was extended until the next one came; else 0."""

    @property
    def stalled(self) -> bool:
        """Whether none came within the limit on stalls."""

    def due(self, stop: int) -> bool:
        """Whether it must check the trial after so many seconds."""

    def decided(self, seconds: Seconds) -> bool:
        """Whether the trial may stop now."""


class Recorder(Protocol):
    """Where the seconds of a growing trial are stored; its folder also takes logs and journals."""

    @property
    def path(self) -> Path: ...

    def append(self, seconds: Seconds) -> object: ...


@dataclass(frozen=True, slots=True)
class DiscardingRecorder:
    """A recorder for seconds that are not needed later; the journals are in its folder."""

    path: Path

    def append(self, seconds: Seconds) -> None:
        """Nothing is stored."""


class Observer(Protocol):
    """Is informed about the progress of a run, and returns nothing."""

    def message(self, text: str) -> None:
        """Something happens that takes time in addition to the trials."""

    def trial_started(self, trial: Trial, expected_trials: int) -> None:
        """A trial starts; about ``expected_trials`` are expected in total."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """The newest seconds of the running trial."""

    def trial_judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """A trial is over and stored."""


class NullObserver:
    """An observer that does nothing."""

    def message(self, text: str) -> None:
        """Do nothing."""

    def trial_started(self, trial: Trial, expected_trials: int) -> None:
        """Do nothing."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Do nothing."""

    def trial_judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What the user allows and has: nanoseconds for all trials together (None: no limit), folders and secrets."""

    budget: int | None = None
    pace: VirtualPace = VirtualPace()
    runtime: Path | None = None
    """Where sockets go, normally $XDG_RUNTIME_DIR as the command line read it."""
    cache: Path = Path()
    """The user's cache of downloaded files."""
    secrets: Mapping[str, SecretStr] = field(default_factory=dict)
    """Secrets that the command line took out of the environment."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run lends to its trials."""

    limits: RunLimits = RunLimits()
    observer: Observer = NullObserver()
    transport: "OpenTransport | None" = None
    """None: every engine of the run is simulated."""
    systems: "SystemPool | None" = None
    """Where the systems of real engines come from."""


@dataclass(frozen=True, slots=True)
class TrialSetup:
    """One trial with everything that runs it."""

    trial: Trial
    engine: Engine
    options: Options
    workload: Workload[Any]
    params: Params
    traits: Traits
    layout: Layout
    early_stop: EarlyStop
    recorder: Recorder
    context: RunContext = RunContext()
    placement: Placement = Placement()
    system: System | None = None
    check_outputs: bool = True
    """Otherwise the trial has no drain phase and its outputs are not compared."""
    work: float = 1.0
    """Work of one event relative to that of the experiment's own parameters, for simulated engines."""
    driver_changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the specification of load drivers that differ, for tests of their supervision."""
