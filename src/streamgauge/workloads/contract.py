"""What every workload says of itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from streamgauge.model.experiment import Dimension
from streamgauge.model.profile import Plan

Columns = dict[str, npt.NDArray[np.int32] | npt.NDArray[np.int64]]
Answer = dict[str, npt.NDArray[np.int64]]

TIME = "timestamp[us, tz=UTC]"
"""How columns that are moments are written in ``schema`` and ``outputs``."""


class Params(BaseModel):
    """Parameters of a workload: strict, frozen, with defaults from the papers."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EventStream(Protocol):
    """A stream of events, any part of which can be had at once."""

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number mod ``stride`` is ``offset``."""


class ReferenceAnswer(Protocol):
    """What an engine must answer, of no engine's making. Times in microseconds since the epoch."""

    def until(self, events: int) -> Answer:
        """The answer if the stream ended after ``events`` events."""

    def windows(self, start: int, stop: int, events: int | None = None) -> Answer:
        """The windows that begin in [start, stop), without what comes before them."""


@dataclass(frozen=True)
class Workload:
    """A use case. ``dimensions`` name parameters of ``params`` that can be made harder."""

    name: str
    summary: str
    paper: str
    params: type[Params]
    dimensions: tuple[Dimension, ...]
    schema: tuple[tuple[str, str], ...] = ()
    """Columns of an event, (name, Arrow type), in their order; empty where events are not made yet."""
    outputs: tuple[tuple[str, str], ...] = ()
    """Columns of an output in the same form, the same for every engine; empty where nobody answers yet."""
    identity: tuple[str, ...] = ("window_start", "gem_pack_id")
    """The columns that tell its outputs apart; ``sequence`` alone where every event is an output of its own."""
    streams: tuple[str, ...] = ()
    """Names of its event streams."""
    stream: Callable[[dict[str, Any], Plan, int, int], EventStream] | None = None
    """The events of resolved parameters, a plan, a seed and the moment (ns since the epoch) the load begins."""
    reference: Callable[[dict[str, Any], Plan, int, int], ReferenceAnswer] | None = None
    """The answer to the same."""

    @property
    def one_to_one(self) -> bool:
        """Whether every event is one output, known by the event's number: there are no windows to wait for."""
        return self.identity == ("sequence",)

    def rate(self, params: dict[str, Any]) -> float | None:
        """Events per second where keys × frequency say it (T §5); None where the load is free."""
        if "keys" in params and "frequency" in params:
            return float(params["keys"] * params["frequency"])
        return None

    def work(self, params: dict[str, Any]) -> float:
        """Work of one event against the cheapest setting: the copies that overlapping windows make of it."""
        if params.get("slide"):
            return float(max(1.0, params["window"] / params["slide"]))
        return 1.0
