"""Twenty secrets in all places where people put them: they are in no file, log, command line or report."""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_session import CommandResult, start, streamgauge
from kafka_broker import launched, needs_kafka
from pydantic import SecretStr

from streamgauge.transports.kafka.brokers.start import start_brokers
from streamgauge.transports.kafka.cluster import Cluster

pytestmark = [pytest.mark.soak, needs_kafka]

EXPERIMENT = """\
name: canaries
workload: {{name: windowed-aggregation, window: 2s, slide: 2s}}
engine: {{name: reference, capacity: 200k/s}}
find: nothing
load: {{rate: 5k/s}}
objective: [lag-trend <= 5%]
trial: {{duration: 8s, limit: 8s, warmup: 2s}}
transport:
  name: kafka
  cluster:
    bootstrap: "{bootstrap}"
    tls: true
    authority: {authority}
    mechanism: SCRAM-SHA-512
    user: {user}
    password: {password}
{more}"""
MADE = [f"kanarie{number:02d}piept{number * 7919:05d}" for number in range(3, 21)]
"""Beside them there are two that the broker has: the password of its user, and that of its keystore."""
FOREIGN = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KAFKA_SASL_JAAS_CONFIG")


@dataclass
class Watched:
    """Every command line and environment that was seen, by process, and all that was printed."""

    lines: dict[int, set[bytes]] = field(default_factory=dict)
    environments: dict[int, set[bytes]] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def look(self) -> None:
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    line, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
                except OSError:
                    continue  # it is gone
                self.lines.setdefault(int(folder.name), set()).add(line)
                self.environments.setdefault(int(folder.name), set()).add(environment)

    def add(self, said: CommandResult) -> CommandResult:
        self.printed += [said.out, said.err]
        return said


@contextmanager
def watching() -> Iterator[Watched]:
    """Look at all processes of the machine, five times a second."""
    watched, over = Watched(), threading.Event()

    def go() -> None:
        while not over.wait(0.2):
            watched.look()

    looker = threading.Thread(target=go)
    looker.start()
    try:
        yield watched
    finally:
        over.set()
        looker.join()


def secret_file(folder: Path, name: str, content: str, mode: int = 0o600) -> str:
    path = folder / name
    path.write_text(f"{content}\n")
    path.chmod(mode)
    return f"{{file: {path}}}"


def client_key(folder: Path, password: str) -> str:
    """Lines of an experiment with a certificate whose key is encrypted."""
    program, place = shutil.which("openssl"), folder / "client.pem"
    assert program is not None
    words = [program, "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=bench", "-days", "2"]
    words += ["-passout", "env:PASS", "-keyout", str(place), "-out", str(folder / "cert.pem")]
    subprocess.run(words, env={**os.environ, "PASS": password}, check=True, capture_output=True)
    return f"    certificate: {folder / 'cert.pem'}\n    key: {place}\n"


def run(experiment: Path, out: Path, env: dict[str, str], watched: Watched) -> tuple[int, int]:
    """A real run in a separate process. Its code, and its id as a process."""
    with start("run", experiment, "--out", out, env={**os.environ, **env}) as process:
        out_text, err_text = process.communicate(timeout=240)
    watched.add(CommandResult(process.returncode, out_text, err_text))
    return process.returncode, process.pid


def holding(root: Path, canaries: list[str]) -> list[str]:
    """Files below a folder that hold any of them."""
    words = [canary.encode() for canary in canaries]
    files = [path for path in root.rglob("*") if path.is_file()]
    assert files, root
    return [str(path) for path in files if any(word in path.read_bytes() for word in words)]


@dataclass(frozen=True)
class Secured:
    """A broker that requires TLS and SCRAM, and its secrets."""

    cluster: Cluster
    logs: Path
    keystore_password: str

    @property
    def password(self) -> str:
        assert self.cluster.security is not None
        assert isinstance(self.cluster.security.password, SecretStr)
        return self.cluster.security.password.get_secret_value()

    def experiment(self, folder: Path, name: str, password: str, more: str = "", bootstrap: str = "") -> Path:
        known, path = self.cluster.security, folder / name
        assert known is not None
        where = {"bootstrap": bootstrap or self.cluster.bootstrap, "authority": known.authority, "user": known.user}
        path.write_text(EXPERIMENT.format(**where, password=password, more=more))
        return path


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    with launched() as (launcher, runtime), start_brokers(runtime, folder, launcher, secured=True) as brokers:
        (kept,) = launcher.runtime.glob("kafka-keys-*/password")
        yield Secured(brokers.cluster, folder, kept.read_text())


def refusals(broker: Secured, folder: Path) -> list[tuple[Path, dict[str, str], list[str]]]:
    """Experiments that put a secret where it does not belong, or a wrong one, each with its canary."""
    at, folder = MADE, folder / "wrong"
    folder.mkdir()
    named = "{env: WRONG}"
    key = client_key(folder, "right")
    told = [
        (named, "", {"WRONG": at[2]}),
        (secret_file(folder, "wrong", at[3]), "", {}),
        ("{env: RIGHT}", f"{key}    key_password: {named}\n", {"WRONG": at[4], "RIGHT": broker.password}),
        (secret_file(folder, "open", at[5], 0o644), "", {}),
        (secret_file(folder, "two", f"{at[6]}\n{at[6]}"), "", {}),
        (at[7], "", {}),
        (f"[{at[8]}]", "", {}),
        (f"{{value: {at[9]}}}", "", {}),
        (f"{{env: {at[10]}-}}", "", {}),
        (f"{{file: [{at[11]}]}}", "", {}),
    ]
    found = [
        (broker.experiment(folder, f"{number}.yaml", said, more), env, list[str]())
        for number, (said, more, env) in enumerate(told)
    ]
    address = f"ann:{at[12]}@{broker.cluster.bootstrap}"
    found.append((broker.experiment(folder, "url.yaml", named, bootstrap=address), {"WRONG": "x"}, []))
    right = broker.experiment(folder, "set.yaml", named)
    sets = [f"transport.cluster.password={at[13]}", f"transport.cluster.key_password={at[14]}"]
    return [*found, *((right, dict[str, str](), ["--json", "--set", each]) for each in sets)]


def test_secrets_are_in_no_file_log_command_line_or_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.transports.kafka.brokers.admin._SECONDS", 2.0)
    before, out = {*Path(tempfile.gettempdir()).iterdir()}, tmp_path / "runs"
    with watching() as watched, secured(tmp_path / "broker") as broker:
        canaries = [broker.password, broker.keystore_password, *MADE]
        foreign = dict(zip(FOREIGN, MADE[15:], strict=True))
        key = client_key(tmp_path, MADE[0]) + f"    key_password: {secret_file(tmp_path, 'key-password', MADE[0])}\n"
        named = broker.experiment(tmp_path, "named.yaml", "{env: PASSWORD}", key)
        code, pid = run(named, out, {**foreign, "PASSWORD": broker.password}, watched)
        assert code in (0, 3, 6), (
            watched.printed
        )  # beside a broker that encrypts on its own core the driver may be late
        assert [*out.glob("*/trials/*/outputs/outputs/*.parquet")], "events went through the cluster and came back"
        for path, env, more in refusals(broker, tmp_path):
            for name, value in env.items():
                monkeypatch.setenv(name, value)
            words: tuple[str | Path, ...] = (
                ("plan", path, *more) if more else ("clean", "--cluster", path, "--out", out)
            )
            assert watched.add(streamgauge(*words)).code == 2, path
        monkeypatch.setenv("KEY_PASSWORD", MADE[1])
        key = client_key(tmp_path / "broker", MADE[1]) + "    key_password: {env: KEY_PASSWORD}\n"
        filed = broker.experiment(tmp_path, "filed.yaml", secret_file(tmp_path, "password", broker.password), key)
        assert "Nothing to clean" in watched.add(streamgauge("clean", "--cluster", filed, "--out", out)).err
        for words in (("show", "--json"), ("report",), ("list", "--json")):
            assert watched.add(streamgauge(*words, "--out", out)).code == 0
        assert holding(broker.logs, canaries) == []
    assert len({*canaries}) == 20
    assert holding(out, ["{env: PASSWORD}"]), "the experiment is kept, with the place of the secret in it"
    assert holding(out, canaries) == []
    assert [canary for canary in canaries if any(canary in text for text in watched.printed)] == []
    lines = [line for seen in watched.lines.values() for line in seen]
    assert any(b"streamgauge" in line and b"run" in line for line in lines)
    assert [line for line in lines if any(canary.encode() in line for canary in canaries)] == []
    inherited = {
        child for child, seen in watched.environments.items() if any(broker.password.encode() in e for e in seen)
    }
    assert inherited <= {pid}, "the run itself was given it; what it starts was not"
    new = {path.name for path in {*Path(tempfile.gettempdir()).iterdir()} - before}
    assert [name for name in new if name.startswith("streamgauge")] == [], "no report of an internal error"
