"""What ``run`` and ``resume`` share: execute the trials of an experiment and present the result."""

from typing import Any, NoReturn

from streamgauge.cli.commands.report import save_report
from streamgauge.cli.console import Talk
from streamgauge.cli.errors import Trouble
from streamgauge.cli.inputs import story_of
from streamgauge.cli.progress import follow
from streamgauge.engines.contract import Engine, RealEngine, conditions, unsuited
from streamgauge.engines.registry import engines
from streamgauge.model.experiment import Experiment
from streamgauge.processes.placement import NotEnoughCores, place
from streamgauge.report.render.json import run_document
from streamgauge.report.render.terminal import render_run
from streamgauge.report.view.findings import view_run
from streamgauge.run.explore import explore
from streamgauge.run.limits import Limits
from streamgauge.run.result import ExitCode, Explored, answer
from streamgauge.store import Run

INTERRUPTED = "it was interrupted"


def check_engines(experiment: Experiment) -> None:
    """Raise Trouble with all problems of the engines that are known before the first trial."""
    known = engines()
    missing = {c.name for c in experiment.engines if c.name not in known}
    problems = [
        f"engine {name!r} is not installed. Install the Python package that provides it" for name in sorted(missing)
    ]
    present = [c for c in experiment.engines if c.name in known]
    problems += [f"{c.label}: {p}" for c in present for p in known[c.name].check(c.options)]
    searched = (experiment.dimension, experiment.span) if experiment.what == "extreme" else None
    asked = conditions(experiment.transport, experiment.workload, experiment.trial.partitions, searched)
    problems += [f"{c.label}: {p}" for c in present for p in unsuited(known[c.name], c.options, asked)]
    problems += [f"{c.label}: {p}" for c in present for p in _unplaceable(known[c.name], c.options)]
    if problems:
        raise Trouble("\n".join(problems), problems=[{"message": p} for p in problems])


def _unplaceable(engine: Engine, options: dict[str, Any]) -> list[str]:
    """The problem of a real engine that leaves no core for the load driver."""
    if isinstance(engine, RealEngine):
        try:
            place(options)
        except NotEnoughCores as error:
            return [str(error)]
    return []


def go(experiment: Experiment, run: Run, limits: Limits, talk: Talk) -> NoReturn:
    """Run the experiment, show the result and exit. After an interruption, show how to resume."""
    try:
        with run.lock(), follow(talk.stderr) as listener:
            explored = explore(experiment, run, limits, listener)
    except KeyboardInterrupt:
        explored = answer(experiment, run, INTERRUPTED)
        say_how_to_resume(run, talk)
        present(experiment, run, explored, ExitCode.INTERRUPTED, talk)
    present(experiment, run, explored, explored.exit_code, talk)


def say_how_to_resume(run: Run, talk: Talk) -> None:
    """Print how many trials are kept after an interruption, and the command that resumes the run."""
    kept = run.trial_count()
    trials = "1 finished trial is kept" if kept == 1 else f"{kept} finished trials are kept"
    talk.say(f"Interrupted. {trials}. Resume the run with: streamgauge resume {run.id}")


def present(experiment: Experiment, run: Run, explored: Explored, code: ExitCode, talk: Talk) -> NoReturn:
    """Show a run, or write its document, put its report into its folder, and exit."""
    story = story_of(run, explored, code)
    if not talk.json:
        talk.show(render_run(view_run(story)))
    save_report(run, story, talk)
    talk.end(run_document(story), code)
