"""Jars are fetched once, checked, and never in part: with a Maven that does what each test needs."""

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

from streamgauge.cli.environment import cache_folder
from streamgauge.install.cache import ChecksumMismatch, differences, ensure_folder
from streamgauge.install.ensure import Locations, RequirementError, ensure
from streamgauge.install.jars import FetchError, fetch_jars
from streamgauge.install.requirements import Jar, JarSet
from streamgauge.processes.launch import Launcher

CONTENT = {"alpha": b"first", "beta": b"second"}
JARS = JarSet(
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


def test_jars_are_fetched_once_and_then_used_without_maven(
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
        ChecksumMismatch, match=f"so they are not used: beta-1.jar has the checksum {forged}, and should have"
    ):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    assert [path.name for path in (tmp_path / "cache" / "kafka").iterdir()] == [".0.lock"]


def test_a_damaged_jar_and_an_unknown_file_are_noticed_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    maven(tmp_path, monkeypatch, 'printf second > "$into/beta-1.jar"')
    folder = fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    (folder / "beta-1.jar").write_bytes(b"secand")
    (folder / "evil.jar").write_bytes(b"")
    assert [fault.split(" has")[0] for fault in differences(folder, JARS.checksums)] == [
        "evil.jar does not belong there",
        "beta-1.jar",
    ]
    fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)
    assert differences(folder, JARS.checksums) == []


def test_a_maven_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher) -> None:
    maven(tmp_path, monkeypatch, "echo '[ERROR] Could not transfer artifact org.example:beta'; exit 1")
    with pytest.raises(
        FetchError, match=r"could not fetch Kafka 0: it ended with exit code 1\. (.|\n)*transfer artifact"
    ):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)


def test_without_maven_the_command_that_installs_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match=r"Maven is required to download jars, but none was found\. .*mvn"):
        fetch_jars(JARS, tmp_path / "cache", launcher, lambda *_: None)


KILLED = """
import os, pathlib, signal, sys
from streamgauge.install.cache import ensure_folder
def fill(draft):
    (draft / "alpha").write_bytes(b"")
    os.kill(os.getpid(), signal.SIGKILL)
ensure_folder(pathlib.Path(sys.argv[1]), {"alpha": sys.argv[2], "beta": sys.argv[2]}, fill)
"""


def test_a_fetch_that_was_killed_never_counts_as_complete(tmp_path: Path) -> None:
    empty, folder = hashlib.sha256(b"").hexdigest(), tmp_path / "cache" / "1"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), empty], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()

    def fill(draft: Path) -> None:
        assert not list(draft.iterdir()), "what the killed process left is removed"
        for name in ("alpha", "beta"):
            (draft / name).write_bytes(b"")

    assert ensure_folder(folder, {"alpha": empty, "beta": empty}, fill)
    assert sorted(path.name for path in folder.iterdir()) == ["alpha", "beta"]


def test_of_two_simultaneous_fetches_one_waits_for_the_other(tmp_path: Path) -> None:
    empty, filling, go_on = hashlib.sha256(b"").hexdigest(), threading.Event(), threading.Event()
    filled: list[bool] = []

    def fill(draft: Path) -> None:
        filling.set()
        assert go_on.wait(10)
        (draft / "alpha").write_bytes(b"")

    def ask() -> None:
        filled.append(ensure_folder(tmp_path / "1", {"alpha": empty}, fill))

    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    first.start()
    assert filling.wait(10)
    second.start()
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert sorted(filled) == [False, True]


def test_the_cache_is_in_the_folder_that_the_user_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STREAMGAUGE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "streamgauge"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "streamgauge"
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_doctor_reports_what_kafka_needs_and_the_command_that_fixes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    (check,) = [c for c in streamgauge("doctor", "--json").document["checks"] if c["name"] == "kafka"]
    assert (check["state"], check["fix"].endswith("streamgauge setup kafka")) == ("note", True)
    assert "not downloaded yet: Kafka 4.3.0" in check["found"]


def test_ensure_downloads_missing_jars_and_reports_the_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    maven(tmp_path, monkeypatch, 'printf second > "$into/beta-1.jar"')
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        found = Locations(tmp_path / "cache", runtime=Path(short))
        (first,), (second,) = ensure([JARS], found, said.append), ensure([JARS], found, said.append)
    assert (first.installed, second.installed) == (True, False)
    assert first.text == second.text == f"Kafka 0 in {tmp_path / 'cache' / 'kafka' / '0'}"
    assert said[-1] == "Downloading Kafka 0: 2 of 2 jars ..."


def test_without_maven_ensure_reports_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.install.ensure.install", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequirementError, match=r"Maven is required to download jars, but none was found\. .*mvn"):
        ensure([JARS], Locations(tmp_path / "cache"), lambda _: None)


@needs_kafka
def test_setup_reports_the_folders_of_all_jars() -> None:
    told = streamgauge("setup", "kafka", "--json")
    assert told.code == 0, told.err
    assert [jars["name"] for jars in told.document["jars"]] == ["kafka", "spark-kafka"]
    assert all(Path(jars["folder"]).is_dir() for jars in told.document["jars"])
    (check,) = [c for c in streamgauge("doctor", "--json").document["checks"] if c["name"] == "kafka"]
    assert check["state"] == "good"
