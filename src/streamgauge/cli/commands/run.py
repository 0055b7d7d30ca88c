"""``streamgauge run``: run an experiment and report the result."""

import secrets
import sys
from dataclasses import replace
from pathlib import Path

from streamgauge.cli.cluster import with_kafka
from streamgauge.cli.commands.calibrate import runtime_folder
from streamgauge.cli.console import Talk
from streamgauge.cli.inputs import load_limits, load_text, parse_experiment
from streamgauge.cli.options import RUNS, Budget, ExperimentArgument, Json, Out, Pace, Set


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
    talk = Talk(json)
    text, source = load_text(experiment)
    question = parse_experiment(text, source, set_)
    limits = load_limits(budget, pace)

    from streamgauge.cli.inputs import open_store
    from streamgauge.cli.run_loop import check_engines, go
    from streamgauge.processes.clock import now
    from streamgauge.run.calibrate.load_limit import with_ceiling
    from streamgauge.run.environment import capture

    check_engines(question)
    store = open_store(out)
    limits = replace(limits, runtime=runtime_folder())
    limits = with_kafka(limits, question.transport, talk.say, question.engines)
    question = with_ceiling(question, store.root, secrets.token_hex(3), talk.say, limits)
    run = store.create(question, text, capture(Path.cwd()), now(), secrets.token_hex(2), sys.argv)
    talk.keep(f"The results are in {run.path}.")
    talk.say(f"run {run.id}")
    go(question, run, limits, talk)
