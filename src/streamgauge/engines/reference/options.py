"""What the reference engine is told: the user's options, and the order that its process gets."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from streamgauge.engines.base import Options
from streamgauge.model.types import Count, Duration, Rate, Share


class ReferenceOptions(Options):
    """Capacity, delays and faults of the reference engine. Times count from the first events that it reads."""

    capacity: Rate = Field(default=1_000_000.0, gt=0, description="events per second that one instance can process")
    delay: Duration = Field(default=0, ge=0, description="time that an output waits before it is released")
    delay_spread: Share = Field(default=0.0, ge=0, le=3, description="log-normal spread of that delay; 0 = constant")
    batch_interval: Duration = Field(
        default=0, ge=0, description="trigger interval of micro-batches; 0s = events are processed continuously"
    )
    cores: Count = Field(default=1, ge=1, le=1024, description="number of cores that it gets")
    stall_after: Duration = Field(default=0, ge=0, description="time under load until it stalls")
    stall: Duration = Field(default=0, ge=0, description="how long it then reads nothing; 0s = it never stalls")
    crash_after: Duration | None = Field(
        default=None, ge=0, description="time under load until it crashes; omitted = it does not crash"
    )
    drop_after: Duration | None = Field(
        default=None, ge=0, description="time under load until it closes a stream before its end"
    )
    lose: Count = Field(default=0, ge=0, description="number of outputs that are lost; the seed decides which")
    duplicate: Count = Field(default=0, ge=0, description="number of outputs that are duplicated")
    alter: Count = Field(default=0, ge=0, description="number of outputs that have a wrong sum")
    silent: StrictBool = Field(default=False, description="read the input but produce no output")


class WorkOrder(BaseModel):
    """All that the process needs to know. It comes through standard input, for it holds secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queues: tuple[str, ...]
    outputs: str
    token: str = Field(repr=False)
    kafka: dict[str, Any] | None = Field(default=None, repr=False)
    """What ``KafkaEnds.wire`` says, with the secrets of the cluster; None: events and outputs are on the queue."""
    folder: Path
    query: str
    window_us: int
    slide_us: int
    watermark_us: int
    keys: int
    seed: int
    firings: int
    """Among so many first firings the faulty outputs are."""
    capacity: float
    """Events per second of all instances together."""
    delay_ns: int = 0
    delay_spread: float = 0.0
    batch_interval_ns: int = 0
    stall_after_ns: int = 0
    stall_ns: int = 0
    crash_after_ns: int | None = None
    drop_after_ns: int | None = None
    lose: int = 0
    duplicate: int = 0
    alter: int = 0
    silent: StrictBool = False
