"""Tracked files name no registry and no machine: the project builds the same anywhere."""

import re
import subprocess
from pathlib import Path

import pytest
from source import ROOT

# Written in pieces, so that this file does not find itself.
HOSTS = re.compile(
    "|".join(
        re.escape(left + right)
        for left, right in (
            ("pypi", ".org"),
            ("python", "hosted.org"),
            ("npm", "js.org"),
            ("repo1.", "maven.org"),
            ("repo.maven", ".apache.org"),
            ("index-", "url"),
            ("find-", "links"),
        )
    )
)
PLACES = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("ro" + "ot", "ho" + "me", "Us" + "ers", "wo" + "rk", "op" + "t")) + r")/\w"
)


def tracked() -> list[Path]:
    """Files under version control, or all that are not hidden where there is none (an unpacked archive)."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    inside = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in inside if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]


def breaches(name: str, text: str) -> list[str]:
    """Lines that name a registry's host or a path of one machine."""
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if HOSTS.search(line) or PLACES.search(line)
    ]


def test_no_tracked_file_names_a_registry_or_a_machine() -> None:
    found = []
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found += breaches(str(path.relative_to(ROOT)), content.decode("utf-8", "replace"))
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "url = https://" + "pypi" + ".org/simple",
        "--index-" + "url x",
        "cd /" + "root/project",
        "x = '/" + "home/ann/a'",
    ],
)
def test_a_line_that_names_one_is_seen(line: str) -> None:
    assert breaches("Makefile", line)


@pytest.mark.parametrize("line", ["docs/" + "root/x", "see ./" + "work/x", "tests/integration", "a workload /s"])
def test_other_lines_are_left_unchanged(line: str) -> None:
    assert breaches("Makefile", line) == []


def test_the_versions_are_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins, "constraints.txt is empty"
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", pin)] == []


def test_the_makefile_explains_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", text, re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.*## \w", text, re.MULTILINE))
    assert {"demo", "test", "check", "bench", "soak", "help", "clean", "lock"} <= targets == explained
