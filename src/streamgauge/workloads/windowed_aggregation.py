"""Karimov's windowed aggregation: the revenue of each gem pack over a sliding window."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration
from streamgauge.model.profile import Plan
from streamgauge.workloads.contract import TIME, Workload
from streamgauge.workloads.data.keys import too_many
from streamgauge.workloads.data.shopping import SCHEMA, Purchases
from streamgauge.workloads.parameters import SLIDE, WINDOW, Windowed, impossible
from streamgauge.workloads.references.window_sums import Reference


class WindowedAggregationParams(Windowed):
    """SUM(price) per gem pack over [window, slide] of PURCHASES(userID, gemPackID, price, time)."""

    window: Duration = Field(default=8 * 10**9, gt=0, description="length of the event-time window")
    slide: Duration = Field(default=4 * 10**9, gt=0, description="time from one window to the next")
    gem_packs: Count = Field(default=100, ge=1, le=10**9, description="number of gem packs: the keys of the sum")
    users: Count = Field(default=100_000, ge=1, le=10**9, description="number of users who make purchases")
    distribution: Literal["normal", "uniform", "zipf", "single"] = Field(
        default="normal",
        description="how purchases are distributed over gem packs: normal, uniform, zipf, or single = all on one "
        "(Karimov's experiment 4)",
    )

    @model_validator(mode="after")
    def _events_can_be_made(self) -> Self:
        sentence = too_many(self.distribution, self.gem_packs)
        if sentence:
            raise impossible("gem_packs", sentence)
        return self


def stream(params: dict[str, Any], plan: Plan, seed: int, origin: int) -> Purchases:
    """The purchases of a trial with these resolved parameters."""
    return Purchases(WindowedAggregationParams.model_construct(**params), plan, seed, origin=origin)


def reference(params: dict[str, Any], plan: Plan, seed: int, origin: int) -> Reference:
    """The answer to those purchases."""
    return Reference(WindowedAggregationParams.model_construct(**params), plan, seed, origin)


OUTPUTS = (
    ("gem_pack_id", "int32"),
    ("window_start", TIME),
    ("window_end", TIME),
    ("sum", "int64"),
    ("count", "int64"),
    ("max_due", TIME),
    ("max_ingested", TIME),
)
"""Columns of an output in their order: the sum of a gem pack's prices in a window, and the newest that is in it."""

windowed_aggregation = Workload(
    name="windowed-aggregation",
    summary="sum of prices per gem pack over a sliding window",
    paper="Karimov 2018",
    params=WindowedAggregationParams,
    dimensions=(
        WINDOW,
        SLIDE,
        Dimension("gem_packs", "count", "higher", "number of keys that are summed"),
        Dimension("users", "count", "higher", "number of users in the purchases"),
    ),
    schema=SCHEMA,
    outputs=OUTPUTS,
    streams=("purchases",),
    stream=stream,
    reference=reference,
)
