"""``streamgauge resume``: continue a run that ended early."""

from dataclasses import replace

from streamgauge.cli.cluster import with_kafka
from streamgauge.cli.commands.calibrate import runtime_folder
from streamgauge.cli.console import Talk
from streamgauge.cli.inputs import load_limits
from streamgauge.cli.options import RUNS, Budget, Json, Out, Pace, RunArgument


def command(
    run: RunArgument = "@last", out: Out = RUNS, budget: Budget = None, json: Json = False, pace: Pace = 0.0
) -> None:
    """Resume a run that was interrupted, killed, or ended by its budget. Finished trials are kept."""
    talk = Talk(json)
    load_limits(budget, pace)  # report a bad budget before searching for the run

    from streamgauge.cli.inputs import budget_of, find_run, shown
    from streamgauge.cli.run_loop import check_engines, go, present

    found = find_run(out, run)
    talk.keep(f"The results are in {found.path}.")
    ending = found.conclusion()
    if ending is not None and not ending.ended:
        talk.say(f"Run {found.id} is already finished. This is its result.")
        known = shown(found)
        present(found.experiment, found, known, known.exit_code, talk)
    check_engines(found.experiment)
    kept = found.trial_count()
    talk.say(f"Resuming run {found.id} after {kept} finished trial{'' if kept == 1 else 's'}")
    limits = replace(load_limits(budget or budget_of(found), pace), runtime=runtime_folder())
    limits = with_kafka(limits, found.experiment.transport, talk.say, found.experiment.engines)
    go(found.experiment, found, limits, talk)
