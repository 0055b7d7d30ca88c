"""``streamgauge init``: a first experiment file, with every line explained."""

from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import Json, path_from
from streamgauge.report.render.json import document

TEMPLATE = """\
# Run this experiment:               streamgauge run {name}
# Estimate its trials and time:      streamgauge plan {name}
name: my-first

# The job to run. `streamgauge workloads` lists the workloads with their parameters.
workload: {{name: windowed-aggregation, window: 8s, slide: 4s}}

# The system under test. `streamgauge engines` lists the engines with their options.
# To compare several engines, write `engines: [..., ...]` instead.
engine: {{name: simulated, capacity: 730k/s, noise: 3%, warmup: 10s}}

# What to find: sustainable-throughput, demand, capacity, extreme, or nothing (measure fixed loads without a search).
find: sustainable-throughput

# The range of loads to search. A wide range is fine: the search begins near the limit that it estimates, and it never
# goes above the highest load that streamgauge can generate on schedule on this machine.
load: {{between: [10k/s, 50M/s]}}

# The conditions that a trial must meet. In lag-trend, a percentage is a share of the load.
# Other examples: event-time p95 < 2s, queue < 1M, drops == 0.
objective: [lag-trend <= 1%, lost == 0]

# How far apart the highest passing and the lowest failing load may be.
search: {{strategy: adaptive, precision: 5%}}

# The length of a trial. `warmup: auto` ends the warm-up when the system is steady. A trial that is still undecided
# because of noise is extended up to `limit`. Longer trials can decide loads closer to the limit of the system.
trial: {{duration: 30s, warmup: auto, limit: 90s, repetitions: 1}}

# The same seed generates the same events.
seed: 7
"""


def command(
    path: Annotated[Path, typer.Argument(metavar="FILE", parser=path_from, help="The file to write.")] = Path(
        "experiment.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    json: Json = False,
) -> None:
    """Write a first experiment file with comments."""
    output = CliOutput(json)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=path))
    except FileExistsError:
        raise UserError(f"{path} already exists. Choose another name, or overwrite it with --force.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be written: {reason}. Choose another place.") from None
    output.stored(f"The experiment is in {path}.")
    output.note(f"Wrote {path}. Run it with: streamgauge run {path}")
    output.exit(document(0, path=str(path)))
