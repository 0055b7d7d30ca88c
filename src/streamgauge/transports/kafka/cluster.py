"""A Kafka cluster as its clients see it: where it is, and how it lets them in. Ours and the user's are one noun.

Secrets are held in ``SecretStr``, which shows stars in every repr, log and document; they leave it only in the
settings that a client is given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import SecretStr

from streamgauge.transports.kafka.formats.columns import FormatName

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_LOGIN_MODULES: dict[Mechanism, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Security:
    """How a cluster lets clients in: TLS, SASL, or both. Certificates and keys are PEM files."""

    tls: bool = False
    authority: Path | None = None
    """The certificates that sign the cluster's; None: those that the system trusts."""
    certificate: Path | None = None
    """Ours, where the cluster asks its clients for one, with its ``key``."""
    key: Path | None = None
    """Its file holds the certificate as well where a client on the JVM is to use it."""
    key_password: SecretStr | None = None
    check_host: bool = True
    """Whether the name in a broker's certificate must be the one that it is reached by."""
    mechanism: Mechanism | None = None
    user: str = ""
    password: SecretStr | None = None

    def __post_init__(self) -> None:
        if self.mechanism is not None and not (self.user and self.password):
            raise ValueError(f"{self.mechanism} needs user and password")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key need each other; set both, or none")

    @property
    def protocol(self) -> str:
        """Kafka's name for the combination."""
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def client_settings(self) -> dict[str, str]:
        """The settings of librdkafka. They hold the secrets: hand them to the client, and to nothing else."""
        held = {"security.protocol": self.protocol}
        if self.tls:
            held |= _present(
                {
                    "ssl.ca.location": self.authority,
                    "ssl.certificate.location": self.certificate,
                    "ssl.key.location": self.key,
                    "ssl.key.password": self.key_password,
                }
            )
            held["ssl.endpoint.identification.algorithm"] = "https" if self.check_host else "none"
        if self.mechanism is not None and self.password is not None:
            held["sasl.mechanism"] = self.mechanism
            held["sasl.username"] = self.user
            held["sasl.password"] = self.password.get_secret_value()
        return held

    def java_settings(self) -> dict[str, str]:
        """The same for clients on the JVM, such as Spark's connector."""
        held = {"security.protocol": self.protocol}
        if self.tls:
            held |= _present(
                {
                    "ssl.truststore.location": self.authority,
                    "ssl.keystore.location": self.key,
                    "ssl.key.password": self.key_password,
                }
            )
            held |= {f"ssl.{kind}.type": "PEM" for kind in ("truststore", "keystore") if f"ssl.{kind}.location" in held}
            held["ssl.endpoint.identification.algorithm"] = "https" if self.check_host else ""
        if self.mechanism is not None and self.password is not None:
            held["sasl.mechanism"] = self.mechanism
            held["sasl.jaas.config"] = login(self.mechanism, self.user, self.password)
        return held


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is, as ``host:port`` and more of them after commas, and how it lets us in."""

    bootstrap: str
    security: Security | None = None

    @property
    def plain(self) -> bool:
        """Whether a bare connection will do: no TLS, no SASL."""
        return self.security is None or self.security.protocol == "PLAINTEXT"

    def client_settings(self) -> dict[str, str]:
        """What a client of confluent-kafka needs to reach it, secrets included."""
        return {"bootstrap.servers": self.bootstrap} | (self.security.client_settings() if self.security else {})

    def java_settings(self) -> dict[str, str]:
        """What a client on the JVM needs to reach it, secrets included."""
        return {"bootstrap.servers": self.bootstrap} | (self.security.java_settings() if self.security else {})


def login(mechanism: Mechanism, user: str, password: SecretStr) -> str:
    """The line by which a JVM logs in."""
    known = f'username="{_quoted(user)}" password="{_quoted(password.get_secret_value())}"'
    return f"{_LOGIN_MODULES[mechanism]} required {known};"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _present(held: dict[str, Path | SecretStr | None]) -> dict[str, str]:
    return {key: v.get_secret_value() if isinstance(v, SecretStr) else str(v) for key, v in held.items() if v}


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
