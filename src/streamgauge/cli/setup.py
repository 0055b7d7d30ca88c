"""``streamgauge setup``: what a part needs from the system, installed where that is possible without asking."""

from enum import StrEnum
from typing import Annotated

import typer

from streamgauge.cli.options import Json
from streamgauge.cli.talk import Talk


class Part(StrEnum):
    """What can be set up."""

    SPARK = "spark"


def command(
    part: Annotated[Part, typer.Argument(metavar="PART", help="What to set up: spark.")], json: Json = False
) -> None:
    """Find or install what a part needs: a Java for Spark."""
    talk = Talk(json)

    from rich.text import Text

    from streamgauge.cli.java import settle_java
    from streamgauge.cli.spark import pyspark_or_trouble
    from streamgauge.cli.trouble import Trouble
    from streamgauge.engines.java import javas, manager, missing
    from streamgauge.report.encode import document
    from streamgauge.run.install_java import ask_java, install_java, is_root

    pyspark = pyspark_or_trouble()
    java = settle_java(ask_java)
    installed = java is None and install_java(talk.say) is not None
    java = java or settle_java(ask_java)
    if java is None:
        raise Trouble(f"{missing([*javas(ask=ask_java)], manager(), is_root())}.")
    talk.show(Text(f"{part.value}: PySpark {pyspark}, Java {java.version} in {java.home}"))
    found = {"version": java.version, "home": str(java.home), "installed": installed}
    talk.end(document(0, part=part.value, pyspark=pyspark, java=found))
