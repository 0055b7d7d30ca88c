"""``streamgauge experiments``: the built-in experiments."""

from streamgauge.cli.console import CliOutput
from streamgauge.cli.options import Json


def command(json: Json = False) -> None:
    """List the built-in experiments, one line each. `streamgauge run NAME` runs one of them."""
    output = CliOutput(json)

    from streamgauge.parse.shipped import shipped_description, shipped_names
    from streamgauge.report.render.json import document

    found = {name: shipped_description(name) for name in shipped_names()}
    width = max(map(len, found), default=0)
    for name, description in found.items():
        output.print_line(f"{name:<{width}}  {description}")
    output.exit(document(0, experiments=[{"name": name, "description": text} for name, text in found.items()]))
