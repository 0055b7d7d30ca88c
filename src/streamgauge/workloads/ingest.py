"""Ingestion alone: every purchase straight through, as van Dongen's first pipeline. What a transport and an engine's
way of reading and writing cost, before any work is done on the events."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count
from streamgauge.model.profile import Plan
from streamgauge.workloads.contract import TIME, Answer, Params, Workload
from streamgauge.workloads.data.keys import too_many
from streamgauge.workloads.data.shopping import SCHEMA, Purchases
from streamgauge.workloads.parameters import impossible

OUTPUTS = (("sequence", "int64"), ("max_due", TIME), ("max_ingested", TIME))
"""Columns of an output: the event's number in its stream, when it was due and when it came in."""


class IngestParams(Params):
    """PURCHASES(userID, gemPackID, price, time), handed on as they come."""

    gem_packs: Count = Field(default=100, ge=1, le=10**9, description="number of gem packs: the keys of the records")
    users: Count = Field(default=100_000, ge=1, le=10**9, description="number of users who make purchases")
    distribution: Literal["normal", "uniform", "zipf", "single"] = Field(
        default="normal",
        description="how purchases are distributed over gem packs: normal, uniform, zipf, or single = all on one",
    )

    @model_validator(mode="after")
    def _events_can_be_made(self) -> Self:
        sentence = too_many(self.distribution, self.gem_packs)
        if sentence:
            raise impossible("gem_packs", sentence)
        return self


@dataclass(frozen=True, slots=True)
class EveryEvent:
    """The answer: each event once, by its number. Nothing but the plan decides it."""

    plan: Plan
    origin: int

    def until(self, events: int) -> Answer:
        """The answer if the stream ended after ``events`` events."""
        return self._answer(0, events)

    def windows(self, start: int, stop: int, events: int | None = None) -> Answer:
        """The events that are due in [start, stop), microseconds since the epoch."""
        last = self._number(stop)
        return self._answer(self._number(start), last if events is None else min(last, events))

    def _number(self, moment: int) -> int:
        """Number of the first event that is due at this microsecond since the epoch, or after it."""
        return int(self.plan.count(min(max(moment * 1_000 - self.origin, 0), self.plan.horizon)))

    def _answer(self, first: int, stop: int) -> Answer:
        numbers = np.arange(first, max(first, stop), dtype=np.int64)
        due = self.plan.due_range(first, max(first, stop), 1, origin=self.origin, unit=1_000)
        return {"sequence": numbers, "max_due": due}


def stream(params: dict[str, Any], plan: Plan, seed: int, origin: int) -> Purchases:
    """The purchases of a trial with these resolved parameters."""
    return Purchases(IngestParams.model_construct(**params), plan, seed, origin=origin)


def reference(params: dict[str, Any], plan: Plan, seed: int, origin: int) -> EveryEvent:
    """The answer to those purchases."""
    return EveryEvent(plan, origin)


ingest = Workload(
    name="ingest",
    summary="every purchase is an output, without any computation",
    paper="van Dongen 2018",
    params=IngestParams,
    dimensions=(
        Dimension("gem_packs", "count", "higher", "number of keys that purchases have"),
        Dimension("users", "count", "higher", "number of users in the purchases"),
    ),
    schema=SCHEMA,
    outputs=OUTPUTS,
    identity=("sequence",),
    streams=("purchases",),
    stream=stream,
    reference=reference,
)
