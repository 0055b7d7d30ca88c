"""``streamgauge setup``: check or install what Spark or Kafka needs from the system."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge.cli.console import Talk
from streamgauge.cli.options import Json

if TYPE_CHECKING:
    from streamgauge.install.java import Java


class Part(StrEnum):
    """What can be set up."""

    SPARK = "spark"
    KAFKA = "kafka"


def command(
    part: Annotated[
        Part,
        typer.Argument(metavar="PART", help="spark = Java for Spark; kafka = Java, Maven and the jars for Kafka."),
    ],
    json: Json = False,
) -> None:
    """Check or install what Spark or Kafka needs: Java, Maven and the Kafka jars.

    Java and Maven are installed with the package manager of the system if no password is needed. Otherwise the command
    to run is printed.
    """
    talk = Talk(json)

    from rich.text import Text

    from streamgauge.report.render.json import document

    sentence, found = _spark(talk) if part is Part.SPARK else _kafka(talk)
    talk.show(Text(f"{part.value}: {sentence}"))
    talk.end(document(0, part=part.value, **found))


def _spark(talk: Talk) -> tuple[str, dict[str, Any]]:
    from streamgauge.cli.spark import pyspark_or_trouble

    pyspark = pyspark_or_trouble()
    java, told = _java(talk)
    return f"PySpark {pyspark}, Java {java.version} in {java.home}", {"pyspark": pyspark, "java": told}


def _kafka(talk: Talk) -> tuple[str, dict[str, Any]]:
    from streamgauge.cli.cache import cache_folder
    from streamgauge.cli.kafka import client_or_trouble, fetch_missing
    from streamgauge.install.jars import NAMES, pinned

    client = client_or_trouble()
    java, told = _java(talk)
    fetched = fetch_missing(talk.say)
    sets = [pinned(name) for name in NAMES]
    jars = [{"name": s.name, "version": s.version, "folder": str(s.folder(cache_folder()))} for s in sets]
    sentence = f"confluent-kafka {client}, Java {java.version} in {java.home}, {sets[0].title} in {jars[0]['folder']}"
    return sentence, {"client": client, "java": told, "jars": jars, "fetched": fetched}


def _java(talk: Talk) -> "tuple[Java, dict[str, Any]]":
    """The Java, found or installed, and its entry in the JSON document."""
    from streamgauge.cli.errors import Trouble
    from streamgauge.cli.java import settle_java
    from streamgauge.install.ensure import ask_java, install, is_root
    from streamgauge.install.java import find_java, javas, missing
    from streamgauge.install.packages import manager

    java = settle_java(ask_java)
    installed = java is None and install("java", find_java, talk.say) is not None
    java = java or settle_java(ask_java)
    if java is None:
        raise Trouble(f"{missing([*javas(ask=ask_java)], manager(), is_root())}.")
    return java, {"version": java.version, "home": str(java.home), "installed": installed}
