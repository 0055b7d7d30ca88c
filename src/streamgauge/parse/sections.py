"""The sections of an experiment file that are the same for every engine and workload.

Each is a pydantic model. It validates the file and provides the descriptions of the JSON Schema.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema, field_validator

from streamgauge.model import units
from streamgauge.model.experiment import Strategy
from streamgauge.model.options import Count, Duration, Rate, Share, quantity_schema
from streamgauge.model.units import SECOND

MAX_DURATION = 7 * 86_400 * SECOND
"""The longest trial or profile: a week."""
MAX_RATE = 9e9
"""The largest number of events per second in a plan (model/profile.py)."""
MAX_LEVELS = 500
MAX_SHARES = 20
MAX_STARTS = 100

Time = Annotated[Duration, Field(gt=0, le=MAX_DURATION)]
PositiveRate = Annotated[Rate, Field(gt=0, le=MAX_RATE)]
NonNegativeRate = Annotated[Rate, Field(ge=0, le=MAX_RATE)]
PartialShare = Annotated[Share, Field(gt=0, lt=1)]


def _auto_or_duration(text: object) -> int | None:
    return None if text == "auto" else units.parse_duration(text)


def _share_or_rate(text: object) -> tuple[float, bool]:
    if isinstance(text, str) and "/" in text:
        return units.parse_rate(text), True
    return units.parse_share(text), False


Warmup = Annotated[
    int | None,
    BeforeValidator(_auto_or_duration),
    WithJsonSchema({"anyOf": [{"const": "auto"}, quantity_schema("duration")]}),
]
Low = Annotated[
    tuple[float, bool],
    BeforeValidator(_share_or_rate),
    WithJsonSchema({"anyOf": [quantity_schema("share"), quantity_schema("rate")]}),
]


class Section(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchSection(Section):
    """How the search chooses its trials."""

    strategy: Strategy = Field(
        default="adaptive", description="how the next trial is chosen: adaptive, from-above, linear, binary or full"
    )
    precision: Share = Field(
        default=0.05, gt=0, lt=1, description="how far apart the bounds may be: (failed − passed) / passed"
    )
    lower_bound: StrictBool = Field(
        default=True, description="only for demand: do not test numbers of instances that failed at a lower load"
    )
    also: list[PartialShare] = Field(
        default_factory=list,
        max_length=MAX_SHARES,
        description="only for sustainable-throughput: further loads to measure, as shares of the passing load, such "
        "as 90%",
    )

    starts: Count = Field(
        default=1,
        ge=1,
        le=MAX_STARTS,
        description="how often the whole search is repeated, each time with new processes",
    )

    @field_validator("also")
    @classmethod
    def _once_each(cls, shares: list[float]) -> list[float]:
        if len(set(shares)) < len(shares):
            raise ValueError("contains a share twice; remove one of the two")
        return shares


class TrialSection(Section):
    """How long each trial is and how often it is repeated."""

    duration: Duration = Field(
        default=60 * SECOND, ge=SECOND, le=MAX_DURATION, description="length of the measurement phase"
    )
    warmup: Warmup = Field(
        default=None, description="length of the warm-up, or auto = it ends when the system is steady"
    )
    warmup_limit: Duration | None = Field(
        default=None, le=MAX_DURATION, description="longest warm-up with warmup: auto"
    )
    limit: Duration | None = Field(
        default=None,
        le=MAX_DURATION,
        description="a trial that is not decided is extended up to this length; default: five times duration",
    )
    repetitions: Count = Field(default=1, ge=1, le=1000, description="trials per value")
    early: StrictBool = Field(default=True, description="end a trial as soon as its verdict is clear")
    queue_bound: Count = Field(
        default=0,
        ge=0,
        description="events that may wait in the queue; if there are more, the trial is OVERLOADED; 0 = limited only "
        "by memory (a quarter of the machine)",
    )
    invalid_retries: Count = Field(default=2, ge=0, le=100, description="how often an INVALID trial is repeated")
    partitions: Count = Field(
        default=0,
        ge=0,
        le=1024,
        description="partitions of each stream; 0 = as many as the system under test has cores, at least one per "
        "load driver",
    )
    drivers: Count = Field(default=1, ge=1, le=64, description="load driver processes, which share the partitions")
    stall: Duration = Field(
        default=30 * SECOND,
        ge=SECOND,
        le=MAX_DURATION,
        description="if the system acknowledges nothing for this long while events wait, the trial is FAILED",
    )


class LoadRange(Section):
    """Loads to search; a profile is scaled so that its mean over the measurement phase is this load."""

    between: tuple[PositiveRate, PositiveRate] | None = Field(
        default=None, description="range of loads to search: [low, high]"
    )
    values: list[PositiveRate] | None = Field(
        default=None, min_length=1, max_length=MAX_LEVELS, description="loads to test"
    )


class ConstantLoad(LoadRange):
    """The same rate during the whole trial."""

    rate: PositiveRate | None = Field(default=None, description="events per second")


class StepsLoad(LoadRange):
    """One rate after the other."""

    steps: list[tuple[Time, NonNegativeRate]] = Field(
        min_length=1, max_length=MAX_LEVELS, description="list of [duration, rate], in this order"
    )


class RampLoad(LoadRange):
    """From one rate to another in a straight line."""

    start: NonNegativeRate = Field(alias="from", description="rate at the beginning")
    end: NonNegativeRate = Field(alias="to", description="rate at the end")
    over: Time = Field(description="time from the first to the last rate")


class SpikesLoad(LoadRange):
    """A base rate with a spike at the end of each period."""

    base: NonNegativeRate = Field(description="rate between spikes")
    peak: PositiveRate = Field(description="rate in a spike")
    every: Time = Field(description="time from one spike to the next")
    length: Time = Field(description="length of a spike")
    over: Time | None = Field(default=None, description="how long there are spikes; default: the longest trial")


class FluctuatingLoad(LoadRange):
    """Karimov's experiment 5: full rate, low rate and full rate, each for a third of the time."""

    rate: PositiveRate = Field(description="the full rate")
    low: Low = Field(default=(0.333, False), description="the low rate, as a share of the full rate or as a rate")
    over: Time | None = Field(
        default=None, description="time of all three parts; default: warm-up and duration of a trial"
    )


class ReplayLoad(LoadRange):
    """A recorded series of rates."""

    rates: list[NonNegativeRate] = Field(min_length=1, max_length=MAX_LEVELS, description="one rate per step")
    step: Time = Field(default=SECOND, description="time that each rate lasts")


Profile = Literal["constant", "steps", "ramp", "spikes", "fluctuating", "replay"]
PROFILES: dict[Profile, type[LoadRange]] = {
    "constant": ConstantLoad,
    "steps": StepsLoad,
    "ramp": RampLoad,
    "spikes": SpikesLoad,
    "fluctuating": FluctuatingLoad,
    "replay": ReplayLoad,
}
