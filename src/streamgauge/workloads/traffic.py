"""Van Dongen's traffic pipeline: how the traffic at measurement locations changes, from the numbers of cars and their
speeds. It has five stages, each of which can be the last one."""

from dataclasses import replace

from pydantic import Field

from streamgauge.model import papers
from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration
from streamgauge.model.streams import MAX_DUE, MAX_INGESTED, MEAN_PUBLISHED, TIME, Column
from streamgauge.workloads.contract import (
    SEQUENCE,
    STREAM,
    EventSource,
    Inputs,
    OutputContract,
    ReferenceResult,
    Stages,
    Stream,
    WorkloadBase,
)
from streamgauge.workloads.data.traffic import FLOW, SPEED, STREAMS, Observations, Roads
from streamgauge.workloads.parameters import FREQUENCY, WINDOW, Windowed
from streamgauge.workloads.references.traffic import RESULTS, Traffic

INGEST, PARSE, JOIN, TUMBLE, SLIDE = range(5)
STAGES = Stages("stage", ("ingest", "parse", "join", "tumbling window", "sliding window"))

_STAMPS = (Column(MAX_DUE, TIME), Column(MAX_INGESTED, TIME), Column(MEAN_PUBLISHED, TIME))
_NUMBER, _STREAM = Column(SEQUENCE, "int64"), Column(STREAM, "text")
_LANE = (Column("location", "text"), Column("lane", "int32"))
_OBSERVED = (Column("cars", "int32"), Column("speed", "int32"))
_WINDOW = (Column("window_start", TIME), Column("window_end", TIME), Column("location", "text"))
_TOTALS = (Column("cars", "int64"), Column("speed", "float64"), Column("count", "int64"))
_CHANGES = (
    Column("cars", "int64"),
    Column("short_change", "float64"),
    Column("long_change", "float64"),
    Column("count", "int64"),
)
_BY_WINDOW = ("window_start", "location")
OUTPUTS = (
    OutputContract((_NUMBER, _STREAM, Column("json", "text"), *_STAMPS), (SEQUENCE, STREAM), None, digested=("json",)),
    OutputContract((_NUMBER, _STREAM, *_LANE, *_OBSERVED, *_STAMPS), (SEQUENCE, STREAM), None),
    OutputContract((_NUMBER, *_LANE, *_OBSERVED, *_STAMPS), (SEQUENCE,), None),
    OutputContract((*_WINDOW, *_TOTALS, *_STAMPS), _BY_WINDOW),
    OutputContract((*_WINDOW, *_CHANGES, *_STAMPS), _BY_WINDOW),
)
"""What each stage outputs, if it is the last one."""


class TrafficParams(Roads, Windowed):
    """FLOW and SPEED observations of each lane as JSON, up to a stage of the pipeline."""

    window: Duration = Field(
        default=10**9, gt=0, description="length of the tumbling windows; the changes are those over 5 and 10 of them"
    )
    stage: Count = Field(
        default=SLIDE,
        ge=INGEST,
        le=SLIDE,
        description="the last stage: 0 = ingest, 1 = parse, 2 = join, 3 = tumbling window, 4 = sliding window",
    )


class TrafficPipeline(WorkloadBase[TrafficParams]):
    """Two streams of observations, and the outputs of the last stage."""

    name = "traffic"
    summary = "change of the traffic at measurement locations, in five stages: ingest, parse, join, aggregate, slide"
    paper = papers.VAN_DONGEN
    params = TrafficParams
    dimensions = (
        Dimension("locations", "count", "higher", "number of measurement locations"),
        Dimension("lanes", "count", "higher", "lanes of each measurement location"),
        FREQUENCY,
        WINDOW,
    )
    stages = STAGES

    def streams(self, params: TrafficParams) -> tuple[Stream, ...]:
        """Flow and speed, with equal shares of the load, and with their numbers as long as outputs have them."""
        return tuple(replace(stream, numbered=OUTPUTS[params.stage].numbered) for stream in STREAMS)

    def output(self, params: TrafficParams) -> OutputContract:
        """That of the last stage."""
        return OUTPUTS[params.stage]

    def events(self, params: TrafficParams, stream: str, inputs: Inputs) -> EventSource:
        """The observations of one stream."""
        return Observations(params, inputs.plans[stream], inputs.seed, stream, inputs.origin_ns)

    def reference(self, params: TrafficParams, inputs: Inputs) -> ReferenceResult:
        """The outputs of the last stage for these observations."""
        flow, speed = (
            Observations(params, inputs.plans[name], inputs.seed, name, inputs.origin_ns) for name in (FLOW, SPEED)
        )
        return RESULTS[params.stage](Traffic(flow, speed, params.window // 1_000))

    def rate(self, params: TrafficParams) -> float:
        """Each lane is observed in both streams."""
        return 2.0 * params.sites * params.frequency


traffic = TrafficPipeline()
