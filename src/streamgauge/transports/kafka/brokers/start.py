"""Kafka brokers on this machine, from jars: started for a run, and gone with it."""

import base64
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from pydantic import SecretStr

from streamgauge.install.ensure import is_root
from streamgauge.install.jars import FetchError, Progress, fetch_jars, pinned
from streamgauge.install.java import find_java, javas, missing
from streamgauge.install.packages import manager
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, LaunchError, Process
from streamgauge.processes.placement import bind
from streamgauge.processes.spec import Child
from streamgauge.store.durable import make_folder, replace_file
from streamgauge.transports.kafka.brokers.admin import Administration, ClusterError
from streamgauge.transports.kafka.brokers.config import (
    MECHANISM,
    Keys,
    Node,
    Ports,
    Runtime,
    broker,
    format_words,
    formatter,
    keytool_lines,
    properties,
    settings,
)
from streamgauge.transports.kafka.client.producer import Part, open_producer
from streamgauge.transports.kafka.client.reader import open_ranges
from streamgauge.transports.kafka.cluster import Cluster, Security
from streamgauge.transports.kafka.topics import Topic

_ROUND = 1_000_000_000
"""Nanoseconds after which its pace is looked at."""
_LEAST, _MOST = 8, 25
"""Rounds."""
_FLAT = 1.03
"""A round that is no more than this faster than those before it found nothing left to compile."""
_FLUSH = 10.0
_ROWS = (100, 2_000)
"""Records of a batch: those of a slow load and of a fast one, in turns."""
_WIDTH = 40


def warm_brokers(administration: Administration, topic: Topic) -> tuple[int, ...]:
    """Publish batches and read them back, one after the other, until that goes no faster; batches of each round."""
    cluster, clock, paces = administration.cluster, Clock(), list[int]()
    administration.create([topic])
    producer = open_producer(cluster, topic.name, clock.monotonic_ns)
    ranges, at = open_ranges(cluster, topic.name), 0
    parts = [Part(None, np.zeros((rows, _WIDTH), np.uint8), np.zeros(rows, np.int64)) for rows in _ROWS]
    try:
        while not flat(paces):
            ends, done = clock.monotonic_ns() + _ROUND, 0
            while clock.monotonic_ns() < ends:
                part = parts[done % len(parts)]
                producer.publish({0: part})
                producer.flush(_FLUSH)
                for _ in ranges.read(0, at, at + len(part.values)):
                    pass
                at, done = at + len(part.values), done + 1
            paces.append(done)
    finally:
        ranges.close()
        producer.close()
        administration.delete([topic.name])
    return tuple(paces)


def flat(paces: list[int]) -> bool:
    """Whether the last two rounds brought nothing that the others had not."""
    if len(paces) < _LEAST:
        return False
    return len(paces) >= _MOST or max(paces[-2:]) <= _FLAT * max(paces[:-2])


MOST = 5
"""Brokers on one machine: as many as any experiment of the papers needs."""
_TRIES = 3
_LOOK_EVERY = 0.02
_PATIENCE = 60.0
_TAIL = 8
_TAKEN = "Address already in use"


def until(holds: Callable[[], bool], seconds: float = _PATIENCE) -> bool:
    """Wait until it holds, at most so long; whether it does."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(_LOOK_EVERY)
    return True


class Brokers:
    """Brokers that stand. A context manager: they and their data are gone when it is left; their logs stay."""

    def __init__(self, cluster: Cluster, processes: tuple[Process, ...]) -> None:
        self.cluster, self.processes = cluster, processes

    @property
    def fallen(self) -> tuple[str, ...]:
        """A sentence for each broker that has ended."""
        codes = [(process, process.exit_code()) for process in self.processes]
        return tuple(f"{p.name} ended with {ending(code)}" for p, code in codes if code is not None)

    def stop(self) -> None:
        """End them, side by side."""
        for process in self.processes:
            process.request_stop()
        with ExitStack() as all_of_them:
            for process in self.processes:
                all_of_them.callback(process.stop)

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def broker_runtime(cache: Path, launcher: Launcher, progress: Progress, cores: tuple[int, ...] = ()) -> Runtime:
    """What brokers run on: the Java of this machine, and the jars of the user's cache, fetched if they are missing."""
    java = find_java()
    if java is None:
        raise FetchError(f"{missing([*javas()], manager(), is_root())}.")
    return Runtime(java.program, fetch_jars(pinned("kafka"), cache, launcher, progress), cores)


def start_brokers(
    runtime: Runtime,
    folder: Path,
    launcher: Launcher,
    *,
    count: int = 1,
    secured: bool = False,
    practise: Callable[[Cluster], object] = lambda _: None,
    more: Mapping[str, str] | None = None,
) -> Brokers:
    """Start brokers with their data and logs in a folder; returns when clients can work with all of them.

    ``secured`` ones demand TLS and SCRAM of their clients, with keys and a password made now. They ``practise`` on
    all cores, before they are bound to theirs. ``more`` are settings in place of the usual ones.
    """
    if not 1 <= count <= MOST:
        raise ValueError(f"cannot start {count} local brokers; 1 to {MOST} are supported")
    folder = folder.absolute()  # children have a working folder of their own
    make_folder(folder)
    keys = _make_keys(runtime, launcher) if secured else None
    for left in reversed(range(_TRIES)):
        try:
            return _start(runtime, folder, launcher, _nodes(folder, count, keys, more or {}), practise)
        except LaunchError:
            if not left or not _port_was_taken(folder):
                raise
    raise AssertionError("the last try returns or raises")


def _port_was_taken(folder: Path) -> bool:
    """Whether somebody took a port that was free a moment ago. It stands somewhere in the last hundreds of lines."""
    return any(_TAKEN in log.read_text("utf-8", "replace") for log in folder.glob("kafka-broker-*.log"))


def _start(
    runtime: Runtime, folder: Path, launcher: Launcher, nodes: list[Node], practise: Callable[[Cluster], object]
) -> Brokers:
    cluster, cluster_id = _cluster(nodes), _new_id()
    started: list[Process] = []
    try:
        for node in nodes:
            started.append(_start_one(runtime, folder, launcher, node, cluster_id))
        administration = Administration(cluster, until)
        if not until(lambda: _together(administration, cluster_id, started)):
            raise LaunchError(f"{len(nodes)} local brokers did not form a cluster within {_PATIENCE:.0f} s")
        practise(cluster)
        bind([process.guard for process in started], runtime.cores)
    except BaseException:
        Brokers(cluster, tuple(started)).stop()
        raise
    return Brokers(cluster, tuple(started))


def _together(administration: Administration, cluster_id: str, started: list[Process]) -> bool:
    """Whether clients find all of them, and them: somebody else may have taken a port and answer on it."""
    for process in started:
        if (code := process.exit_code()) is not None:
            raise LaunchError(_ended_early(process, code))
    try:
        return administration.cluster_id() == cluster_id and len(administration.brokers()) == len(started)
    except ClusterError:
        return False


def _start_one(runtime: Runtime, folder: Path, launcher: Launcher, node: Node, cluster_id: str) -> Process:
    make_folder(node.folder)
    file, words = (launcher.runtime / f"{node.folder.name}.{end}" for end in ("properties", "format"))
    replace_file(file, properties(settings(node)).encode(), durable=False)
    replace_file(words, format_words(node, cluster_id).encode(), durable=False)
    _finish(launcher, formatter(runtime, node, file, words), folder)
    return launcher.start(broker(runtime, node, file), folder)


def _finish(launcher: Launcher, child: Child, logs: Path) -> None:
    """Start a program that ends by itself, and wait for it."""
    process = launcher.start(child, logs)
    code = process.wait(_PATIENCE)
    process.stop()
    if code != 0:
        raise LaunchError(_ended_early(process, code))


def _ended_early(process: Process, code: int | None) -> str:
    how = f"did not end within {_PATIENCE:.0f} s" if code is None else f"ended with {ending(code)}"
    return "\n  ".join([f"{process.name} {how}; last lines of its log:", *process.tail(_TAIL)])


def ending(code: int) -> str:
    """How a process ended, for a sentence."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _nodes(folder: Path, count: int, keys: Keys | None, more: Mapping[str, str]) -> list[Node]:
    ports = _free_ports(3 * count)
    threes = [Ports(*ports[at : at + 3]) for at in range(0, len(ports), 3)]
    controller = threes[0].controller
    return [
        Node(number, three, controller, folder / f"kafka-broker-{number}", count, keys, more)
        for number, three in enumerate(threes, 1)
    ]


def _free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that are free now, each another one."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _new_id() -> str:
    """The id of a new cluster, as Kafka writes its ids. It never begins with a dash, which is for options."""
    return "A" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")[1:]


def _cluster(nodes: list[Node]) -> Cluster:
    keys = nodes[0].keys
    security = (
        Security(tls=True, authority=keys.authority, mechanism=MECHANISM, user=keys.user, password=keys.user_password)
        if keys
        else None
    )
    return Cluster(",".join(node.address for node in nodes), security)


def _make_keys(runtime: Runtime, launcher: Launcher) -> Keys:
    """A key and a certificate of this machine for a month, and a user, all of them made now."""
    place = launcher.runtime / f"kafka-keys-{secrets.token_hex(4)}"
    make_folder(place)
    keystore, password, authority = place / "broker.p12", place / "password", place / "authority.pem"
    secret = secrets.token_hex(16)
    replace_file(password, secret.encode(), durable=False)
    for number, line in enumerate(keytool_lines(runtime.java.with_name("keytool"), keystore, password, authority)):
        _finish(launcher, Child(f"keytool {number}", line), place)
    return Keys(keystore, SecretStr(secret), authority, "streamgauge", SecretStr(secrets.token_hex(16)))
