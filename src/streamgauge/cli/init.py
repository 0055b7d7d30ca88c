"""``streamgauge init``: a first experiment file, with every line explained."""

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.options import Json, path_from
from streamgauge.cli.talk import Talk
from streamgauge.cli.trouble import Trouble
from streamgauge.report.encode import document

TEMPLATE = """\
# An experiment asks one question. Run it:   streamgauge run {name}
# See first what it would take:              streamgauge plan {name}
name: my-first

# What is computed. `streamgauge workloads` lists them with their parameters.
workload: {{name: windowed-aggregation, window: 8s, slide: 4s}}

# What computes it. `streamgauge engines` lists them with their options.
# Write `engines: [..., ...]` instead to compare several.
engine: {{name: simulated, capacity: 730k/s, noise: 3%, warmup: 10s}}

# The question: sustainable-throughput, demand, capacity, extreme, or nothing (just measure).
find: sustainable-throughput

# The loads to look at.
load: {{between: [10k/s, 5M/s]}}

# What must hold. Percent are of the offered load. Others: event-time p95 < 2s, queue < 1M, drops == 0.
objective: [lag-trend <= 1%, lost == 0]

# How narrow the bracket around the answer has to be.
search: {{strategy: adaptive, precision: 5%}}

# How long one trial is. `warmup: auto` ends the warm-up when the system is steady. A trial that noise leaves undecided
# is extended up to `limit`; longer trials decide closer to the limit of the system.
trial: {{duration: 30s, warmup: auto, limit: 90s, repetitions: 1}}

# The same seed makes the same events.
seed: 7
"""


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", parser=path_from, help="The file to write.")] = Path(
        "experiment.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
    json: Json = False,
) -> None:
    """Write a first experiment file with comments."""
    talk = Talk(json)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=path))
    except FileExistsError:
        raise Trouble(f"{path} is there already. Choose another name, or overwrite it with --force.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Trouble(f"{path} cannot be written: {reason}. Choose another place.") from None
    talk.keep(f"The experiment is in {path}.")
    talk.say(f"Wrote {path}. Run it with: streamgauge run {path}")
    talk.end(document(0, path=str(path)))
