"""``streamgauge run``: run an experiment and report the result."""

import secrets
import sys
from dataclasses import replace
from pathlib import Path

from streamgauge.cli.console import CliOutput
from streamgauge.cli.environment import runtime_folder
from streamgauge.cli.inputs import parse_experiment, read_limits, read_text
from streamgauge.cli.options import RUNS, Budget, ExperimentArgument, Json, Out, Pace, Set
from streamgauge.cli.requirements import prepare


def command(
    experiment: ExperimentArgument,
    *,
    out: Out = RUNS,
    set_: Set = None,
    budget: Budget = None,
    json: Json = False,
    pace: Pace = 0.0,
) -> None:
    """Run an experiment and report the result."""
    output = CliOutput(json)
    text, source = read_text(experiment)
    resolved = parse_experiment(text, source, set_)
    limits = read_limits(budget, pace)

    from streamgauge.cli.inputs import open_store
    from streamgauge.cli.run_loop import check_experiment, run_to_end
    from streamgauge.processes.clock import now
    from streamgauge.run.calibrate.load_limit import with_max_load
    from streamgauge.run.environment import capture

    check_experiment(resolved)
    store = open_store(out)
    limits = replace(limits, runtime=runtime_folder())
    limits = prepare(limits, resolved.transport, output.note, resolved.engines)
    resolved = with_max_load(resolved, store.root, secrets.token_hex(3), output.note, limits)
    run = store.create(resolved, text, capture(Path.cwd()), now(), secrets.token_hex(2), sys.argv)
    output.stored(f"The results are in {run.path}.")
    output.note(f"run {run.id}")
    run_to_end(resolved, run, limits, output)
