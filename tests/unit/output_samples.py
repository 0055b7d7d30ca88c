"""A trial of a thousand events per second in windows of one second, whose outputs are checked."""

from streamgauge.model.profile import constant
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import SECOND
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

LOAD, ORIGIN = 1_000.0, 1_700_000_000 * SECOND
TRIAL = Trial(
    number=1,
    ask=Ask("load", LOAD, "measure"),
    workload=windowed_aggregation.name,
    params=WindowedAggregationParams(window="1s", slide="1s", gem_packs=3).model_dump(),
    engine="spark",
    options={},
    instances=1,
    profile=constant(LOAD),
    duration=10 * SECOND,
    limit=10 * SECOND,
    warmup=0,
    warmup_limit=0,
    queue_bound=0,
    seed=5,
)
