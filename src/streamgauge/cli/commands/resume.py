"""``streamgauge resume``: continue a run that ended early."""

from dataclasses import replace

from streamgauge.cli.console import CliOutput
from streamgauge.cli.environment import runtime_folder
from streamgauge.cli.inputs import read_limits
from streamgauge.cli.options import RUNS, Budget, Json, Out, Pace, RunArgument
from streamgauge.cli.requirements import prepare


def command(
    run: RunArgument = "@last", out: Out = RUNS, budget: Budget = None, json: Json = False, pace: Pace = 0.0
) -> None:
    """Resume a run that was interrupted, killed, or ended by its budget. Finished trials are kept."""
    output = CliOutput(json)
    read_limits(budget, pace)  # report a bad budget before searching for the run

    from streamgauge.cli.inputs import conclusion_of, find_run, original_budget, refuse_older
    from streamgauge.cli.run_loop import check_experiment, present, run_to_end

    found = find_run(out, run)
    output.stored(f"The results are in {found.path}.")
    ending = found.conclusion()
    if ending is not None and not ending.ended:
        output.note(f"Run {found.id} is already finished. This is its result.")
        known = conclusion_of(found)
        present(found.experiment, found, known, known.exit_code, output)
    refuse_older(found, found.trials())
    check_experiment(found.experiment)
    count = found.trial_count()
    output.note(f"Resuming run {found.id} after {count} finished trial{'' if count == 1 else 's'}")
    limits = replace(read_limits(budget or original_budget(found), pace), runtime=runtime_folder())
    limits = prepare(limits, found.experiment.transport, output.note, found.experiment.engines)
    run_to_end(found.experiment, found, limits, output)
