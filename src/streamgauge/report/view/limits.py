"""What limited the throughput, from the trial at the failing bound, with figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.facts import TrialFacts
from streamgauge.model.finding import Finding
from streamgauge.model.units import format_rate
from streamgauge.report.view.run_report import JudgedTrial, failing_trial, holding_trial


@dataclass(frozen=True, slots=True)
class LimitingFactor:
    """One thing that limits the system under test, the largest share first."""

    what: str
    share: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class LimitingFactors:
    """The limits, and the trial that they were read from."""

    trial: int
    where: str
    """``fails`` or ``holds``: the bound that the trial measured."""
    load: str
    limits: tuple[LimitingFactor, ...]


def limits_of(finding: Finding, trials: Sequence[JudgedTrial]) -> LimitingFactors | None:
    """From the trial at the failing bound, else from the passing one; None if neither has figures."""
    for end, judged in (("fails", failing_trial(finding, trials)), ("holds", holding_trial(finding, trials))):
        limits = () if judged is None else _limits(judged)
        if judged is not None and limits:
            return LimitingFactors(judged.number, end, format_rate(judged.load), limits)
    return None


def _limits(judged: JudgedTrial) -> tuple[LimitingFactor, ...]:
    explained = explanation(judged.facts)
    named = {limit.what for limit in explained}
    own = [] if named & {"core", "cores"} else _busy(judged)
    return (*explained, *own, *_capacity(judged))


def explanation(facts: TrialFacts) -> list[LimitingFactor]:
    """How the engine explains its throughput, the largest share first."""
    found = [LimitingFactor(part.what, part.share, part.sentence) for part in facts.explanation]
    return sorted(found, key=lambda limit: -1.0 if limit.share is None else limit.share, reverse=True)


def busy_share(judged: JudgedTrial) -> float | None:
    """Share of its cores that the system under test used while it was judged."""
    m = judged.measurement
    if not m.judged_seconds or not m.sut_cpu_seconds or not judged.cores:
        return None
    return m.sut_cpu_seconds / (judged.cores * m.judged_seconds)


def _busy(judged: JudgedTrial) -> list[LimitingFactor]:
    share, cores = busy_share(judged), judged.cores
    if share is None:
        return []
    where = "core" if cores == 1 else f"{cores} cores"
    taken = judged.measurement.foreign_share
    sentence = f"the system under test used {share * 100:.0f} % of its {where}, other processes {taken * 100:.1f} %"
    return [LimitingFactor("core", share, sentence)]


def _capacity(judged: JudgedTrial) -> list[LimitingFactor]:
    capacity = judged.measurement.capacity
    if capacity is None:
        return []
    return [
        LimitingFactor(
            "capacity",
            None,
            f"it processed {format_rate(capacity.mean)} while its lag was growing "
            f"(95 % confidence interval {format_rate(capacity.low)} to {format_rate(capacity.high)})",
        )
    ]
