"""``streamgauge plan``: what a run would take, before it takes it."""

from typing import TYPE_CHECKING, Any

from streamgauge.cli.load import load_experiment, load_limits
from streamgauge.cli.options import Budget, ExperimentArgument, Json, Set
from streamgauge.cli.talk import Talk
from streamgauge.model.units import SECOND, format_duration, format_size

if TYPE_CHECKING:
    from streamgauge.model.experiment import Experiment

_BYTES_PER_SECOND = 20
"""A second of a recording on disk: its columns and the buckets of its latencies, compressed."""
_EARLY = 0.4
"""Share of its length after which a trial that may end early is decided, on average."""
_BYTES_PER_REAL_SECOND = 50_000
"""What the journals of real processes add: every tick, every acknowledgement, the outputs."""
_BYTES_PER_TRIAL = 14_000
"""Manifest, verdict and the overhead of the files of a trial."""


def command(experiment: ExperimentArgument, set_: Set = None, budget: Budget = None, json: Json = False) -> None:
    """Say how many trials, minutes and bytes a run would take. Runs nothing."""
    talk = Talk(json)
    question = load_experiment(experiment, set_)
    limits = load_limits(budget, 0.0)

    from rich.text import Text

    from streamgauge.cli.going import check_engines
    from streamgauge.report.encode import document

    check_engines(question)
    forecasts = [_engine(question, choice.label, choice.name) for choice in question.engines]
    total = _total(question, forecasts, limits.budget)
    talk.show(Text("\n".join(_words(question, forecasts, total, limits.budget))))
    talk.end(document(0, experiment=question.name, engines=forecasts, **total))


def _engine(question: "Experiment", label: str, name: str) -> dict[str, Any]:
    from streamgauge.engines.base import VirtualEngine
    from streamgauge.engines.registry import engines
    from streamgauge.search import build

    forecast = build(question, label).forecast()
    trials = {"least": forecast.least, "likely": forecast.likely, "most": forecast.most}
    full = {"least": forecast.full_least, "likely": forecast.full_likely, "most": forecast.full_most}
    return {
        "engine": label,
        "virtual": isinstance(engines()[name], VirtualEngine),
        "trials": trials,
        "full_length": full,
    }


def _total(question: "Experiment", forecasts: list[dict[str, Any]], budget: int | None) -> dict[str, Any]:
    """Trials, seconds of trial time and bytes, over all engines."""
    plan = question.trial
    usual = ((plan.warmup if plan.warmup is not None else 0) + plan.duration) // SECOND
    longest = ((plan.warmup if plan.warmup is not None else plan.warmup_limit) + plan.limit) // SECOND
    trials = {key: sum(f["trials"][key] for f in forecasts) for key in ("least", "likely", "most")}
    full = sum(f["full_length"]["likely"] for f in forecasts)
    early = _EARLY if plan.early else 1.0
    likely = round(full * usual + (trials["likely"] - full) * usual * early)
    seconds = {"likely": likely, "most": trials["most"] * longest}
    if budget is not None:
        seconds = {key: min(value, budget // SECOND) for key, value in seconds.items()}
    real = not all(f["virtual"] for f in forecasts)
    per_second = _BYTES_PER_SECOND + (_BYTES_PER_REAL_SECOND if real else 0)
    size = trials["likely"] * _BYTES_PER_TRIAL + seconds["likely"] * per_second
    return {"trials": trials, "seconds": seconds, "bytes": size}


def _words(
    question: "Experiment", forecasts: list[dict[str, Any]], total: dict[str, Any], budget: int | None
) -> list[str]:
    trials, seconds = total["trials"], total["seconds"]
    asked = "a plain measurement" if question.what == "nothing" else f"a search for {question.what}"
    labels = ", ".join(f["engine"] for f in forecasts)
    words = [
        f"{question.name}: {asked} on {question.workload.name}, with {labels}.",
        f"About {_count(trials['likely'])}, at least {trials['least']}, at most {trials['most']}.",
        f"About {_time(seconds['likely'])} of trial time, at most {_time(seconds['most'])}; clear trials end early.",
        f"About {format_size(total['bytes'])} on disk.",
    ]
    if len(forecasts) > 1:
        words += [f"  {f['engine']}: about {_count(f['trials']['likely'])}" for f in forecasts]
    if budget is not None:
        words.append(f"The budget of {format_duration(budget)} ends it with the bracket found so far.")
    if all(f["virtual"] for f in forecasts):
        words.append("All of it in virtual time: a few seconds of yours.")
    return words


def _count(trials: int) -> str:
    return "one trial" if trials == 1 else f"{trials} trials"


def _time(seconds: int) -> str:
    return format_duration(seconds * SECOND)
