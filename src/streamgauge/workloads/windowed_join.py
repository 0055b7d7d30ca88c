"""Karimov's windowed join: the purchases of gem packs that the user has seen an ad for in the same window."""

from dataclasses import replace
from typing import Self

from pydantic import Field, model_validator

from streamgauge.model import papers
from streamgauge.model.options import Duration, Share
from streamgauge.model.streams import TIME, Column
from streamgauge.workloads.contract import EventSource, Inputs, OutputContract, ReferenceResult, Stream, WorkloadBase
from streamgauge.workloads.data.offers import Offers, offer_problem, selectivity_of, share_of_ads
from streamgauge.workloads.data.random import stream_state
from streamgauge.workloads.data.shopping import AD_STREAM, PURCHASE_STREAM, Ads, Purchases
from streamgauge.workloads.parameters import (
    GEM_PACKS,
    SLIDE,
    USERS,
    WINDOW,
    PurchaseParams,
    Sliding,
    invalid_combination,
)
from streamgauge.workloads.references.joins import JoinedPairs

OUTPUT = OutputContract(
    schema=(
        Column("purchase", "int64"),
        Column("ad", "int64"),
        Column("user_id", "int32"),
        Column("gem_pack_id", "int32"),
        Column("price", "int32"),
        Column("window_start", TIME),
        Column("window_end", TIME),
        Column("max_due", TIME),
        Column("max_ingested", TIME),
    ),
    identity=("window_start", "purchase", "ad"),
)
"""The numbers of both events in their streams, what was bought, and the moments of the newest event.

The newest event is that of the window with this user and gem pack, of either stream (Karimov §IV-A: both tuples of a
pair have the event-time of their window, and the output has the later one). A job that emits a pair before its window
is complete does not know it, and uses the later of the two events.
"""

_OFFERS = 2
"""Which random words place matches, beside those of the purchases (0) and of the ads (1)."""


class WindowedJoinParams(PurchaseParams, Sliding):
    """PURCHASES and ADS(userID, gemPackID, time), joined on user and gem pack within a window [window, slide]."""

    window: Duration = Field(default=8 * 10**9, gt=0, description="length of the event-time window")
    slide: Duration = Field(default=4 * 10**9, gt=0, description="time from one window to the next")
    ads: Share = Field(default=0.5, ge=0.001, le=0.999, description="share of the load that is ads, in steps of 0.01%")
    selectivity: Share = Field(
        default=0.01, ge=1e-6, le=1, description="share of the purchases of a window that find an ad in it"
    )

    def offers(self, seed: int) -> Offers:
        """Which purchases find an ad."""
        state = stream_state(seed, _OFFERS)
        return Offers(selectivity_of(self.selectivity), share_of_ads(self.ads), self.users, state)

    @model_validator(mode="after")
    def _there_are_enough_ads(self) -> Self:
        key, problem = offer_problem(self.selectivity, self.ads, self.users)
        if problem:
            raise invalid_combination(key, problem)
        return self


class WindowedJoin(WorkloadBase[WindowedJoinParams]):
    """Two streams, and one output per window and pair of a purchase and an ad with the same user and gem pack."""

    name = "windowed-join"
    summary = "purchases with the ads that the user saw for them in the same window"
    paper = papers.KARIMOV
    params = WindowedJoinParams
    dimensions = (WINDOW, SLIDE, GEM_PACKS, USERS)

    def streams(self, params: WindowedJoinParams) -> tuple[Stream, ...]:
        """Purchases and ads, both with the numbers of their events."""
        ads = float(share_of_ads(params.ads))
        return replace(PURCHASE_STREAM, share=1 - ads, numbered=True), replace(AD_STREAM, share=ads, numbered=True)

    def output(self, params: WindowedJoinParams) -> OutputContract:
        """A row per window and pair."""
        return OUTPUT

    def events(self, params: WindowedJoinParams, stream: str, inputs: Inputs) -> EventSource:
        """The events of one of the streams."""
        return self._ads(params, inputs) if stream == AD_STREAM.name else self._purchases(params, inputs)

    def reference(self, params: WindowedJoinParams, inputs: Inputs) -> ReferenceResult:
        """The pairs of these events."""
        sources: dict[str, EventSource] = {
            PURCHASE_STREAM.name: self._purchases(params, inputs),
            AD_STREAM.name: self._ads(params, inputs),
        }
        return JoinedPairs(sources, params.window, params.period, params.offers(inputs.seed).buyers)

    def _purchases(self, params: WindowedJoinParams, inputs: Inputs) -> Purchases:
        plan, offers = inputs.plans[PURCHASE_STREAM.name], params.offers(inputs.seed)
        return Purchases(params, plan, inputs.seed, origin=inputs.origin_ns, offers=offers)

    def _ads(self, params: WindowedJoinParams, inputs: Inputs) -> Ads:
        return Ads(self._purchases(params, inputs), inputs.plans[AD_STREAM.name])


windowed_join = WindowedJoin()
