"""A local Kafka broker: its settings, the arguments that format its storage, and its process.

The first broker is also the controller; the others are only brokers, so that they can be started one after another
without a quorum. Everything listens only on the loopback interface.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from streamgauge.install.requirements import JarSet, load_jar_set
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import PortReady, ProcessSpec
from streamgauge.transports.kafka.cluster import Mechanism

BROKER = "kafka"
"""The pinned jars of a broker with its tools."""
CONNECTOR = "spark-kafka"
"""The pinned jars with which Spark reads from Kafka and writes to it."""
HOST = "127.0.0.1"
MECHANISM: Mechanism = "SCRAM-SHA-512"

_START_DEADLINE = 90 * SECOND
_STOP_TIMEOUT = SECOND
"""Its data are deleted, so it need not write them to the disk."""

_LOG = {
    "org.slf4j.simpleLogger.showDateTime": "true",
    "org.slf4j.simpleLogger.dateTimeFormat": "HH:mm:ss.SSS",
    "org.slf4j.simpleLogger.showShortLogName": "true",
}
_SERVER_FLAGS = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""Those of Kafka's own start script."""
_SHORT_FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For a program that runs for a second."""


def pinned_jars(name: str) -> JarSet:
    """The jars of this name as ``jars.toml`` pins them."""
    return load_jar_set("streamgauge.transports.kafka", name)


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """Where one broker listens: for clients, for the other brokers, and as the controller (only the first one)."""

    client: int
    internal: int
    controller: int


@dataclass(frozen=True, slots=True)
class TlsKeys:
    """Key and certificate of a broker whose clients connect over TLS. The files are in the runtime folder."""

    keystore: Path
    password: SecretStr
    authority: Path
    """The certificate for clients, in PEM."""
    user: str
    """The only user that may log in."""
    user_password: SecretStr


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """One local broker."""

    number: int
    """From 1 on; the first is the controller."""
    ports: BrokerPorts
    controller: int
    """The controller's port, on which all brokers find it."""
    folder: Path
    """Its log segments and temporary files. Deleted when it ends."""
    brokers: int = 1
    keys: TlsKeys | None = None
    """With them clients must use TLS and log in by SCRAM; the brokers authenticate each other by certificate."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Settings that replace the usual ones, as in clusters of users."""

    @property
    def name(self) -> str:
        """Its name in logs and reports."""
        return f"kafka broker {self.number}"

    @property
    def address(self) -> str:
        """Its address for clients."""
        return f"{HOST}:{self.ports.client}"


def settings(broker: BrokerConfig) -> dict[str, str]:
    """The settings of a broker that keeps all records, creates no topic by itself, and has small internal topics."""
    first = broker.number == 1
    listeners = {"CLIENT": broker.ports.client, "INTERNAL": broker.ports.internal}
    copies = str(min(3, broker.brokers))
    held = {
        "process.roles": "broker,controller" if first else "broker",
        "node.id": str(broker.number),
        "controller.quorum.bootstrap.servers": f"{HOST}:{broker.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": _addresses(listeners | ({"CONTROLLER": broker.ports.controller} if first else {})),
        "advertised.listeners": _addresses(listeners),
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "log.dirs": str(broker.folder / "data"),
        "log.retention.ms": "-1",
        "log.message.timestamp.type": "LogAppendTime",
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        held |= {f"{topic}.replication.factor": copies, f"{topic}.num.partitions": "1"}
    held |= {f"{topic}.min.isr": "1" for topic in ("transaction.state.log", "share.coordinator.state.topic")}
    return {**held, **(_secured(broker.keys) if broker.keys else {}), **broker.more}


def _addresses(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())


def _secured(keys: TlsKeys) -> dict[str, str]:
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


def storage_arguments(broker: BrokerConfig, cluster_id: str) -> str:
    """The arguments of the storage tool, one per line, for a file that it reads: they may include a password."""
    arguments = ["format", "--cluster-id", cluster_id]
    arguments += ["--standalone"] if broker.number == 1 else []
    if broker.keys:
        arguments += [
            "--add-scram",
            f"{MECHANISM}=[name={broker.keys.user},password={broker.keys.user_password.get_secret_value()}]",
        ]
    return "\n".join(arguments)


@dataclass(frozen=True, slots=True)
class BrokerRuntime:
    """What brokers need: a Java, the folder of their jars, the cores they are bound to, and the heap of each."""

    java: Path
    jars: Path
    cores: tuple[int, ...] = ()
    heap: str = "512m"


def storage_process(runtime: BrokerRuntime, broker: BrokerConfig, file: Path, arguments: Path) -> ProcessSpec:
    """The process that prepares a broker's storage; it ends by itself. ``arguments`` is a file.

    It may use all cores, because nothing is measured yet.
    """
    quiet = _flags({**_LOG, "org.slf4j.simpleLogger.defaultLogLevel": "warn"})
    program = ("-cp", f"{runtime.jars}/*", "kafka.tools.StorageTool", f"@{arguments}", "--config", str(file))
    return ProcessSpec(f"{broker.name} storage", (str(runtime.java), *_SHORT_FLAGS, *quiet, *program))


def broker_process(runtime: BrokerRuntime, broker: BrokerConfig, file: Path) -> ProcessSpec:
    """The process of a broker. It is ready when clients can connect; its data are deleted when it ends.

    It starts on all cores, which takes two thirds of the time, but sizes its thread pools by those that it is bound to
    afterwards.
    """
    flags = _flags({**_LOG, "java.io.tmpdir": str(broker.folder)})
    counted = (f"-XX:ActiveProcessorCount={len(runtime.cores)}",) if runtime.cores else ()
    size = (f"-Xms{runtime.heap}", f"-Xmx{runtime.heap}", *counted)
    return ProcessSpec(
        broker.name,
        (str(runtime.java), *size, *_SERVER_FLAGS, *flags, "-cp", f"{runtime.jars}/*", "kafka.Kafka", str(file)),
        ready=PortReady(broker.ports.client, HOST),
        deadline=_START_DEADLINE,
        stop_timeout=_STOP_TIMEOUT,
        working_folder=broker.folder,
        temporary=broker.folder,
    )


def _flags(held: Mapping[str, str]) -> tuple[str, ...]:
    # without UsePerfData nothing is left in the temporary folder after kill -9
    return ("-XX:-UsePerfData", "-Djava.awt.headless=true", *(f"-D{key}={value}" for key, value in held.items()))


def keytool_commands(keytool: Path, keystore: Path, password: Path, authority: Path) -> tuple[tuple[str, ...], ...]:
    """The commands that create a key with a certificate for this machine, and that write the certificate as PEM.

    ``password`` is a file that Java's keytool reads.
    """
    store = ("-alias", "broker", "-keystore", str(keystore), "-storetype", "PKCS12", "-storepass:file", str(password))
    names = ("-dname", "CN=streamgauge", "-ext", f"SAN=ip:{HOST},dns:localhost", "-validity", "30")
    return (
        (str(keytool), "-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", *names, *store),
        (str(keytool), "-exportcert", "-rfc", "-file", str(authority), *store),
    )
