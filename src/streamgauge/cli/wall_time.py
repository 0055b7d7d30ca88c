"""The estimated duration of a run in real time: the trials, and the time around them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamgauge.model.units import SECOND

if TYPE_CHECKING:
    from streamgauge.engines.base import Engine
    from streamgauge.model.experiment import EngineChoice, Experiment

# Seconds on two virtual cores: those of every trial and of a start as one recorded run of the quickstart shows them,
# the others estimated. They make an estimate, never a bound.
_CHECK = 10.0
"""The check of the highest load that the load driver can send, at the beginning of a run."""
_BROKERS = 20.0
"""To start and warm up the brokers of a run."""
_START = 15.0
"""To start a system that serves many trials."""
_WARM = 45.0
"""To warm it up, if `warm_limit` allows as much."""
_GROW = 25.0
"""The growing load before a search of the load, until the system falls behind."""
_SET_UP = 5.5
"""Of every trial: to start the processes of the load driver, and the query or the system."""
_CLOSE = 2.5
"""Of every full-length trial: the drain phase, and the check of the outputs."""
_VIRTUAL = 0.2
"""To compute a simulated trial."""


@dataclass(frozen=True, slots=True)
class Wall:
    """Seconds of a run in addition to the load of its trials: once, and for each trial."""

    once: float
    each: float


def beside(question: "Experiment", choice: "EngineChoice", engine: "Engine", trials: int) -> Wall:
    """The estimated seconds of one engine of an experiment in addition to its load."""
    from streamgauge.engines.base import StandingEngine, VirtualEngine

    if isinstance(engine, VirtualEngine):
        return Wall(0.0, _VIRTUAL)
    watermark = int(question.workload.params.get("watermark", 0)) / SECOND
    each = _SET_UP + _CLOSE + watermark
    if not isinstance(engine, StandingEngine):
        return Wall(0.0, each)
    warming = engine.warming(choice.options)
    start = _START + min(_WARM, warming.limit / SECOND)
    grow = _GROW if hinted(question, engine, choice) else 0.0
    starts = question.search.starts
    return Wall(start * (starts if warming.shared else max(trials, 1)) + grow * starts, each)


def before(question: "Experiment", real: bool) -> float:
    """Seconds before the first engine starts."""
    if not real:
        return 0.0
    check = _CHECK if question.dimension.name == "load" else 0.0
    return check + (_BROKERS if question.transport.name == "kafka" else 0.0)


def hinted(question: "Experiment", engine: "Engine", choice: "EngineChoice") -> bool:
    """Whether a growing load in the warm-up shows where the search begins."""
    from streamgauge.engines.base import StandingEngine

    searched = question.dimension.name == "load" and question.what != "nothing"
    return searched and isinstance(engine, StandingEngine) and engine.warming(choice.options).limit > 0
