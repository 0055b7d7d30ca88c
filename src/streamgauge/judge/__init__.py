"""The judge: Seconds → Measurement → Verdict, pure. One judge for live and offline, simulated and real."""

from streamgauge.judge.decide import decide
from streamgauge.judge.early_stop import Watch
from streamgauge.judge.measure import measure

__all__ = ["Watch", "decide", "measure"]
