"""A throw-away workload with two streams: purchases and ads of each gem pack, counted in tumbling windows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from streamgauge.model.options import Duration, Share
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import (
    Columns,
    EventSource,
    Inputs,
    OutputContract,
    ReferenceResult,
    Stream,
    WorkloadBase,
)
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.parameters import WINDOW, PurchaseParams, Windowed

ADS: Schema = (Column("gem_pack_id", "int32"), Column("due", TIME))
COUNTED: Schema = (
    Column("gem_pack_id", "int32"),
    Column("window_start", TIME),
    Column("window_end", TIME),
    Column("purchases", "int64"),
    Column("ads", "int64"),
)


class TwoStreamParams(PurchaseParams, Windowed):
    """Purchases and ads per gem pack and window."""

    window: Duration = Field(default=10**9, gt=0, description="length of the event-time window")
    ads: Share = Field(default=0.25, ge=0, le=1, description="share of the load that is ads")


@dataclass(frozen=True)
class Ads:
    """Ads for the gem packs of another stream of purchases."""

    purchases: Purchases

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """The gem packs and due times of these events."""
        made = self.purchases.events(start, stop, stride, offset)
        return {name: made[name] for name, _ in ADS}


@dataclass(frozen=True)
class PackCounts:
    """How many purchases and ads each gem pack has in each window."""

    sources: Mapping[str, EventSource]
    window_us: int
    packs: int

    def until(self, events: Mapping[str, int]) -> Columns:
        """The counts if each stream ended after so many events."""
        codes = {
            name: made["due"] // self.window_us * self.packs + made["gem_pack_id"]
            for name, source in self.sources.items()
            for made in [source.events(0, events[name])]
        }
        found, place = np.unique(np.concatenate([*codes.values()]), return_inverse=True)
        parts = np.split(place, np.cumsum([len(each) for each in codes.values()])[:-1])
        counts = {name: np.bincount(part, minlength=len(found)) for name, part in zip(codes, parts, strict=True)}
        return {"window_start": found // self.packs * self.window_us, "gem_pack_id": found % self.packs, **counts}


class TwoStreams(WorkloadBase[TwoStreamParams]):
    """One output per window and gem pack, of two streams."""

    name = "two-streams"
    summary = "purchases and ads of each gem pack per tumbling window"
    paper = "none"
    params = TwoStreamParams
    dimensions = (WINDOW,)

    def streams(self, params: TwoStreamParams) -> tuple[Stream, ...]:
        """Purchases and ads."""
        ads = Stream("ads", ADS, key="gem_pack_id", share=params.ads)
        return replace(PURCHASE_STREAM, share=1 - params.ads), ads

    def output(self, params: TwoStreamParams) -> OutputContract:
        """Counts per window and gem pack."""
        return OutputContract(COUNTED, identity=("window_start", "gem_pack_id"))

    def events(self, params: TwoStreamParams, stream: str, inputs: Inputs) -> EventSource:
        """Each stream has separate random numbers."""
        number = ("purchases", "ads").index(stream)
        purchases = Purchases(params, inputs.plans[stream], inputs.seed, number, inputs.origin_ns)
        return Ads(purchases) if stream == "ads" else purchases

    def reference(self, params: TwoStreamParams, inputs: Inputs) -> ReferenceResult:
        """The counts of these events."""
        sources = {name: self.events(params, name, inputs) for name in ("purchases", "ads")}
        return PackCounts(sources, params.window // 1_000, params.gem_packs)


two_streams = TwoStreams()
