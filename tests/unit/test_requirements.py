"""Requirements: what is found, what is missing with the command that fixes it, and what is installed."""

import hashlib
from pathlib import Path

import pytest

from streamgauge.cli.requirements import missing, parts
from streamgauge.install.ensure import Locations, RequirementError, ensure, examine
from streamgauge.install.requirements import PYSPARK, Jar, JarSet, JavaRuntime, PythonPackage, load_jar_set

NUMPY = PythonPackage("numpy", "NumPy")
ABSENT = PythonPackage("streamgauge-needs-no-such-package", "Nothing", extra="nothing")
JARS = JarSet("demo", "Demo 1", "1", (Jar("org.example", "demo", "1", hashlib.sha256(b"demo").hexdigest()),))


def no_java(*_: object, **__: object) -> None:
    return None


def nothing_is_installed(*_: object, **__: object) -> None:
    raise AssertionError("it was installed")


def filled(cache: Path, content: bytes = b"demo") -> Locations:
    """Locations whose cache has the jar with this content."""
    folder = JARS.folder(cache)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "demo-1.jar").write_bytes(content)
    return Locations(cache)


def test_what_is_there_is_found_with_its_version_and_its_place(tmp_path: Path) -> None:
    package, jars = examine([NUMPY, JARS], filled(tmp_path))
    assert (package.met, package.text) == (True, f"NumPy {package.version}")
    assert (jars.met, jars.text) == (True, f"Demo 1 in {tmp_path / 'demo' / '1'}")


def test_a_requirement_that_is_named_twice_is_examined_once(tmp_path: Path) -> None:
    assert len(examine([NUMPY, NUMPY], Locations(tmp_path))) == 1


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (status,) = examine([ABSENT], Locations(tmp_path))
    assert status.problem == "Nothing is not installed. Install it with: pip install 'streamgauge[nothing]'"
    assert PythonPackage("a-client").command == "pip install a-client"


def test_jars_with_another_checksum_are_missing(tmp_path: Path) -> None:
    (status,) = examine([JARS], filled(tmp_path, b"forged"))
    assert status.problem == "Demo 1 is not downloaded yet"


def test_a_missing_package_and_a_missing_java_are_one_error_and_nothing_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgauge.install.ensure.find_java", no_java)
    monkeypatch.setattr("streamgauge.install.ensure.install", nothing_is_installed)
    with pytest.raises(RequirementError) as missing_both:
        ensure([ABSENT, JavaRuntime(), JARS], Locations(tmp_path), print)
    package, java = str(missing_both.value).splitlines()
    assert package.startswith("Nothing is not installed. ")
    assert java.startswith("Java 17 or newer is required, but ")


def test_a_java_that_cannot_be_installed_is_an_error_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr("streamgauge.install.ensure.find_java", no_java)
    monkeypatch.setattr("streamgauge.install.ensure.install", lambda tool, *_: tried.append(tool))
    with pytest.raises(RequirementError, match="Java 21 or newer is required, but "):
        ensure([JavaRuntime(21)], Locations(tmp_path), print)
    assert tried == ["java"]


def test_what_is_there_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.install.ensure.install", nothing_is_installed)
    found = ensure([NUMPY, JARS], filled(tmp_path), print)
    assert [status.installed for status in found] == [False, False]


def test_a_set_of_jars_is_read_from_the_file_of_its_package() -> None:
    jars = load_jar_set("streamgauge.transports.kafka", "spark-kafka")
    assert (jars.name, len(jars.jars)) == ("spark-kafka", 5)
    assert all(name.endswith(".jar") for name in jars.checksums)


def test_every_engine_and_transport_is_a_part_and_a_transport_has_the_jars_of_its_engines() -> None:
    known = {(part.kind, part.name): part.requirements for part in parts()}
    assert known["engine", "simulated"] == known["engine", "reference"] == known["transport", "queue"] == ()
    assert known["engine", "spark"] == (PYSPARK, JavaRuntime())
    of_kafka = known["transport", "kafka"]
    assert [each.name for each in of_kafka if isinstance(each, JarSet)] == ["kafka", "spark-kafka"]
    assert JavaRuntime() in of_kafka


def test_jars_are_not_missing_because_a_run_downloads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    assert missing([NUMPY, JARS]) == []
    assert missing([ABSENT, JARS]) == ["Nothing is not installed. Install it with: pip install 'streamgauge[nothing]'"]
