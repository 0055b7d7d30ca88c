"""The topics of a trial: what they are called, how they are set, and which brokers hold them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PREFIX = "streamgauge"
_PART = re.compile(r"[A-Za-z0-9-]+")
_NAME = re.compile(rf"{PREFIX}\.(?P<run>[A-Za-z0-9-]+)\.[0-9]+\.[A-Za-z0-9-]+")
_LONGEST = 249

SETTINGS = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
}
"""Every record is stamped by the broker as it is appended, and stays, as it came, until the topic goes."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to be made. ``settings`` come on top of ours."""

    name: str
    partitions: int
    replication: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def effective(self) -> dict[str, str]:
        """All settings that it is made with."""
        return {**SETTINGS, **self.settings}


def topic_name(run: str, trial: int, stream: str) -> str:
    """The topic of one stream of a trial. Its parts are told apart by dots, which no part contains."""
    for part in (run, stream):
        if not _PART.fullmatch(part):
            raise ValueError(f"{part!r} cannot be a part of a topic's name: letters, digits and dashes alone can")
    name = f"{PREFIX}.{run}.{trial:03d}.{stream}"
    if len(name) > _LONGEST:
        raise ValueError(f"{name} is too long for the name of a topic ({_LONGEST} characters)")
    return name


def run_of(name: str) -> str | None:
    """The run that a topic belongs to; None if it is none of ours."""
    found = _NAME.fullmatch(name)
    return found["run"] if found else None


def by_run(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Our topics among these, by run, in order of name."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):
        if (run := run_of(name)) is not None:
            found[run] = (*found.get(run, ()), name)
    return found


def assignment(partitions: int, replication: int, brokers: Sequence[int], leader: int) -> list[list[int]]:
    """The brokers of every partition. The first is its preferred leader, always the same one, so that one clock
    stamps everything (van Dongen §III-B); the copies go round among the others.
    """
    if leader not in brokers:
        raise ValueError(f"broker {leader} is not there to lead; there are {_list(brokers)}")
    others = [broker for broker in sorted(brokers) if broker != leader]
    if not 1 <= replication <= len(brokers):
        raise ValueError(f"{replication} copies of a partition need as many brokers; there are {_list(brokers)}")
    copies = range(replication - 1)
    return [[leader, *(others[(number + copy) % len(others)] for copy in copies)] for number in range(partitions)]


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
