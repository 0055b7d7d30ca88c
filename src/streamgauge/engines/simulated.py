"""A system under test in virtual time: whole experiments in milliseconds, and plans past one's machine."""

from pydantic import Field

from streamgauge.engines.base import Options
from streamgauge.model.types import Count, Duration, Rate, Share


class SimulatedOptions(Options):
    """What the simulated system can do, and how badly it behaves."""

    capacity: Rate = Field(default=500_000.0, gt=0, description="events per second that one instance can process")
    instances: Count = Field(default=1, ge=1, le=100_000, description="how many instances run")
    contention: Share = Field(default=0.0, ge=0, le=1, description="serial share of the work (sigma of the USL)")
    coherence: Share = Field(
        default=0.0, ge=0, le=1, description="cost of keeping instances in step (kappa of the USL)"
    )
    batch_interval: Duration = Field(
        default=0, ge=0, description="trigger interval of micro-batches; 0s serves continuously"
    )
    batch_cost: Duration = Field(default=0, ge=0, description="fixed time that each micro-batch costs")
    warmup: Duration = Field(default=0, ge=0, description="time in which the capacity grows to its full value")
    pause_every: Duration = Field(
        default=0, ge=0, description="time from one pause (garbage collection) to the next; 0s: none"
    )
    pause: Duration = Field(default=0, ge=0, description="length of each pause")
    noise: Share = Field(
        default=0.0, ge=0, le=1, description="standard deviation of the capacity from second to second"
    )
    noise_memory: Share = Field(
        default=0.5, ge=0, lt=1, description="correlation of that noise from one second to the next"
    )
    delay: Duration = Field(default=5_000_000, ge=0, description="latency of an idle system")
    delay_spread: Share = Field(default=0.1, ge=0, le=3, description="log-normal spread of that latency")
    crash_at: Rate | None = Field(default=None, description="load at which the system crashes")
    lose: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs that are lost")
    duplicate: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs that come twice")
    alter: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs with a wrong value")
