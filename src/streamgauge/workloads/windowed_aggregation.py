"""Karimov's windowed aggregation: the revenue of each gem pack over a sliding window."""

from pydantic import Field

from streamgauge.model import papers
from streamgauge.model.options import Duration
from streamgauge.model.streams import TIME, Column
from streamgauge.workloads.contract import EventSource, Inputs, OutputContract, ReferenceResult, Stream, WorkloadBase
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.parameters import GEM_PACKS, SLIDE, USERS, WINDOW, PurchaseParams, Sliding
from streamgauge.workloads.references.window_sums import WindowSums

OUTPUT = OutputContract(
    schema=(
        Column("gem_pack_id", "int32"),
        Column("window_start", TIME),
        Column("window_end", TIME),
        Column("sum", "int64"),
        Column("count", "int64"),
        Column("max_due", TIME),
        Column("max_ingested", TIME),
    ),
    identity=("window_start", "gem_pack_id"),
)
"""The sum of the prices of a gem pack in a window, and the moments of the newest purchase in it."""


class WindowedAggregationParams(PurchaseParams, Sliding):
    """SUM(price) per gem pack over [window, slide] of PURCHASES(userID, gemPackID, price, time)."""

    window: Duration = Field(default=8 * 10**9, gt=0, description="length of the event-time window")
    slide: Duration = Field(default=4 * 10**9, gt=0, description="time from one window to the next")


class WindowedAggregation(WorkloadBase[WindowedAggregationParams]):
    """One stream of purchases, and one output per window and gem pack."""

    name = "windowed-aggregation"
    summary = "sum of prices per gem pack over a sliding window"
    paper = papers.KARIMOV
    params = WindowedAggregationParams
    dimensions = (WINDOW, SLIDE, GEM_PACKS, USERS)

    def streams(self, params: WindowedAggregationParams) -> tuple[Stream, ...]:
        """The purchases."""
        return (PURCHASE_STREAM,)

    def output(self, params: WindowedAggregationParams) -> OutputContract:
        """A sum per window and gem pack."""
        return OUTPUT

    def events(self, params: WindowedAggregationParams, stream: str, inputs: Inputs) -> EventSource:
        """The purchases of a trial."""
        return Purchases(params, inputs.plans[stream], inputs.seed, origin=inputs.origin_ns)

    def reference(self, params: WindowedAggregationParams, inputs: Inputs) -> ReferenceResult:
        """The sums of these purchases."""
        plan = inputs.plans[PURCHASE_STREAM.name]
        purchases = Purchases(params, plan, inputs.seed, origin=inputs.origin_ns)
        return WindowSums(purchases, params.window, params.slide)


windowed_aggregation = WindowedAggregation()
