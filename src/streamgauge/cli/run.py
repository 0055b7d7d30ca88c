"""``streamgauge run``: ask an experiment's question and answer it."""

import secrets
import sys
from pathlib import Path

from streamgauge.cli.load import load_limits, load_text, parse_experiment
from streamgauge.cli.options import RUNS, Budget, ExperimentArgument, Json, Out, Pace, Set
from streamgauge.cli.talk import Talk


def command(
    experiment: ExperimentArgument,
    *,
    out: Out = RUNS,
    set_: Set = None,
    budget: Budget = None,
    json: Json = False,
    pace: Pace = 0.0,
) -> None:
    """Run an experiment: trial after trial until its question is answered."""
    talk = Talk(json)
    text, source = load_text(experiment)
    question = parse_experiment(text, source, set_)
    limits = load_limits(budget, pace)

    from streamgauge.cli.going import check_engines, go
    from streamgauge.cli.runs import open_store
    from streamgauge.run.clock import now
    from streamgauge.run.environment import capture

    check_engines(question)
    store = open_store(out)
    run = store.create(question, text, capture(Path.cwd()), now(), secrets.token_hex(2), sys.argv)
    talk.say(f"run {run.id}")
    go(question, run, limits, talk)
