"""The browser for the tests of the report: ``make`` installs it, and tries again if it could not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "sh", "env", "id", "touch", "tail", "true")
INSTALLS = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in
  *install*) {install} ;;
esac
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished environment, and a folder of programs without a browser and without sudo."""
    (tmp_path / "venv").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "venv" / ".ready").touch()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    (tmp_path / "bin" / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n', encoding="utf-8")
    (tmp_path / "bin" / "sudo").chmod(0o755)
    return tmp_path


def apt_get(folder: Path, install: str) -> None:
    """An apt-get that does this when something is installed."""
    program = folder / "bin" / "apt-get"
    program.write_text(INSTALLS.format(folder=folder, install=install), encoding="utf-8")
    program.chmod(0o755)


def make(folder: Path) -> "subprocess.CompletedProcess[str]":
    target, make_program = folder / "venv" / ".browser", shutil.which("make")
    assert make_program is not None
    return subprocess.run(
        [make_program, f"VENV={folder / 'venv'}", str(target)],
        env={**os.environ, "PATH": str(folder / "bin")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_browser_that_could_not_be_installed_is_tried_again(folder: Path) -> None:
    apt_get(folder, "echo no such package >&2; exit 1")
    for _ in range(2):
        done = make(folder)
        assert done.returncode == 0, done.stderr
        assert "chromium could not be installed" in done.stderr
        assert "no such package" in done.stderr
    calls = (folder / "calls").read_text(encoding="utf-8").splitlines()
    assert len([call for call in calls if "install" in call]) == 2
    assert not (folder / "venv" / ".browser").exists()


def test_a_browser_that_was_installed_is_not_looked_for_again(folder: Path) -> None:
    apt_get(folder, f"touch {folder}/bin/chromium; /bin/chmod +x {folder}/bin/chromium")
    for _ in range(2):
        done = make(folder)
        assert done.returncode == 0, done.stderr
    assert (folder / "venv" / ".browser").exists()
    assert len((folder / "calls").read_text(encoding="utf-8").splitlines()) == 2, "update and install, once"
