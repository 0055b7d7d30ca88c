"""Step: what a strategy wants next."""

from dataclasses import dataclass

from streamgauge.model.trial import Purpose


@dataclass(frozen=True, slots=True)
class Try:
    """Ask for a trial at this value."""

    value: float
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Bracket:
    """Nothing is left to explore: the hardest value that holds and the easiest that fails.

    The search has both ends confirmed and then asks the strategy once more, since a confirmation may
    contradict. ``reason`` says why a bracket is wider than asked for.
    """

    holds: float | None
    fails: float | None
    reason: str = ""


Step = Try | Bracket
