"""How a trial's events and outputs travel."""

from dataclasses import dataclass, field
from typing import Any, Literal

TransportName = Literal["queue", "kafka"]


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A transport and its resolved options. No secret is in them, only where each is to be found."""

    name: TransportName = "queue"
    options: dict[str, Any] = field(default_factory=dict)
