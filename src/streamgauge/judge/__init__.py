"""The judge: Seconds → Measurement → Verdict, as pure functions for live, recomputed, simulated and real trials."""

from streamgauge.judge.decide import decide
from streamgauge.judge.early_stop import EarlyStopRule
from streamgauge.judge.measure import measure

__all__ = ["EarlyStopRule", "decide", "measure"]
