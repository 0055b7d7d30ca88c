"""What the workloads over sensors have in common (T §5): keys, each with a message frequency."""

from pydantic import Field

from streamgauge.model.experiment import Dimension
from streamgauge.model.types import Count, Rate
from streamgauge.workloads.base import Params

KEYS = Dimension("keys", "count", "higher", "number of sensors; load = keys × frequency")
FREQUENCY = Dimension("frequency", "rate", "higher", "messages per second of each sensor; load = keys × frequency")


class Sensors(Params):
    """Sensors that send one message per period each, evenly."""

    keys: Count = Field(default=1000, ge=1, le=10**9, description="number of sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")
