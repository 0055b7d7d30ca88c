"""The topics of a trial: their names, their settings, and the brokers of their partitions. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PREFIX = "streamgauge"
_PART = re.compile(r"[A-Za-z0-9-]+")
_NAME = re.compile(rf"{PREFIX}\.(?P<run>[A-Za-z0-9-]+)\.[0-9]+\.[A-Za-z0-9-]+")
_MAX_NAME = 249

SETTINGS = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
}
"""The broker stamps every record when it appends it, and keeps it unchanged until the topic is deleted."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to be created. ``settings`` are added to the usual ones, or replace them."""

    name: str
    partitions: int
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def effective(self) -> dict[str, str]:
        """All settings of the topic."""
        return {**SETTINGS, **self.settings}


def topic_name(run: str, trial: int, stream: str) -> str:
    """The topic of one stream of a trial. Dots separate its parts, so no part contains one."""
    for part in (run, stream):
        if not _PART.fullmatch(part):
            raise ValueError(f"{part!r} cannot be part of the name of a topic: only letters, digits and dashes can")
    name = f"{PREFIX}.{run}.{trial:03d}.{stream}"
    if len(name) > _MAX_NAME:
        raise ValueError(f"{name} is too long for the name of a topic ({_MAX_NAME} characters)")
    return name


def run_of(name: str) -> str | None:
    """The run that a topic belongs to; None if it belongs to no run."""
    found = _NAME.fullmatch(name)
    return found["run"] if found else None


def by_run(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The topics of runs among these, by run, sorted by name."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):
        if (run := run_of(name)) is not None:
            found[run] = (*found.get(run, ()), name)
    return found


def assignment(partitions: int, replication: int, brokers: Sequence[int], leader: int) -> list[list[int]]:
    """The brokers of every partition. The first is its preferred leader, always the same one, so that one clock
    stamps everything (van Dongen §III-B); the copies are distributed over the others in turn.
    """
    if leader not in brokers:
        raise ValueError(f"broker {leader} does not exist; there are {_list(brokers)}")
    others = [broker for broker in sorted(brokers) if broker != leader]
    if not 1 <= replication <= len(brokers):
        raise ValueError(f"{replication} copies of a partition need as many brokers; there are {_list(brokers)}")
    copies = range(replication - 1)
    return [[leader, *(others[(number + copy) % len(others)] for copy in copies)] for number in range(partitions)]


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
