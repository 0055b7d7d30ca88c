"""The judge: Seconds → Measurement → Verdict, pure. One judge for live and offline, simulated and real."""

from streamgauge.judge.decide import decide
from streamgauge.judge.measure import measure
from streamgauge.judge.watch import Watch

__all__ = ["Watch", "decide", "measure"]
