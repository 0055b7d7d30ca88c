"""The table of what runs: engine × workload × variant × transport × format, computed from the registries.

Messages, ``engines``, ``workloads``, the documentation and the conformance suite read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.engines.contract import ANY_WORKLOAD, Engine, Situation
from streamgauge.engines.registry import engines
from streamgauge.model.experiment import Dimension, Span, TransportChoice, WorkloadChoice
from streamgauge.model.options import Options, Params
from streamgauge.transports.registry import transports
from streamgauge.workloads.registry import workloads


@dataclass(frozen=True, slots=True)
class Row:
    """One combination that runs."""

    engine: str
    workload: str
    """``*``: any workload that makes events, such as with a user's own function."""
    variant: str
    transport: str
    format: str
    """The format of records; empty if the transport does not encode events."""


def rows(known: Mapping[str, Engine] | None = None) -> list[Row]:
    """Every combination that runs on the installed engines, or on these."""
    found = []
    for name, engine in (engines() if known is None else known).items():
        for job in engine.jobs:
            for transport in sorted(job.transports & transports().keys()):
                for form in transports()[transport].formats or ("",):
                    found.append(Row(name, job.workload, job.variant, transport, form))
    return found


def workloads_of(engine: Engine) -> frozenset[str] | None:
    """Names of the workloads that an engine implements; None: any."""
    named = frozenset(job.workload for job in engine.jobs if job.workload != ANY_WORKLOAD)
    return named or (None if engine.jobs else frozenset())


def transports_of(engine: Engine, workload: str = "") -> frozenset[str]:
    """Names of the transports over which an engine runs a workload; without one, any of its workloads."""
    jobs = [job for job in engine.jobs if not workload or job.workload in (workload, ANY_WORKLOAD)]
    return frozenset[str]().union(*(job.transports for job in jobs))


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why an engine does not run a workload over a transport."""

    sentence: str
    """Without its end, which names what is allowed."""
    allowed: tuple[str, ...]
    """The transports over which it runs the workload, or any workload if it does not implement this one."""


def unsupported(engine: Engine, workload: str, transport: str) -> Unsupported | None:
    """Why none of the engine's jobs reads the workload from the transport; None if one does.

    ``workload`` is empty if it is not known.
    """
    every, can = transports_of(engine), transports_of(engine, workload)
    if transport in (can or every):
        return None
    condition = f" with the workload {workload}" if transport in every else ""
    sentence = f"engine {engine.name} does not support transport {transport}{condition}"
    return Unsupported(sentence, tuple(sorted(can or every)))


@dataclass(frozen=True, slots=True)
class Request:
    """What an experiment requires from its engines, as far as it is known."""

    workload: WorkloadChoice | None = None
    transport: TransportChoice = TransportChoice()
    partitions: int = 0
    searched: tuple[Dimension, Span] | None = None
    """The parameter that is searched and its values."""

    def situation(self, engine: Engine, options: Mapping[str, Any]) -> Situation[Options]:
        """The same for one engine with these resolved options."""
        return Situation(
            options=engine.options.from_resolved(options),
            workload=self.workload.name if self.workload else "",
            params=tuple(self.cases()),
            ranged=self.searched[0].name if self.searched and self.searched[1].between else "",
            transport=self.transport.name,
            transport_options=self.transport.options,
            partitions=self.partitions,
        )

    def cases(self) -> list[Params]:
        """The parameters of the workload: one set, or one for each value that is searched."""
        if self.workload is None or self.workload.name not in workloads():
            return []
        build, params = workloads()[self.workload.name].params.from_resolved, self.workload.params
        if self.searched is None:
            return [build(params)]
        dimension, span = self.searched
        whole = dimension.unit in ("count", "duration")
        values = [int(value) if whole else value for value in span.between or span.values]
        return [build(params | {dimension.name: value}) for value in values]
