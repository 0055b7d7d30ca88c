"""``streamgauge schema``: the JSON Schema of experiment files, for editors."""

from streamgauge.cli.console import CliOutput, write_bytes
from streamgauge.cli.options import Json


def command(json: Json = False) -> None:
    """Print the JSON Schema of experiment files, for an editor to check and complete."""
    from streamgauge.parse import schema
    from streamgauge.report.render.json import document, encode

    output = CliOutput(json)
    found = schema()
    if not json:
        write_bytes(encode(found))
    output.exit(document(0, schema=found))
