"""Where a trial's events and outputs are on Kafka: what a child needs to reach its topics.

It goes to children through their standard input, with the secrets of the cluster in it, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from streamgauge.transport.kafka.cluster import Cluster, Security
from streamgauge.transport.kafka.columns import FormatName


@dataclass(frozen=True, slots=True)
class KafkaEnds:
    """The topics of one trial."""

    cluster: Cluster
    inputs: dict[str, str]
    """The topic of each stream of events."""
    output: str
    """The topic of the outputs."""
    format: FormatName
    group: str = ""
    """The consumer group that positions are committed to; empty: none."""
    largest: int = 0
    """Bytes of the largest record batch that the topics accept; 0: the cluster does not tell."""

    def wire(self) -> dict[str, Any]:
        """As JSON for a child's standard input, secrets revealed: never for a file or a command line."""
        return {
            "bootstrap": self.cluster.bootstrap,
            "security": _told(self.cluster.security) if self.cluster.security else None,
            "inputs": dict(self.inputs),
            "output": self.output,
            "format": self.format,
            "group": self.group,
            "largest": self.largest,
        }

    @classmethod
    def read(cls, wire: Mapping[str, Any]) -> "KafkaEnds":
        """What ``wire`` said."""
        security = _heard(wire["security"]) if wire["security"] else None
        return cls(
            cluster=Cluster(str(wire["bootstrap"]), security),
            inputs={str(stream): str(topic) for stream, topic in wire["inputs"].items()},
            output=str(wire["output"]),
            format=cast(FormatName, wire["format"]),
            group=str(wire["group"]),
            largest=int(wire["largest"]),
        )


_SECRETS = ("key_password", "password")
_PATHS = ("authority", "certificate", "key")
_PLAIN = ("tls", "check_host", "mechanism", "user")


def _told(security: Security) -> dict[str, Any]:
    held: dict[str, Any] = {name: getattr(security, name) for name in _PLAIN}
    held |= {name: None if (path := getattr(security, name)) is None else str(path) for name in _PATHS}
    secrets = {name: getattr(security, name) for name in _SECRETS}
    return held | {name: s.get_secret_value() if s else None for name, s in secrets.items()}


def _heard(told: Mapping[str, Any]) -> Security:
    held: dict[str, Any] = {name: told[name] for name in _PLAIN}
    held |= {name: None if told[name] is None else Path(told[name]) for name in _PATHS}
    held |= {name: None if told[name] is None else SecretStr(told[name]) for name in _SECRETS}
    return Security(**held)
