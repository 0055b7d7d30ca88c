"""What engines and transports require: checked before a run, with what is missing as an error for the user."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamgauge.cli.environment import choose_java, locations, take_secrets
from streamgauge.cli.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamgauge.engines.contract import Engine, Options
    from streamgauge.install.ensure import Status
    from streamgauge.install.requirements import Requirement
    from streamgauge.model.experiment import EngineChoice, TransportChoice
    from streamgauge.run.trial.setup import RunLimits
    from streamgauge.transports.contract import Secrets, Transport


@dataclass(frozen=True, slots=True)
class Part:
    """An engine or a transport with its default options, as ``setup`` and ``doctor`` check it."""

    kind: str
    name: str
    requirements: "tuple[Requirement, ...]"


def parts() -> list[Part]:
    """All engines and transports with what they require, the engines first."""
    from streamgauge.engines.registry import engines
    from streamgauge.model.experiment import TransportChoice
    from streamgauge.transports.registry import transports

    usual = TransportChoice().name
    of_engines = [
        Part("engine", name, tuple(engine.requirements(_defaults(engine), usual))) for name, engine in engines().items()
    ]
    return [*of_engines, *(_transport_part(name, transport) for name, transport in transports().items())]


def _transport_part(name: str, transport: "Transport") -> Part:
    """A transport, with the jars that engines need to use it."""
    from streamgauge.engines.registry import engines
    from streamgauge.engines.table import transports_of
    from streamgauge.install.requirements import JarSet

    users = [engine for engine in engines().values() if name in transports_of(engine)]
    needed = [each for engine in users for each in engine.requirements(_defaults(engine), name)]
    connectors = [each for each in needed if isinstance(each, JarSet)]
    own = transport.requirements(transport.options())
    return Part("transport", name, tuple(dict.fromkeys([*own, *connectors])))


def _defaults(engine: "Engine") -> "Options":
    """The default options of an engine. Options without a default are omitted."""
    return engine.options.from_resolved({})


def missing(requirements: "Iterable[Requirement]") -> list[str]:
    """A sentence for each package and program that is missing, with its fix. Jars do not count: runs download them."""
    from streamgauge.install.ensure import examine
    from streamgauge.install.requirements import JarSet

    found = examine((each for each in requirements if not isinstance(each, JarSet)), locations())
    return [status.problem for status in found if not status.met]


def require(requirements: "Iterable[Requirement]", note: "Callable[[str], object]") -> "tuple[Status, ...]":
    """Download missing jars, and let child processes use the Java. Raises UserError for what else is missing."""
    from streamgauge.install.ensure import RequirementError, ensure
    from streamgauge.install.requirements import JavaRuntime

    wanted = [*requirements]
    if problems := missing(wanted):
        raise UserError("\n".join(problems))
    try:
        found = ensure(wanted, locations(), note)
    except RequirementError as error:
        raise UserError(str(error)) from None
    for status in found:
        if isinstance(status.requirement, JavaRuntime) and status.folder is not None:
            choose_java(status.folder)
    return found


def prepare(
    limits: "RunLimits",
    choice: "TransportChoice",
    note: "Callable[[str], object]",
    engines: "Sequence[EngineChoice]" = (),
) -> "RunLimits":
    """Meet all requirements of a transport and of these engines, and check the external system of the transport.

    Returns the limits with the folder of the jars and with the secrets. Raises UserError with what is missing.
    """
    from streamgauge.transports.registry import transport_of

    transport, options = transport_of(choice)
    require([*transport.requirements(options), *engine_requirements(engines, choice)], note)
    secrets = secrets_of(choice)
    if problems := transport.check(options, secrets):
        raise UserError("\n".join(problems))
    return replace(limits, cache=locations().cache, secrets=secrets)


def engine_requirements(choices: "Sequence[EngineChoice]", transport: "TransportChoice") -> "list[Requirement]":
    """What these engines require over a transport."""
    from streamgauge.engines.registry import engines

    found = [(engine, choice) for choice in choices if (engine := engines().get(choice.name))]
    return [
        each
        for engine, choice in found
        for each in engine.requirements(engine.options.from_resolved(choice.options), transport.name)
    ]


def secrets_of(choice: "TransportChoice") -> "Secrets":
    """The secrets of a transport from the environment, which then no longer has them."""
    from streamgauge.transports.registry import transport_of

    transport, options = transport_of(choice)
    return take_secrets(transport.secret_variables(options))
