"""The options of the Spark engine, and the specifications that its process gets."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema

from streamgauge.engines.spark.jobs.table import variants, variants_in_words, with_updates
from streamgauge.model.options import Count, Duration, Options, Rate, Size


def _setting(value: object) -> object:
    """A number or a truth value as Spark writes it; Spark's settings are all text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


SettingText = Annotated[
    str,
    BeforeValidator(_setting),
    WithJsonSchema({"type": ["string", "number", "boolean"], "examples": ["64m", 10, True]}),
]

Variant = Annotated[str, WithJsonSchema({"type": "string", "enum": ["", *variants()]})]
"""Which of them a workload has is checked with the workload."""


class SparkOptions(Options):
    """Structured Streaming in local mode, on dedicated cores."""

    cores: Count = Field(default=1, ge=1, le=1024, description="number of cores that Spark is pinned to")
    slots: Count = Field(
        default=0,
        ge=0,
        le=4096,
        description="task slots of Spark; 0 = as many as cores, in real-time mode cores plus shuffle partitions",
    )
    memory: Size = Field(default=2 << 30, ge=512 << 20, description="heap of the JVM")
    mode: Literal["micro-batch", "real-time"] = Field(
        default="micro-batch",
        description=f"micro-batch, or real-time = each event is processed when it arrives (only with transport "
        f"{with_updates()} and output_mode: update)",
    )
    trigger: Duration = Field(
        default=1_000_000_000,
        ge=0,
        description="interval of micro-batches, 0s = the next one starts when one has ended; in real-time mode the "
        "length of a batch, at least 5s",
    )
    max_batch: Count = Field(default=0, ge=0, description="maximum number of events per micro-batch; 0 = no limit")
    shuffle_partitions: Count = Field(
        default=0,
        ge=0,
        le=100_000,
        description="partitions of shuffles and state; 0 = as many as slots (tuned), Spark's default of 200 "
        "(defaults), or as many as cores (real-time)",
    )
    state_store: Literal["memory", "rocksdb"] = Field(
        default="memory", description="where state is stored: memory = the heap, rocksdb = RocksDB with its changelog"
    )
    output_mode: Literal["append", "update"] = Field(
        default="append",
        description="append = a window is emitted once, when it is final; update = at every change "
        f"(only with transport {with_updates()})",
    )
    profile: Literal["tuned", "defaults"] = Field(
        default="tuned", description="tuned = settings that were measured to be faster, defaults = Spark's own settings"
    )
    variant: Variant = Field(
        default="",
        description="which job of the workload runs, empty = the first one that is listed; " + variants_in_words(),
    )
    settings: dict[str, SettingText] = Field(
        default_factory=dict, description="any Spark settings by name; they override the profile"
    )
    pipeline: str = Field(
        default="", description="your own function, for example my_job.py:orders; empty = the built-in job"
    )
    reference: str = Field(
        default="",
        description="function that computes the expected results of your function, for example my_job.py:expected; "
        "empty = results are not checked",
    )
    keys: list[str] = Field(
        default_factory=list,
        description="key columns of your function's outputs in output_mode update; "
        "empty = those that have the same names as columns of the events",
    )
    isolation: Literal["shared", "fresh"] = Field(
        default="shared", description="shared = one warm session for all trials, fresh = a new session for each trial"
    )
    warm_load: Rate = Field(
        default=200_000.0,
        gt=0,
        description="load at which the warm-up of a new session begins; before a search over the load it then grows "
        "until Spark falls behind",
    )
    warm_limit: Duration = Field(
        default=60_000_000_000, ge=0, description="longest warm-up of a session; 0s = no warm-up"
    )
    stamp: StrictBool = Field(default=True, description="add the time at which Spark read it to each event")


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SessionSpec(_Spec):
    """What the process needs to start. It comes through its standard input, because it has a token."""

    control: Path
    token: str = Field(repr=False)
    folder: Path
    settings: dict[str, str]
    master: str


class StreamSpec(_Spec):
    """One stream of events as the query reads it."""

    name: str
    columns: tuple[tuple[str, str], ...]
    numbered: bool = False
    """Whether events have their number in the stream, for jobs that emit it."""


class SourceAndSink(_Spec):
    """Where events come from and outputs go."""

    transport: str
    endpoints: dict[str, Any] = Field(repr=False)
    """What ``Endpoints.wire`` returned, with secrets: this specification goes over the control channel only."""
    streams: tuple[StreamSpec, ...]
    query: str
    stamp: StrictBool = True
    published: StrictBool = False
    """Whether events have the time of their publication, for jobs that emit its mean."""
    partitions: int = 1
    max_batch: int = 0
    restart: int = 0
    """Which start of this query it is: attempts of an earlier one, which was killed, are kept apart."""
    consumer: dict[str, str] = Field(default_factory=dict)
    """Settings of a connector's consumer."""


class QuerySpec(_Spec):
    """The query of one trial."""

    ends: SourceAndSink
    workload: str
    params: dict[str, Any]
    variant: str
    pipeline: str
    output_mode: str
    mode: str = "micro-batch"
    trigger_ns: int
    settings: dict[str, str]
    """Those that a query takes when it starts."""
    checkpoint: Path
    folder: Path
