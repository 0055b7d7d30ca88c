"""Only ingestion: every purchase is passed through, as in van Dongen's first pipeline. It shows what a transport and
the reading and writing of an engine cost, before any work is done on the events."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamgauge.model import papers
from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column
from streamgauge.workloads.contract import (
    SEQUENCE,
    Columns,
    EventSource,
    Inputs,
    OutputContract,
    ReferenceResult,
    Stream,
    WorkloadBase,
)
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.parameters import GEM_PACKS, USERS, PurchaseParams

OUTPUT = OutputContract(
    schema=(Column(SEQUENCE, "int64"), Column("max_due", TIME), Column("max_ingested", TIME)),
    identity=(SEQUENCE,),
    window_column=None,
)
"""The number of an event in its stream, when it was due and when it was ingested."""


class IngestParams(PurchaseParams):
    """PURCHASES(userID, gemPackID, price, time), passed on as they come."""


@dataclass(frozen=True, slots=True)
class PassThroughResult:
    """Each event of one stream once, by its number. Only the plan decides it."""

    stream: str
    plan: Plan
    origin: int

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if the stream ended after so many events."""
        count = events[self.stream]
        due = self.plan.due_range(0, count, 1, origin=self.origin, unit=1_000)
        return {SEQUENCE: np.arange(count, dtype=np.int64), "max_due": due}


class Ingest(WorkloadBase[IngestParams]):
    """One stream of purchases, and one output for each of them."""

    name = "ingest"
    summary = "every purchase is an output, without any computation"
    paper = papers.VAN_DONGEN
    params = IngestParams
    dimensions = (GEM_PACKS, USERS)

    def streams(self, params: IngestParams) -> tuple[Stream, ...]:
        """The purchases, with their numbers."""
        return (replace(PURCHASE_STREAM, numbered=True),)

    def output(self, params: IngestParams) -> OutputContract:
        """Each event once."""
        return OUTPUT

    def events(self, params: IngestParams, stream: str, inputs: Inputs) -> EventSource:
        """The purchases of a trial."""
        return Purchases(params, inputs.plans[stream], inputs.seed, origin=inputs.origin_ns)

    def reference(self, params: IngestParams, inputs: Inputs) -> ReferenceResult:
        """The numbers of these purchases."""
        return PassThroughResult(PURCHASE_STREAM.name, inputs.plans[PURCHASE_STREAM.name], inputs.origin_ns)


ingest = Ingest()
