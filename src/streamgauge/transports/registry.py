"""All transports by name: the built-in ones, and those that other packages provide as entry points."""

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from streamgauge.model.discovery import Discovery, discover, installed, names
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.options import Options
from streamgauge.transports.contract import Transport

GROUP = "streamgauge.transports"
BUILT_IN = (
    EntryPoint("queue", "streamgauge.transports.queue.transport:queue", GROUP),
    EntryPoint("kafka", "streamgauge.transports.kafka.transport:kafka", GROUP),
)
"""The built-in transports: a further one is a further line. Those of other packages are entry points of the group."""


@cache
def _discovered() -> Discovery:
    return discover("transport", Transport, installed(GROUP, BUILT_IN))


def transports() -> dict[str, Transport]:
    """The transports that can be used, by name."""
    return dict(_discovered().found)


def transport_names() -> tuple[str, ...]:
    """The names of the installed transports. None of them is imported."""
    return names(installed(GROUP, BUILT_IN))


def load_problems() -> tuple[str, ...]:
    """A sentence for each transport that is installed but cannot be used."""
    return _discovered().problems


def choice_of(transport: Transport, options: Options) -> TransportChoice:
    """A transport with these options, as experiments and trials store it."""
    resolved = options.model_dump(mode="json")
    return TransportChoice(transport.name, resolved, broker=transport.broker, exact_offsets=transport.exact_offsets)


def transport_of(choice: TransportChoice) -> tuple[Transport, Any]:
    """The transport of an experiment or a trial, and its options."""
    transport = transports()[choice.name]
    return transport, transport.resolve(choice.options)


def identity_of(choice: TransportChoice) -> str:
    """The name under which calibrations over this transport are stored."""
    transport, options = transport_of(choice)
    return transport.identity(options)
