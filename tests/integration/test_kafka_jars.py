"""Jars are fetched once, checked, and never half: with a Maven that does what each test wants."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import streamgauge
from kafka_broker import needs_kafka

from streamgauge.cli.cache import cache_folder
from streamgauge.install.cache import WrongFiles, faults, furnish
from streamgauge.install.jars import FetchError, Jar, Jars, fetch_jars
from streamgauge.processes.launch import Launcher

CONTENT = {"alpha": b"first", "beta": b"second"}
JARS = Jars(
    "kafka",
    "Kafka 0",
    "0",
    tuple(Jar("org.example", name, "1", hashlib.sha256(held).hexdigest()) for name, held in CONTENT.items()),
)
MAVEN = """#!/bin/sh
echo asked >> "{folder}/asked"
into=$(sed -n 's|.*<outputDirectory>\\(.*\\)</outputDirectory>.*|\\1|p' "$3")
for name in alpha beta; do echo "[INFO] Configured Artifact: org.example:$name:1:jar"; done
printf first > "$into/alpha-1.jar"
{rest}
"""


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as made:
        yield made


def maven(folder: Path, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    """Put a Maven on the path that fetches the first jar and then does this."""
    program = folder / "bin" / "mvn"
    program.parent.mkdir(exist_ok=True)
    program.write_text(MAVEN.format(folder=folder, rest=rest))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")


def test_jars_are_fetched_once_and_then_there_without_maven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    told: list[tuple[int, int]] = []
    maven(tmp_path, monkeypatch, 'printf second > "$into/beta-1.jar"')
    folder = fetch_jars(JARS, tmp_path / "cache", launcher, lambda *have: told.append(have))
    assert folder == tmp_path / "cache" / "kafka" / "0"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "alpha-1.jar": b"first",
        "beta-1.jar": b"second",
    }
    assert told[-1] == (2, 2)
    monkeypatch.setenv("PATH", "/nowhere")
    assert fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None) == folder
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_wrong_checksum_names_the_jar_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    maven(tmp_path, monkeypatch, 'printf forged > "$into/beta-1.jar"')
    forged = hashlib.sha256(b"forged").hexdigest()
    with pytest.raises(
        WrongFiles, match=f"so they are not used: beta-1.jar has the checksum {forged}, and should have"
    ):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    assert [path.name for path in (tmp_path / "cache" / "kafka").iterdir()] == [".0.lock"]


def test_a_damaged_jar_and_a_stranger_are_noticed_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    maven(tmp_path, monkeypatch, 'printf second > "$into/beta-1.jar"')
    folder = fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    (folder / "beta-1.jar").write_bytes(b"secand")
    (folder / "evil.jar").write_bytes(b"")
    assert [fault.split(" has")[0] for fault in faults(folder, JARS.checksums)] == [
        "evil.jar does not belong there",
        "beta-1.jar",
    ]
    fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    assert faults(folder, JARS.checksums) == []


def test_a_maven_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher) -> None:
    maven(tmp_path, monkeypatch, "echo '[ERROR] Could not transfer artifact org.example:beta'; exit 1")
    with pytest.raises(
        FetchError, match=r"could not fetch Kafka 0: it ended with exit code 1\. (.|\n)*transfer artifact"
    ):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)


def test_without_maven_the_line_to_type_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match=r"Maven is required to download jars, but none was found\. .*mvn"):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)


KILLED = """
import os, pathlib, signal, sys
from streamgauge.install.cache import furnish
def fill(draft):
    (draft / "alpha").write_bytes(b"")
    os.kill(os.getpid(), signal.SIGKILL)
furnish(pathlib.Path(sys.argv[1]), {"alpha": sys.argv[2], "beta": sys.argv[2]}, fill)
"""


def test_a_fetch_that_was_killed_is_never_taken_for_whole(tmp_path: Path) -> None:
    empty, folder = hashlib.sha256(b"").hexdigest(), tmp_path / "cache" / "1"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), empty], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()

    def fill(draft: Path) -> None:
        assert not list(draft.iterdir()), "what the dead one left is gone"
        for name in ("alpha", "beta"):
            (draft / name).write_bytes(b"")

    assert furnish(folder, {"alpha": empty, "beta": empty}, fill)
    assert sorted(path.name for path in folder.iterdir()) == ["alpha", "beta"]


def test_of_two_at_once_one_fetches_and_the_other_waits(tmp_path: Path) -> None:
    empty, filling, go_on = hashlib.sha256(b"").hexdigest(), threading.Event(), threading.Event()
    filled: list[bool] = []

    def fill(draft: Path) -> None:
        filling.set()
        assert go_on.wait(10)
        (draft / "alpha").write_bytes(b"")

    def ask() -> None:
        filled.append(furnish(tmp_path / "1", {"alpha": empty}, fill))

    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    first.start()
    assert filling.wait(10)
    second.start()
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert sorted(filled) == [False, True]


def test_the_cache_lies_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STREAMGAUGE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "streamgauge"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "streamgauge"
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_doctor_says_what_kafka_lacks_and_how_to_mend_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    (check,) = [c for c in streamgauge("doctor", "--json").document["checks"] if c["name"] == "kafka"]
    assert (check["state"], check["fix"].endswith("streamgauge setup kafka")) == ("note", True)
    assert "not downloaded yet: Kafka 4.3.0" in check["found"]


@needs_kafka
def test_setup_says_where_everything_is() -> None:
    told = streamgauge("setup", "kafka", "--json")
    assert told.code == 0, told.err
    assert [jars["name"] for jars in told.document["jars"]] == ["kafka", "spark-kafka"]
    assert all(Path(jars["folder"]).is_dir() for jars in told.document["jars"])
    (check,) = [c for c in streamgauge("doctor", "--json").document["checks"] if c["name"] == "kafka"]
    assert check["state"] == "good"
