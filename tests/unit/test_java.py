"""Finding a Java that is new enough, and saying how to get one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from streamgauge.cli.environment import choose_java
from streamgauge.install.ensure import Locations, examine
from streamgauge.install.java import (
    SEARCH_PATHS,
    Java,
    all_javas,
    find_java,
    install_hint,
    major,
    parse_release,
    parse_version,
)
from streamgauge.install.packages import MANAGERS, PackageManager, find_maven, maven_hint, package_manager
from streamgauge.install.programs import install, sudo_prefix
from streamgauge.install.requirements import JavaRuntime

APT = MANAGERS[0]


def home(root: Path, name: str, version: str | None) -> Path:
    """A folder that looks like a Java; without a version it has no ``release`` file."""
    folder = root / name
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    if version is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="Debian"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture(autouse=True)
def nothing_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.parametrize(
    ("version", "number"),
    [("17.0.15", 17), ("21-ea", 21), ("1.8.0_392", 8), ("11", 11), ("25+36", 25), ("", 0), ("unknown", 0), ("1", 1)],
)
def test_the_first_number_of_a_version_counts(version: str, number: int) -> None:
    assert major(version) == number


def test_a_release_file_and_the_program_have_the_same_version() -> None:
    release = 'IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="17.0.15+6"\nJAVA_VERSION="17.0.15"\n'
    printed = 'Picked up JAVA_TOOL_OPTIONS: -Dx="1.8"\nopenjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime …\n'
    assert parse_release(release) == ("17.0.15", "Debian")
    assert parse_version(printed) == ("17.0.15", "openjdk")
    assert parse_release("MODULES=x") is parse_version("no java here") is None


def test_the_java_that_was_chosen_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, on_path = home(tmp_path, "chosen", "21.0.2"), home(tmp_path, "on-path", "17.0.1")
    home(tmp_path / "usual", "25", "25.0.1")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    usual = [f"{tmp_path}/usual/*"]
    assert [java.major for java in all_javas(str(chosen), search_paths=usual)] == [21, 17, 25]
    found = find_java("", search_paths=usual)
    assert found is not None
    assert (found.home, found.version, found.vendor) == (on_path, "17.0.1", "Debian")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, older = home(tmp_path, "old", "11.0.2"), home(tmp_path, "older", "1.8.0_392")
    monkeypatch.setenv("PATH", str(older / "bin"))
    home(tmp_path / "usual", "jdk-25", "25.0.1")
    oldest = home(tmp_path / "usual", "jdk-17", "17.0.9")
    found = find_java(str(old), search_paths=[f"{tmp_path}/usual/*"])
    assert found is not None
    assert found.home == oldest, "without a choice of the user, the one that is surely supported"
    assert find_java(str(old), search_paths=[]) is None


def test_a_java_without_a_release_file_is_started(tmp_path: Path) -> None:
    silent = home(tmp_path, "silent", None)
    assert find_java(str(silent), search_paths=[]) is None
    found = find_java(str(silent), lambda program: f'{program.name} version "21.0.1"', search_paths=[])
    assert found is not None
    assert (found.major, found.program) == (21, silent / "bin" / "java")


def test_a_home_without_a_program_is_no_java(tmp_path: Path) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="17"')
    assert find_java(str(tmp_path), search_paths=[]) is None
    assert all(pattern.startswith("/") for pattern in SEARCH_PATHS)


def test_what_is_started_later_gets_the_chosen_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    new, old = home(tmp_path, "new", "17.0.1"), home(tmp_path, "old", "11.0.2")
    monkeypatch.setenv("PATH", str(old / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert find_java(str(new)) == Java(new, "17.0.1", "Debian")
    choose_java(new)
    assert shutil.which("java") == str(new / "bin" / "java")
    before = dict(os.environ)
    choose_java(new)
    assert dict(os.environ) == before, "once is enough"


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("apt-get", "apt-get install -y --no-install-recommends openjdk-17-jre-headless"),
        ("dnf", "dnf install -y java-17-openjdk-headless"),
        ("yum", "yum install -y java-17-openjdk-headless"),
        ("zypper", "zypper --non-interactive install java-17-openjdk-headless"),
        ("apk", "apk add --no-cache openjdk17-jre-headless"),
        ("pacman", "pacman -Sy --noconfirm jre17-openjdk-headless"),
    ],
)
def test_the_line_to_type_is_that_of_the_system(program: str, line: str) -> None:
    known = package_manager(lambda name: name if name == program else None)
    assert known is not None
    assert (
        install_hint([], known, root=True)
        == f"Java 17 or newer is required, but none was found. Install it with: {line}"
    )
    assert install_hint([], known, root=False).endswith(f"Install it with: sudo {line}")


def test_homebrew_is_never_run_as_root() -> None:
    known = package_manager(lambda name: name if name == "brew" else None)
    assert known is not None
    assert install_hint([], known, root=False).endswith("Install it with: brew install openjdk@17")


def test_an_unknown_system_gets_a_sentence_too() -> None:
    said = install_hint([Java(Path("/usr/lib/jvm/old"), "11.0.2")], package_manager(lambda _: None), root=True)
    assert said == (
        "Java 17 or newer is required, but only Java 11.0.2 in /usr/lib/jvm/old was found. "
        "Install it and set JAVA_HOME to its folder"
    )


def test_a_java_that_is_too_old_or_missing_is_a_problem_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem() -> str:
        (status,) = examine([JavaRuntime()], Locations(tmp_path / "cache"))
        return status.problem

    monkeypatch.setattr("streamgauge.install.java._homes", lambda patterns: [])
    assert problem().startswith("Java 17 or newer is required, but none was found. ")
    monkeypatch.setenv("PATH", str(home(tmp_path, "old", "11.0.2") / "bin"))
    assert "only Java 11.0.2 in " in problem()
    silent = home(tmp_path, "silent", None)
    (silent / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    monkeypatch.setenv("PATH", str(silent / "bin"))
    assert problem() == "", "it has no release file, so it is run"
    monkeypatch.setenv("PATH", str(home(tmp_path, "new", "17.0.1") / "bin"))
    assert problem() == ""


class System:
    """A package manager that knows some packages, and a sudo that lets us or not."""

    def __init__(self, packages: Sequence[str], sudo: bool = True) -> None:
        self.packages, self.sudo = packages, sudo
        self.done: list[str] = []
        self.installed = False

    def do(self, argv: Sequence[str]) -> tuple[int, str]:
        self.done.append(" ".join(argv))
        if argv[:2] == ["sudo", "-n"] and not self.sudo:
            return 1, "sudo: a password is required"
        if "install" in argv:
            self.installed = argv[-1] in self.packages
            return (0, "") if self.installed else (100, f"E: Unable to locate package {argv[-1]}")
        return 0, ""

    def find(self) -> Java | None:
        return Java(Path("/usr/lib/jvm/new"), "21.0.1") if self.installed else None


def test_a_java_is_installed_without_a_question() -> None:
    system, said = System(["openjdk-21-jre-headless"]), list[str]()
    plain = PackageManager(APT.program, APT.install, APT.packages, APT.refresh, as_root=False)
    java = install("java", system.find, said.append, plain, system.do)
    assert java is not None
    assert java.major == 21
    quiet = "env DEBIAN_FRONTEND=noninteractive apt-get"
    assert system.done == [
        f"{quiet} update",
        f"{quiet} install -y --no-install-recommends openjdk-17-jre-headless",
        f"{quiet} install -y --no-install-recommends openjdk-21-jre-headless",
    ]
    assert said[-1] == "Installing openjdk-21-jre-headless with apt-get ..."


def test_where_no_package_has_a_java_the_manager_is_quoted() -> None:
    system, said = System([]), list[str]()
    plain = PackageManager(APT.program, APT.install, APT.packages, APT.refresh, as_root=False)
    assert install("java", system.find, said.append, plain, system.do) is None
    assert said[-1].startswith("apt-get could not install Java:")
    assert "E: Unable to locate package default-jre-headless" in said[-1]


def test_maven_is_installed_as_java_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, said = System(["maven"]), list[str]()
    plain = PackageManager(APT.program, APT.install, APT.packages, APT.refresh, as_root=False)
    assert find_maven() is None
    assert install("maven", lambda: system.installed or None, said.append, plain, system.do) is True
    assert said == ["Installing maven with apt-get ..."]
    (tmp_path / "mvn").write_text("#!/bin/sh\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_maven() == tmp_path / "mvn"


@pytest.mark.parametrize("known", MANAGERS, ids=lambda known: known.program)
def test_the_line_to_type_for_maven_is_that_of_the_system(known: PackageManager) -> None:
    line = f"{known.program} {' '.join(known.install)} maven"
    assert (
        maven_hint(known, root=True)
        == f"Maven is required to download jars, but none was found. Install it with: {line}"
    )
    assert maven_hint(known, root=False).endswith(f"Install it with: {'sudo ' if known.as_root else ''}{line}")
    assert maven_hint(None, root=True).endswith("Install it so that mvn is on the PATH")


def test_no_password_is_requested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sudo_prefix(APT, System([], sudo=False).do, root=True) == ()
    assert sudo_prefix(APT, System([]).do, root=False) is None, "there is no sudo here"
    (tmp_path / "sudo").write_text("#!/bin/sh\n")
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sudo_prefix(APT, System([]).do, root=False) == ("sudo", "-n")
    assert sudo_prefix(APT, System([], sudo=False).do, root=False) is None
