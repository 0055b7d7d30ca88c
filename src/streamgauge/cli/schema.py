"""``streamgauge schema``: the JSON Schema of experiment files, for editors."""

from streamgauge.cli.options import Json
from streamgauge.cli.talk import Talk, write_bytes


def command(json: Json = False) -> None:
    """Print the JSON Schema of experiment files, for an editor to check and complete."""
    from streamgauge.parse import schema
    from streamgauge.report.encode import document, encode

    talk = Talk(json)
    found = schema()
    if not json:
        write_bytes(encode(found))
    talk.end(document(0, schema=found))
