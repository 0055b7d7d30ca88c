"""How events travel: ``transport: kafka``, or a mapping with its options."""

from collections.abc import Sequence

from streamgauge.engines.base import Conditions, transports, unsuited
from streamgauge.model.transport import TransportChoice
from streamgauge.parse.choices import ChosenEngine, named
from streamgauge.parse.fields import fits
from streamgauge.parse.nodes import Node, Table
from streamgauge.parse.problems import Problems, shown
from streamgauge.parse.sections import Section
from streamgauge.transport.kafka.options import KafkaOptions

TRANSPORTS: dict[str, type[KafkaOptions | Section]] = {"queue": Section, "kafka": KafkaOptions}
"""By name, what may be said of each. The queue has no options."""
SUMMARIES = {
    "queue": "a queue in the memory of the load driver",
    "kafka": "Kafka topics between load generator and system under test, and for its outputs",
}


def read_transport(node: Node | None, problems: Problems) -> TransportChoice | None:
    """The transport with its options resolved, or None with the problems noted."""
    if node is None:
        return TransportChoice()
    found = named(node, "transport", problems)
    if found is None:
        return None
    name, mark, table = found
    if name not in TRANSPORTS:
        problems.add(mark, "transport.name", f"unknown transport {shown(name)}", TRANSPORTS, name)
        return None
    options = fits(TRANSPORTS[name], table, "transport", problems, noun="option", besides=("name",))
    if not isinstance(options, KafkaOptions):
        return TransportChoice() if options is not None else None
    return TransportChoice("kafka", options.dumped())


def check_conditions(
    conditions: Conditions | None, engines: Sequence[ChosenEngine], root: Table, problems: Problems
) -> None:
    """Whether every engine of the file can take its events from there, and do what is asked of it with them."""
    if conditions is None:
        return
    choice = conditions.transport
    for chosen in engines:
        can = transports(chosen.engine)
        if choice.name not in can and "transport" in root.entries:
            message = f"engine {chosen.choice.name} does not support transport {choice.name}"
            problems.add(root.entries["transport"].node.mark, "transport", message, sorted(can))
        for sentence in unsuited(chosen.engine, chosen.choice.options, conditions):
            problems.add(chosen.table.mark, chosen.key, sentence)
