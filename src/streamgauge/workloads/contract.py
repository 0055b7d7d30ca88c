"""The contract of a workload: its streams of events, the outputs that are expected, and its parameters."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Params
from streamgauge.model.profile import LoadProfile, Plan, constant, scaled
from streamgauge.model.streams import MAX_DUE, Schema
from streamgauge.model.units import SECOND
from streamgauge.workloads.parameters import Sensors, Windowed

Columns = Mapping[str, npt.NDArray[Any]]
"""Rows as one array for each column. Moments are whole microseconds since 1970."""

SEQUENCE = "sequence"
"""The column with the number of an event in its stream."""
EARLY_MAX_DUE = "early_max_due"
"""A column of reference results: ``max_due`` of a row that a job emits before its window is complete."""
STREAM = "stream"
"""The column with the name of the stream of an event, where outputs of several streams have numbers."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of events."""

    name: str
    schema: Schema
    key: str | None = None
    """The column with the key of an event; None: events have no key."""
    share: float = 1.0
    """Share of the load. The shares of all streams add up to 1; 0: the job writes this stream itself."""
    numbered: bool = False
    """Whether outputs contain the numbers of these events, so that a job needs them in a column ``sequence``."""


@dataclass(frozen=True, slots=True)
class OutputContract:
    """What every engine must output."""

    schema: Schema
    identity: tuple[str, ...]
    """The columns that identify a row of the reference result."""
    window_column: str | None = "window_end"
    """The column that identifies a window result; None: every row is a separate result."""
    tolerance: float = 1e-9
    """How far a float may be from the reference result, as a share of it. All other values must be equal."""
    digested: tuple[str, ...] = ()
    """Columns of text of which the reference result has the digests (``stats/digests.py``): the texts of a trial could
    be larger than the memory."""

    @property
    def numbered(self) -> bool:
        """Whether outputs are identified by the number of an event: no window has to close.

        Without the name of the stream, an output is made from the events of all streams with its number.
        """
        return self.window_column is None and self.identity in ((SEQUENCE,), (SEQUENCE, STREAM))


class Stages(NamedTuple):
    """A parameter that cuts a pipeline: with value k, the pipeline ends after stage k and outputs what it has."""

    parameter: str
    names: tuple[str, ...]
    """What each stage does, from 0 on. Stage 0 is the baseline."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What decides the events of a trial beside the parameters."""

    plans: Mapping[str, Plan]
    """When each event of each stream is due."""
    seed: int
    origin_ns: int
    """The moment at which the load begins, in nanoseconds since 1970."""


class EventSource(Protocol):
    """The events of one stream. Any range can be made without those before it."""

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``."""


class ReferenceResult(Protocol):
    """The expected outputs of a trial, computed without the engine."""

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""


def rows_of_job(rows: Columns, *, early: bool) -> Columns:
    """The expected rows as a job emits them: ``early`` is before their window is complete.

    Such a row is made from fewer events, so its latest event is another one. All other columns are the same.
    """
    moments = {MAX_DUE: rows[EARLY_MAX_DUE]} if early and EARLY_MAX_DUE in rows else {}
    return {name: column for name, column in rows.items() if name != EARLY_MAX_DUE} | moments


P = TypeVar("P", bound=Params)


@runtime_checkable
class Workload(Protocol[P]):
    """A use case."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def paper(self) -> str: ...

    @property
    def params(self) -> type[P]: ...

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The parameters that can be made harder, and the direction in which each gets harder."""

    @property
    def stages(self) -> Stages | None:
        """The parameter that cuts the pipeline after each of its stages; None: it has none."""

    def streams(self, params: P) -> tuple[Stream, ...]:
        """The streams of events; none if streamgauge cannot make the events of this workload."""

    def output(self, params: P) -> OutputContract: ...

    def events(self, params: P, stream: str, inputs: Inputs) -> EventSource:
        """The events of one stream."""

    def reference(self, params: P, inputs: Inputs) -> ReferenceResult | None:
        """The expected outputs; None: outputs cannot be checked. Nothing is computed before ``until`` is called."""

    def rate(self, params: P) -> float | None:
        """Events per second that the parameters imply; None: the load is free."""

    def work(self, params: P) -> float:
        """Work of one event in relation to that of the cheapest parameters, for simulated engines."""


class WorkloadBase(Generic[P]):
    """The usual load and work of a workload, which follow from its sensors and windows."""

    name: str
    summary: str
    paper: str
    params: type[P]
    dimensions: tuple[Dimension, ...]
    stages: Stages | None = None

    def rate(self, params: P) -> float | None:
        """Keys × frequency, if the parameters have them (Theodolite §5)."""
        return float(params.keys * params.frequency) if isinstance(params, Sensors) else None

    def work(self, params: P) -> float:
        """How many overlapping windows contain an event."""
        return max(1.0, params.window / params.period) if isinstance(params, Windowed) else 1.0


def profiles_of(streams: Iterable[Stream], profile: LoadProfile) -> dict[str, LoadProfile]:
    """The load of each stream: the load of the trial times the share of the stream."""
    shares = {stream.name: stream.share for stream in streams if stream.share}
    if not math.isclose(sum(shares.values()), 1.0):
        raise ValueError(
            f"the shares of the streams {', '.join(shares)} must add up to 1, not {sum(shares.values()):g}"
        )
    return {name: _scaled(profile, share) for name, share in shares.items()}


def plans_of(streams: Iterable[Stream], profile: LoadProfile, horizon: int) -> dict[str, Plan]:
    """When each event of each stream is due, for the first ``horizon`` nanoseconds of the load."""
    return {name: each.plan(horizon) for name, each in profiles_of(streams, profile).items()}


def _scaled(profile: LoadProfile, share: float) -> LoadProfile:
    return profile if share == 1.0 else scaled(profile, lambda rate: rate * share)


def has_reference(workload: Workload[P], params: P) -> bool:
    """Whether the outputs of the workload can be checked."""
    streams = workload.streams(params)
    if not streams:
        return False
    inputs = Inputs(plans_of(streams, constant(1.0), SECOND), seed=0, origin_ns=0)
    return workload.reference(params, inputs) is not None
