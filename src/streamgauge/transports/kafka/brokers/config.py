"""A Kafka broker on this machine, described: its settings, the words that format its storage, and its process.

The first broker is the controller as well; more of them are brokers alone, so that they can be started one after the
other and no quorum has to be found. Everything listens on the loopback interface alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Child, PortReady
from streamgauge.transports.kafka.cluster import Mechanism

HOST = "127.0.0.1"
MECHANISM: Mechanism = "SCRAM-SHA-512"

_START_DEADLINE = 90 * SECOND
_GRACE = SECOND
"""Its data are thrown away, so it need not put them in order."""

_LOG = {
    "org.slf4j.simpleLogger.showDateTime": "true",
    "org.slf4j.simpleLogger.dateTimeFormat": "HH:mm:ss.SSS",
    "org.slf4j.simpleLogger.showShortLogName": "true",
}
_SERVER_FLAGS = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""Kafka's own choice."""
_SHORT_FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For a program that is over in a second."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where one broker listens: for clients, for the other brokers, and as the controller (the first one alone)."""

    client: int
    internal: int
    controller: int


@dataclass(frozen=True, slots=True)
class Keys:
    """What a broker shows and trusts where clients come over TLS. All of it lies in the runtime folder."""

    keystore: Path
    password: SecretStr
    authority: Path
    """The certificate as clients need it, in PEM."""
    user: str
    """Who may log in; nobody else is known."""
    user_password: SecretStr


@dataclass(frozen=True, slots=True)
class Node:
    """One broker of ours."""

    number: int
    """From 1 on; the first is the controller."""
    ports: Ports
    controller: int
    """The controller's port, on which all brokers find it."""
    folder: Path
    """Its log segments and what it needs while it runs. Removed at its end."""
    brokers: int = 1
    keys: Keys | None = None
    """With them clients must come over TLS and log in by SCRAM; the brokers know each other by certificate."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Settings in place of the usual ones: clusters of users have any."""

    @property
    def name(self) -> str:
        """What it is called in logs and reports."""
        return f"kafka broker {self.number}"

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{HOST}:{self.ports.client}"


def settings(node: Node) -> dict[str, str]:
    """The settings of a broker that keeps all it gets, makes no topic by itself, and has small topics of its own."""
    first = node.number == 1
    listeners = {"CLIENT": node.ports.client, "INTERNAL": node.ports.internal}
    copies = str(min(3, node.brokers))
    held = {
        "process.roles": "broker,controller" if first else "broker",
        "node.id": str(node.number),
        "controller.quorum.bootstrap.servers": f"{HOST}:{node.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": _addresses(listeners | ({"CONTROLLER": node.ports.controller} if first else {})),
        "advertised.listeners": _addresses(listeners),
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "log.dirs": str(node.folder / "data"),
        "log.retention.ms": "-1",
        "log.message.timestamp.type": "LogAppendTime",
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        held |= {f"{topic}.replication.factor": copies, f"{topic}.num.partitions": "1"}
    held |= {f"{topic}.min.isr": "1" for topic in ("transaction.state.log", "share.coordinator.state.topic")}
    return {**held, **(_secured(node.keys) if node.keys else {}), **node.more}


def _addresses(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())


def _secured(keys: Keys) -> dict[str, str]:
    mechanism = MECHANISM.lower()
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,INTERNAL:SSL,CONTROLLER:SSL",
        "listener.name.client.sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.client.{mechanism}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.internal.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(keys.keystore),
        "ssl.keystore.password": keys.password.get_secret_value(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.authority),
    }


def properties(held: Mapping[str, str]) -> str:
    """Settings as the text of a Java properties file."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in held.items())


def format_words(node: Node, cluster_id: str) -> str:
    """What the storage tool is told, a word per line. It reads them from a file, since a password is no argument."""
    words = ["format", "--cluster-id", cluster_id]
    words += ["--standalone"] if node.number == 1 else []
    if node.keys:
        words += [
            "--add-scram",
            f"{MECHANISM}=[name={node.keys.user},password={node.keys.user_password.get_secret_value()}]",
        ]
    return "\n".join(words)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What brokers run on: a Java, the folder of their jars, the cores they are bound to, and the heap of each."""

    java: Path
    jars: Path
    cores: tuple[int, ...] = ()
    heap: str = "512m"


def formatter(runtime: Runtime, node: Node, file: Path, words: Path) -> Child:
    """The process that prepares a broker's storage; it ends by itself. ``words`` is a file with ``format_words``.

    It may use all cores: nothing is measured yet.
    """
    quiet = _flags({**_LOG, "org.slf4j.simpleLogger.defaultLogLevel": "warn"})
    program = ("-cp", f"{runtime.jars}/*", "kafka.tools.StorageTool", f"@{words}", "--config", str(file))
    return Child(f"{node.name} storage", (str(runtime.java), *_SHORT_FLAGS, *quiet, *program))


def broker(runtime: Runtime, node: Node, file: Path) -> Child:
    """The broker's process: it is ready when clients can connect, and its data go with it.

    It starts on all cores, which takes two thirds of the time, but counts only those that it is bound to afterwards.
    """
    flags = _flags({**_LOG, "java.io.tmpdir": str(node.folder)})
    counted = (f"-XX:ActiveProcessorCount={len(runtime.cores)}",) if runtime.cores else ()
    size = (f"-Xms{runtime.heap}", f"-Xmx{runtime.heap}", *counted)
    return Child(
        node.name,
        (str(runtime.java), *size, *_SERVER_FLAGS, *flags, "-cp", f"{runtime.jars}/*", "kafka.Kafka", str(file)),
        ready=PortReady(node.ports.client, HOST),
        deadline=_START_DEADLINE,
        grace=_GRACE,
        folder=node.folder,
        scratch=node.folder,
    )


def _flags(held: Mapping[str, str]) -> tuple[str, ...]:
    # without UsePerfData nothing is left in the temporary folder after kill -9
    return ("-XX:-UsePerfData", "-Djava.awt.headless=true", *(f"-D{key}={value}" for key, value in held.items()))


def keytool_lines(keytool: Path, keystore: Path, password: Path, authority: Path) -> tuple[tuple[str, ...], ...]:
    """The words that make a key with a certificate for this machine, and that write the certificate as PEM.

    ``password`` is a file: Java's keytool reads it there.
    """
    store = ("-alias", "broker", "-keystore", str(keystore), "-storetype", "PKCS12", "-storepass:file", str(password))
    names = ("-dname", "CN=streamgauge", "-ext", f"SAN=ip:{HOST},dns:localhost", "-validity", "30")
    return (
        (str(keytool), "-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", *names, *store),
        (str(keytool), "-exportcert", "-rfc", "-file", str(authority), *store),
    )
