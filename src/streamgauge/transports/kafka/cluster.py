"""A Kafka cluster for its clients: its address and its login. Local and external clusters have the same type.

Secrets are in ``SecretStr``, which shows stars in every repr, log and document. They are revealed only in the settings
of a client and in the message to a child process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import SecretStr

from streamgauge.model.streams import Column, ColumnType, Schema
from streamgauge.transports.kafka.formats.columns import FormatName

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_LOGIN_MODULES: dict[Mechanism, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def missing_setting(
    mechanism: Mechanism | None, login: tuple[object, object], certificate: tuple[object, object]
) -> tuple[str, str] | None:
    """The setting that needs another one, and a sentence with both; None if none is missing.

    ``login`` is user and password, ``certificate`` is the certificate of the client and its key.
    """
    if mechanism is not None and not all(login):
        return "mechanism", f"{mechanism} needs user and password"
    if (certificate[0] is None) != (certificate[1] is None):
        return "certificate", "certificate and key need each other; set both, or none"
    return None


@dataclass(frozen=True, slots=True)
class Security:
    """How clients of a cluster connect: with TLS, SASL, or both. Certificates and keys are PEM files."""

    tls: bool = False
    authority: Path | None = None
    """The certificates that sign those of the cluster; None: those that the system trusts."""
    certificate: Path | None = None
    """That of the client, with its ``key``, if the cluster requires one."""
    key: Path | None = None
    """The file must also contain the certificate if a client on the JVM uses it."""
    key_password: SecretStr | None = None
    check_host: bool = True
    """Whether the certificate of a broker must contain its host name."""
    mechanism: Mechanism | None = None
    user: str = ""
    password: SecretStr | None = None

    def __post_init__(self) -> None:
        missing = missing_setting(self.mechanism, (self.user, self.password), (self.certificate, self.key))
        if missing is not None:
            raise ValueError(missing[1])

    @property
    def protocol(self) -> str:
        """Kafka's name for the combination."""
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def client_settings(self) -> dict[str, str]:
        """The settings of librdkafka. They contain the secrets: pass them to the client, and to nothing else."""
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
        """The same for clients on the JVM, such as the Kafka connector of Spark."""
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
            held["sasl.jaas.config"] = jaas_config(self.mechanism, self.user, self.password)
        return held


@dataclass(frozen=True, slots=True)
class Cluster:
    """The addresses of a cluster, ``host:port`` separated by commas, and how clients connect to it."""

    bootstrap: str
    security: Security | None = None

    @property
    def plaintext(self) -> bool:
        """Whether connections use neither TLS nor SASL."""
        return self.security is None or self.security.protocol == "PLAINTEXT"

    def client_settings(self) -> dict[str, str]:
        """The settings of a client of confluent-kafka, secrets included."""
        return {"bootstrap.servers": self.bootstrap} | (self.security.client_settings() if self.security else {})

    def java_settings(self) -> dict[str, str]:
        """The settings of a client on the JVM, secrets included."""
        return {"bootstrap.servers": self.bootstrap} | (self.security.java_settings() if self.security else {})


def jaas_config(mechanism: Mechanism, user: str, password: SecretStr) -> str:
    """The JAAS configuration by which a JVM logs in."""
    known = f'username="{_quoted(user)}" password="{_quoted(password.get_secret_value())}"'
    return f"{_LOGIN_MODULES[mechanism]} required {known};"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _present(held: dict[str, Path | SecretStr | None]) -> dict[str, str]:
    return {key: v.get_secret_value() if isinstance(v, SecretStr) else str(v) for key, v in held.items() if v}


@dataclass(frozen=True, slots=True)
class KafkaEndpoints:
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
    """Bytes of the largest record batch that the topics accept; 0: the cluster does not return it."""
    partitions: int = 1
    """Of each topic of events, and of the topic of the outputs."""
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    """The columns of the events of each stream."""
    output_schema: Schema = ()
    """The columns of the workload's outputs."""
    output_key: str | None = None
    """The column whose value is the key of the record of an output."""
    transport: str = "kafka"

    def wire(self) -> dict[str, Any]:
        """As JSON for the standard input of a child process, with secrets: never for a file or a command line."""
        return {
            "transport": self.transport,
            "bootstrap": self.cluster.bootstrap,
            "security": _security_to_json(self.cluster.security) if self.cluster.security else None,
            "inputs": dict(self.inputs),
            "output": self.output,
            "format": self.format,
            "group": self.group,
            "largest": self.largest,
            "partitions": self.partitions,
            "schemas": {stream: _schema_to_json(schema) for stream, schema in self.schemas.items()},
            "output_schema": _schema_to_json(self.output_schema),
            "output_key": self.output_key,
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "KafkaEndpoints":
        """The inverse of ``wire``."""
        security = _security_from_json(wire["security"]) if wire["security"] else None
        return cls(
            cluster=Cluster(str(wire["bootstrap"]), security),
            inputs={str(stream): str(topic) for stream, topic in wire["inputs"].items()},
            output=str(wire["output"]),
            format=cast(FormatName, wire["format"]),
            group=str(wire["group"]),
            largest=int(wire["largest"]),
            partitions=int(wire["partitions"]),
            schemas={str(stream): _schema_from_json(schema) for stream, schema in wire["schemas"].items()},
            output_schema=_schema_from_json(wire["output_schema"]),
            output_key=wire["output_key"],
        )


def _schema_to_json(schema: Schema) -> list[list[str]]:
    return [[column.name, column.type] for column in schema]


def _schema_from_json(columns: Sequence[Sequence[str]]) -> Schema:
    return tuple(Column(str(name), cast(ColumnType, str(kind))) for name, kind in columns)


_SECRETS = ("key_password", "password")
_PATHS = ("authority", "certificate", "key")
_VALUES = ("tls", "check_host", "mechanism", "user")


def _security_to_json(security: Security) -> dict[str, Any]:
    held: dict[str, Any] = {name: getattr(security, name) for name in _VALUES}
    held |= {name: None if (path := getattr(security, name)) is None else str(path) for name in _PATHS}
    secrets = {name: getattr(security, name) for name in _SECRETS}
    return held | {name: s.get_secret_value() if s else None for name, s in secrets.items()}


def _security_from_json(values: Mapping[str, Any]) -> Security:
    held: dict[str, Any] = {name: values[name] for name in _VALUES}
    held |= {name: None if values[name] is None else Path(values[name]) for name in _PATHS}
    held |= {name: None if values[name] is None else SecretStr(values[name]) for name in _SECRETS}
    return Security(**held)
