"""A trial of a thousand events per second in windows of one second, whose outputs are checked."""

from streamgauge.engines.contract import CustomJob, ReferenceFunction
from streamgauge.model.profile import constant
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

LOAD, ORIGIN = 1_000.0, 1_700_000_000 * SECOND
PARAMS = WindowedAggregationParams(window="1s", slide="1s", gem_packs=3)
TRIAL = Trial(
    number=1,
    ask=TrialRequest("load", LOAD, "measure"),
    workload=windowed_aggregation.name,
    params=PARAMS.model_dump(),
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


def check(
    acknowledged: int,
    published: int,
    reference: ReferenceFunction | None = None,
    *,
    updates: bool = False,
    keys: tuple[str, ...] = (),
) -> OutputCheck:
    """The check of the trial when so many events are acknowledged and published; ``reference`` is the user's."""
    (stream,) = windowed_aggregation.streams(PARAMS)
    made = OutputCheck(
        windowed_aggregation,
        TRIAL,
        PARAMS,
        {stream.name: TRIAL.profile.plan(60 * SECOND)},
        CustomJob(lambda: reference, keys) if reference else None,
        updates,
        reference_function=reference,
    )
    return made.at(ORIGIN, {stream.name: acknowledged}, {stream.name: published})
