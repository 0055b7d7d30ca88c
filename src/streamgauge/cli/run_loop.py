"""What ``run`` and ``resume`` share: execute the trials of an experiment and present the result."""

from collections.abc import Iterable
from typing import NoReturn

from streamgauge.cli.commands.report import save_report
from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.inputs import run_report
from streamgauge.cli.progress import progress_for
from streamgauge.cli.requirements import engine_requirements, missing
from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import engines
from streamgauge.engines.table import Request, unsupported, workloads_of
from streamgauge.model.experiment import LOAD, EngineChoice, Experiment
from streamgauge.processes.placement import NotEnoughCores
from streamgauge.report.render.json import run_document
from streamgauge.report.render.terminal import render_run
from streamgauge.report.view.findings import view_run
from streamgauge.run.calibrate.load_limit import placements_of
from streamgauge.run.explore import explore
from streamgauge.run.result import ExitCode, RunResult, result_of
from streamgauge.run.trial.setup import RunLimits
from streamgauge.store import Run
from streamgauge.transports.registry import transports

INTERRUPTED = "it was interrupted"


def check_experiment(experiment: Experiment) -> None:
    """Raise UserError with all problems of the engines that are known before the first trial."""
    known = engines()
    absent = {c.name for c in experiment.engines if c.name not in known}
    problems = [
        f"engine {name!r} is not installed. Install the Python package that provides it" for name in sorted(absent)
    ]
    present = [c for c in experiment.engines if c.name in known]
    searched = (experiment.dimension, experiment.span) if experiment.dimension != LOAD else None
    wanted = Request(experiment.workload, experiment.transport, experiment.trial.partitions, searched)
    if experiment.transport.name in transports():
        for choice in present:
            engine = known[choice.name]
            found = [*_not_in_the_table(engine, experiment), *engine.check(wanted.situation(engine, choice.options))]
            problems += [f"{choice.label}: {problem}" for problem in [*found, *_placement_problems(choice)]]
    if experiment.transport.name not in transports():
        name = experiment.transport.name
        problems.append(f"transport {name!r} is not installed. Install the Python package that provides it")
    problems += missing(engine_requirements(present, experiment.transport))
    if problems:
        raise UserError("\n".join(problems), problems=[{"message": p} for p in problems])


def _not_in_the_table(engine: Engine, experiment: Experiment) -> list[str]:
    """Why no job of the engine runs this workload over this transport: the installed engine may be another version."""
    workload, known = experiment.workload.name, workloads_of(engine)
    if known is not None and workload not in known:
        return [f"engine {engine.name} does not implement the workload {workload}; it implements {_listed(known)}"]
    found = unsupported(engine, workload, experiment.transport.name)
    return [] if found is None else [f"{found.sentence}; it supports {_listed(found.allowed)}"]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _placement_problems(choice: EngineChoice) -> list[str]:
    """The problem of a real engine that leaves no core for the load driver."""
    try:
        placements_of([choice])
    except NotEnoughCores as error:
        return [str(error)]
    return []


def run_to_end(experiment: Experiment, run: Run, limits: RunLimits, output: CliOutput) -> NoReturn:
    """Run the experiment, show the result and exit. After an interruption, show how to resume."""
    try:
        with run.lock(), progress_for(output.stderr) as listener:
            explored = explore(experiment, run, limits, listener)
    except KeyboardInterrupt:
        explored = result_of(experiment, run, INTERRUPTED)
        note_how_to_resume(run, output)
        present(experiment, run, explored, ExitCode.INTERRUPTED, output)
    present(experiment, run, explored, explored.exit_code, output)


def note_how_to_resume(run: Run, output: CliOutput) -> None:
    """Print how many trials are kept after an interruption, and the command that resumes the run."""
    count = run.trial_count()
    trials = "1 finished trial is kept" if count == 1 else f"{count} finished trials are kept"
    output.note(f"Interrupted. {trials}. Resume the run with: streamgauge resume {run.id}")


def present(experiment: Experiment, run: Run, explored: RunResult, code: ExitCode, output: CliOutput) -> NoReturn:
    """Show a run, or write its document, put its report into its folder, and exit."""
    report = run_report(run, explored, code)
    if not output.json:
        output.print(render_run(view_run(report)))
    save_report(run, report, output)
    output.exit(run_document(report), code)
