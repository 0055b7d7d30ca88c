"""Local Kafka brokers from jars: started for a run, and stopped with it."""

import base64
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from pydantic import SecretStr

from streamgauge.install.java import all_javas, find_java, install_hint
from streamgauge.install.packages import package_manager
from streamgauge.install.programs import is_root
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import LaunchError
from streamgauge.processes.placement import pin
from streamgauge.processes.spec import ProcessSpec, RunningProcess, Starter
from streamgauge.stats.steady import has_stopped_rising
from streamgauge.store.durable import make_folder, replace_file
from streamgauge.transports.kafka.brokers.admin import ClusterError, KafkaAdmin
from streamgauge.transports.kafka.brokers.config import (
    BROKER,
    MECHANISM,
    BrokerConfig,
    BrokerPorts,
    BrokerRuntime,
    TlsKeys,
    broker_process,
    keytool_commands,
    pinned_jars,
    properties,
    settings,
    storage_arguments,
    storage_process,
)
from streamgauge.transports.kafka.client.producer import RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.client.reader import open_range_reader
from streamgauge.transports.kafka.cluster import Cluster, Security
from streamgauge.transports.kafka.options import MAX_BROKERS
from streamgauge.transports.kafka.topics import Topic

_ROUND = 1_000_000_000
"""Nanoseconds of a round, after which its number of batches is compared."""
_MIN_ROUNDS, _MAX_ROUNDS = 8, 25
_GAIN = 0.03
"""If a round is faster than those before it by at most this share, there is nothing left to compile."""
_FLUSH = 10.0
_ROWS = (100, 2_000)
"""Records of a batch: as many as of a low load and of a high one, alternating."""
_WIDTH = 40


def warm_brokers(admin: KafkaAdmin, topic: Topic) -> tuple[int, ...]:
    """Publish batches and read them back, one after another, until that gets no faster; the batches of each round."""
    cluster, clock, rounds = admin.cluster, Clock(), list[int]()
    admin.create([topic])
    producer = open_producer(cluster, [topic.name], clock.monotonic_ns)
    reader, at = open_range_reader(cluster, topic.name), 0
    place = TopicPartition(topic.name, 0)
    parts = [RecordColumns(None, np.zeros((rows, _WIDTH), np.uint8), np.zeros(rows, np.int64)) for rows in _ROWS]
    try:
        while not is_warm(rounds):
            ends, done = clock.monotonic_ns() + _ROUND, 0
            while clock.monotonic_ns() < ends:
                part = parts[done % len(parts)]
                producer.publish({place: part})
                producer.flush(_FLUSH)
                for _ in reader.read(0, at, at + len(part.values)):
                    pass
                at, done = at + len(part.values), done + 1
            rounds.append(done)
    finally:
        reader.close()
        producer.close()
        admin.delete([topic.name])
    return tuple(rounds)


def is_warm(rounds: Sequence[int]) -> bool:
    """Whether the last two rounds were not faster than the rounds before them, after enough rounds."""
    return len(rounds) >= _MIN_ROUNDS and (len(rounds) >= _MAX_ROUNDS or has_stopped_rising(rounds, _GAIN))


_TRIES = 3
_POLL_INTERVAL = 0.02
_TIMEOUT = 60.0
_LOG_LINES = 8
_PORT_TAKEN = "Address already in use"


def wait_until(holds: Callable[[], bool], seconds: float = _TIMEOUT) -> bool:
    """Wait until the condition holds, at most so long; whether it does."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(_POLL_INTERVAL)
    return True


class BrokerCluster:
    """Local brokers that run. At the end of the context they stop and their data are deleted; their logs stay."""

    def __init__(self, cluster: Cluster, processes: tuple[RunningProcess, ...]) -> None:
        self.cluster, self.processes = cluster, processes

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each broker that has ended by itself."""
        brokers = enumerate(zip(self.cluster.bootstrap.split(","), self.processes, strict=True), 1)
        codes = [(f"broker {number} at {address}", process.exit_code()) for number, (address, process) in brokers]
        return tuple(f"{broker} ended with {describe_exit(code)}" for broker, code in codes if code is not None)

    def stop(self) -> None:
        """Stop all of them at the same time."""
        for process in self.processes:
            process.request_stop()
        with ExitStack() as all_of_them:
            for process in self.processes:
                all_of_them.callback(process.stop)

    def __enter__(self) -> "BrokerCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def installed_runtime(cache: Path, cores: tuple[int, ...]) -> BrokerRuntime:
    """What brokers need: a Java, and the jars of the user's cache. Raises LaunchError if one is missing."""
    java, jars = find_java(), pinned_jars(BROKER)
    if java is None:
        raise LaunchError(f"{install_hint([*all_javas()], package_manager(), is_root())}.")
    if not jars.folder(cache).is_dir():
        raise LaunchError("the jars of the local broker are missing; run `streamgauge setup kafka`")
    return BrokerRuntime(java.program, jars.folder(cache), cores)


def start_brokers(
    runtime: BrokerRuntime,
    folder: Path,
    launcher: Starter,
    *,
    count: int = 1,
    secured: bool = False,
    warm_up: Callable[[Cluster], object] = lambda _: None,
    more: Mapping[str, str] | None = None,
) -> BrokerCluster:
    """Start brokers with their data and logs in a folder; returns when clients can work with all of them.

    ``secured`` brokers require TLS and SCRAM of their clients, with keys and a password made now. ``warm_up`` is called
    while they may use all cores, before they are pinned. ``more`` are settings that replace the usual ones.
    """
    if not 1 <= count <= MAX_BROKERS:
        raise ValueError(f"cannot start {count} local brokers; 1 to {MAX_BROKERS} are supported")
    folder = folder.absolute()  # child processes have another working folder
    make_folder(folder)
    keys = _make_keys(runtime, launcher) if secured else None
    for left in reversed(range(_TRIES)):
        try:
            return _start(runtime, folder, launcher, _configs(folder, count, keys, more or {}), warm_up)
        except LaunchError:
            if not left or not _port_was_taken(folder):
                raise
    raise AssertionError("the last try returns or raises")


def _port_was_taken(folder: Path) -> bool:
    """Whether another process took a port that was free a moment ago: one of the logs shows it."""
    return any(_PORT_TAKEN in log.read_text("utf-8", "replace") for log in folder.glob("kafka-broker-*.log"))


def _start(
    runtime: BrokerRuntime,
    folder: Path,
    launcher: Starter,
    configs: list[BrokerConfig],
    warm_up: Callable[[Cluster], object],
) -> BrokerCluster:
    cluster, cluster_id = _cluster(configs), _new_id()
    started: list[RunningProcess] = []
    try:
        for config in configs:
            started.append(_start_one(runtime, folder, launcher, config, cluster_id))
        admin = KafkaAdmin(cluster, wait_until)
        if not wait_until(lambda: _all_joined(admin, cluster_id, started)):
            raise LaunchError(f"{len(configs)} local brokers did not form a cluster within {_TIMEOUT:.0f} s")
        warm_up(cluster)
        pin([process.guard for process in started], runtime.cores)
    except BaseException:
        BrokerCluster(cluster, tuple(started)).stop()
        raise
    return BrokerCluster(cluster, tuple(started))


def _all_joined(admin: KafkaAdmin, cluster_id: str, started: list[RunningProcess]) -> bool:
    """Whether clients find all of them, and no other cluster: another process may have taken a port."""
    for process in started:
        if (code := process.exit_code()) is not None:
            raise LaunchError(_ended_early(process, code))
    try:
        return admin.cluster_id() == cluster_id and len(admin.brokers()) == len(started)
    except ClusterError:
        return False


def _start_one(
    runtime: BrokerRuntime, folder: Path, launcher: Starter, config: BrokerConfig, cluster_id: str
) -> RunningProcess:
    make_folder(config.folder)
    file, arguments = (launcher.runtime / f"{config.folder.name}.{end}" for end in ("properties", "format"))
    replace_file(file, properties(settings(config)).encode(), durable=False)
    replace_file(arguments, storage_arguments(config, cluster_id).encode(), durable=False)
    _run_to_end(launcher, storage_process(runtime, config, file, arguments), folder)
    return launcher.start(broker_process(runtime, config, file), folder)


def _run_to_end(launcher: Starter, child: ProcessSpec, logs: Path) -> None:
    """Start a program that ends by itself, and wait for its end."""
    process = launcher.start(child, logs)
    code = process.wait(_TIMEOUT)
    process.stop()
    if code != 0:
        raise LaunchError(_ended_early(process, code))


def _ended_early(process: RunningProcess, code: int | None) -> str:
    how = f"did not end within {_TIMEOUT:.0f} s" if code is None else f"ended with {describe_exit(code)}"
    return "\n  ".join([f"{process.name} {how}; last lines of its log:", *process.tail(_LOG_LINES)])


def describe_exit(code: int) -> str:
    """How a process ended, for a sentence."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _configs(folder: Path, count: int, keys: TlsKeys | None, more: Mapping[str, str]) -> list[BrokerConfig]:
    ports = _free_ports(3 * count)
    ports_of = [BrokerPorts(*ports[at : at + 3]) for at in range(0, len(ports), 3)]
    controller = ports_of[0].controller
    return [
        BrokerConfig(number, each, controller, folder / f"kafka-broker-{number}", count, keys, more)
        for number, each in enumerate(ports_of, 1)
    ]


def _free_ports(count: int) -> list[int]:
    """Different ports of the loopback interface that are free now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _new_id() -> str:
    """The id of a new cluster, as Kafka writes its ids. It never begins with a dash, as options do."""
    return "A" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")[1:]


def _cluster(configs: list[BrokerConfig]) -> Cluster:
    keys = configs[0].keys
    security = (
        Security(tls=True, authority=keys.authority, mechanism=MECHANISM, user=keys.user, password=keys.user_password)
        if keys
        else None
    )
    return Cluster(",".join(config.address for config in configs), security)


def _make_keys(runtime: BrokerRuntime, launcher: Starter) -> TlsKeys:
    """A key and a certificate of this machine for a month, and a user, all of them new."""
    folder = launcher.runtime / f"kafka-keys-{secrets.token_hex(4)}"
    make_folder(folder)
    keystore, password, authority = folder / "broker.p12", folder / "password", folder / "authority.pem"
    secret = secrets.token_hex(16)
    replace_file(password, secret.encode(), durable=False)
    commands = keytool_commands(runtime.java.with_name("keytool"), keystore, password, authority)
    for number, command in enumerate(commands):
        _run_to_end(launcher, ProcessSpec(f"keytool {number}", command), folder)
    return TlsKeys(keystore, SecretStr(secret), authority, "streamgauge", SecretStr(secrets.token_hex(16)))
