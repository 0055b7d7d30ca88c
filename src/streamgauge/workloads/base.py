"""What every workload says of itself."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from streamgauge.model.experiment import Dimension


class Params(BaseModel):
    """Parameters of a workload: strict, frozen, with defaults from the papers."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Workload:
    """A use case. ``dimensions`` name parameters of ``params`` that can be made harder."""

    name: str
    summary: str
    paper: str
    params: type[Params]
    dimensions: tuple[Dimension, ...]

    def rate(self, params: dict[str, Any]) -> float | None:
        """Events per second where keys × frequency say it (T §5); None where the load is free."""
        if "keys" in params and "frequency" in params:
            return float(params["keys"] * params["frequency"])
        return None

    def work(self, params: dict[str, Any]) -> float:
        """Work of one event against the cheapest setting: the copies that overlapping windows make of it."""
        if params.get("slide"):
            return float(max(1.0, params["window"] / params["slide"]))
        return 1.0
