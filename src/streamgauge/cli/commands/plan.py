"""``streamgauge plan``: estimate the trials, time and disk space of a run."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamgauge.cli.console import CliOutput
from streamgauge.cli.inputs import load_experiment, read_limits
from streamgauge.cli.options import Budget, ExperimentArgument, Json, Set
from streamgauge.model.units import SECOND, duration_text, format_size

if TYPE_CHECKING:
    from streamgauge.engines.contract import Engine
    from streamgauge.model.experiment import EngineChoice, Experiment


# Seconds on two virtual cores: those of every trial and of a start as one recorded run of the quickstart shows them,
# the others estimated. They make an estimate, never a bound.
_CHECK = 10.0
"""The check of the highest load that the load driver can send, at the beginning of a run."""
_START = 15.0
"""To start a system that serves many trials."""
_WARM = 45.0
"""To warm it up under a fixed load, if `warm_limit` allows as much."""
_GROW = 45.0
"""Before a search of the load: to warm it up under a growing load, until it falls behind."""
_SET_UP = 5.5
"""Of every trial: to start the processes of the load driver, and the query or the system."""
_CLOSE = 2.5
"""Of every full-length trial: the drain phase, and the check of the outputs."""
_VIRTUAL = 0.2
"""To compute a simulated trial."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds of a run in addition to the load of its trials: once, and for each trial."""

    once: float
    each: float


def overhead_of(experiment: "Experiment", choice: "EngineChoice", engine: "Engine", trials: int) -> Overhead:
    """The estimated seconds of one engine of an experiment in addition to its load."""
    from streamgauge.workloads.parameters import watermark_of
    from streamgauge.workloads.registry import workloads

    traits = engine.traits(engine.options.from_resolved(choice.options))
    if traits.simulated:
        return Overhead(0.0, _VIRTUAL)
    params = workloads()[experiment.workload.name].params.from_resolved(experiment.workload.params)
    watermark = watermark_of(params) / SECOND
    each = _SET_UP + _CLOSE + watermark
    if not traits.warm_limit_ns:
        return Overhead(0.0, each)
    warm_up, searches = min(_WARM, traits.warm_limit_ns / SECOND), experiment.search.starts
    grown = searches if has_hint(experiment, engine, choice) else 0
    starts = max(searches if traits.shared else trials, 1)
    return Overhead(_START * starts + _GROW * grown + warm_up * (starts - grown), each)


def start_up_seconds(experiment: "Experiment", real: bool) -> float:
    """Seconds before the first engine starts."""
    from streamgauge.transports.registry import transports

    if not real:
        return 0.0
    check = _CHECK if experiment.dimension.name == "load" else 0.0
    return check + transports()[experiment.transport.name].start_seconds


def has_hint(experiment: "Experiment", engine: "Engine", choice: "EngineChoice") -> bool:
    """Whether a growing load in the warm-up shows where the search begins."""
    searched = experiment.dimension.name == "load" and experiment.searches
    return searched and engine.traits(engine.options.from_resolved(choice.options)).warm_limit_ns > 0


_BYTES_PER_SECOND = 20
"""A second of a recording on disk: its columns and the buckets of its latencies, compressed."""
_EARLY = 0.4
"""Share of its length after which a trial that may end early is decided, on average."""
_BYTES_PER_REAL_SECOND = 50_000
"""What the raw logs of real processes add: every send interval, every acknowledgement, the outputs."""
_BYTES_PER_TRIAL = 14_000
"""Manifest, verdict and the overhead of the files of a trial."""


def command(experiment: ExperimentArgument, set_: Set = None, budget: Budget = None, json: Json = False) -> None:
    """Estimate how many trials, how much time and how much disk space a run needs. Nothing is run."""
    output = CliOutput(json)
    planned = load_experiment(experiment, set_)
    limits = read_limits(budget, 0.0)

    from rich.text import Text

    from streamgauge.cli.run_loop import check_experiment
    from streamgauge.report.render.json import document

    check_experiment(planned)
    forecasts = [_engine(planned, choice) for choice in planned.engines]
    total = _total(planned, forecasts, limits.budget)
    output.print(Text("\n".join(_sentences(planned, forecasts, total, limits.budget))))
    output.exit(document(0, experiment=planned.name, engines=forecasts, **total))


def _engine(experiment: "Experiment", choice: "EngineChoice") -> dict[str, Any]:
    from streamgauge.engines.registry import engines
    from streamgauge.search import build

    engine = engines()[choice.name]
    virtual = engine.traits(engine.options.from_resolved(choice.options)).simulated
    hint = _middle(experiment) if has_hint(experiment, engine, choice) else 0.0
    search = build(experiment, choice.label, hint)
    forecast, retries = search.forecast(), 0 if virtual else experiment.trial.invalid_retries
    trials = {"least": forecast.min_trials, "likely": forecast.likely_trials, "usual_most": forecast.max_trials}
    full = {
        "least": forecast.min_full_length,
        "likely": forecast.likely_full_length,
        "usual_most": forecast.max_full_length,
    }
    overhead = overhead_of(experiment, choice, engine, forecast.likely_trials)
    return {
        "engine": choice.label,
        "virtual": virtual,
        "trials": {**trials, "most": search.max_trials(retries)},
        "full_length": full,
        "seconds_beside": round(overhead.once + overhead.each * forecast.likely_trials, 1),
    }


def _middle(experiment: "Experiment") -> float:
    """A load in the middle of those that are searched, as an example of where a search can begin."""
    loads = experiment.span.between or experiment.span.values
    return math.sqrt(min(loads) * max(loads))


def _total(experiment: "Experiment", forecasts: list[dict[str, Any]], budget: int | None) -> dict[str, Any]:
    """Trials, seconds and bytes, over all engines. ``most`` are bounds, the others are estimates."""

    plan = experiment.trial
    usual = ((plan.warmup or 0) + plan.duration) / SECOND
    warmup = plan.warmup if plan.warmup is not None else plan.warmup_limit
    # each part ends with a whole second; the last one waits for an acknowledgement, at most as long as a stall may take
    longest = sum(math.ceil(part / SECOND) for part in (warmup, plan.limit, plan.stall))
    keys = ("least", "likely", "usual_most", "most")
    trials = {key: sum(f["trials"][key] for f in forecasts) for key in keys}
    full = sum(f["full_length"]["likely"] for f in forecasts)
    early = _EARLY if plan.early else 1.0
    load = full * usual + (trials["likely"] - full) * usual * early
    most = trials["most"] * longest
    if budget is not None:
        # a trial that begins within the budget is finished, however long it gets
        load = min(load, budget / SECOND)
        most = min(most, max(math.ceil(budget / SECOND - usual), 0) + longest)
    real = not all(f["virtual"] for f in forecasts)
    in_real_time = load if real else 0.0
    overhead = sum(f["seconds_beside"] for f in forecasts) + start_up_seconds(experiment, real)
    per_second = _BYTES_PER_SECOND + (_BYTES_PER_REAL_SECOND if real else 0)
    seconds = {"likely": round(in_real_time + overhead), "trials_likely": round(load), "trials_most": most}
    size = round(trials["likely"] * _BYTES_PER_TRIAL + load * per_second)
    return {"trials": trials, "seconds": seconds, "bytes": size}


def _sentences(
    experiment: "Experiment", forecasts: list[dict[str, Any]], total: dict[str, Any], budget: int | None
) -> list[str]:
    trials, seconds = total["trials"], total["seconds"]
    goal = _goal(experiment)
    labels = ", ".join(f["engine"] for f in forecasts)
    least, most = trials["least"], trials["usual_most"]
    usual = f"{least} to {most}" if least < most else str(most)
    sentences = [
        f"{experiment.name}: {goal} on {experiment.workload.name}, with {labels}.",
        f"About {_count(trials['likely'])}, usually {usual} if every trial has a clear verdict. INVALID and UNDECIDED "
        "trials add to this, and a failure of the system under test ends the run early.",
        _duration(forecasts, seconds),
        f"About {format_size(total['bytes'])} on disk.",
    ]
    if len(forecasts) > 1:
        sentences += [f"  {f['engine']}: about {_count(f['trials']['likely'])}" for f in forecasts]
    if budget is not None:
        sentences.append(
            f"The budget of {duration_text(budget)} ends the run with the bounds found so far, after at most "
            f"{_time(seconds['trials_most'])} of trials: a started trial is finished."
        )
    return sentences


def _goal(experiment: "Experiment") -> str:
    """What the run does."""
    if experiment.what == "stages":
        return f"a measurement of {len(experiment.stages)} stages ({', '.join(experiment.stages)})"
    return f"a search for {experiment.what}" if experiment.searches else "a fixed-load measurement"


def _duration(forecasts: list[dict[str, Any]], seconds: dict[str, Any]) -> str:
    trials = _time(seconds["trials_likely"])
    if all(f["virtual"] for f in forecasts):
        real = _time(max(seconds["likely"], 1))
        return f"About {trials} of simulated time. The engine is simulated: the run takes about {real} of real time."
    rest = _time(max(seconds["likely"] - seconds["trials_likely"], 0))
    return (
        f"About {_time(seconds['likely'])} in total: {trials} of trials, and {rest} to start and warm up the system "
        "under test, to set up each trial and to check its outputs."
    )


def _count(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"


def _time(seconds: int) -> str:
    return duration_text(seconds * SECOND)
