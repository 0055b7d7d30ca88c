"""``streamgauge doctor``: check that this machine can run streamgauge, and show how to fix each problem."""

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from streamgauge.cli.console import Talk
from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.model.units import format_size
from streamgauge.run.result import ExitCode

State = Literal["good", "note", "bad"]
_PACKAGES = ("numpy", "scipy", "pyarrow", "pydantic", "ruamel.yaml", "typer", "rich", "psutil")
_LEAST_DISK = 1 << 30
_SIGNS = {"good": ("ok  ", "green"), "note": ("note", "yellow"), "bad": ("BAD ", "bold red")}
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


@dataclass(frozen=True, slots=True)
class Examined:
    """The result of one check: ``note`` is a limitation, ``bad`` must be fixed."""

    name: str
    state: State
    found: str
    fix: str = ""


def command(out: Out = RUNS, json: Json = False) -> None:
    """Check that this machine can run streamgauge, and show how to fix each problem."""
    talk = Talk(json)

    from rich.text import Text

    from streamgauge.report.render.json import document

    places: list[Callable[[], Examined]] = [lambda: _writable(out), lambda: _disk(out)]
    checks = [look() for look in (_python, _packages, _cores, *places, _clock, _java, _spark, _kafka, _engines)]
    for check in checks:
        sign, style = _SIGNS[check.state]
        talk.show(Text.assemble((sign, style), f"  {check.name}: {check.found}"))
        if check.fix:
            talk.show(Text(f"      fix: {check.fix}"))
    code = ExitCode.USAGE if any(c.state == "bad" for c in checks) else ExitCode.FINE
    talk.end(document(code, checks=[asdict(c) for c in checks]), code)


def _python() -> Examined:
    good = sys.version_info >= (3, 11)
    fix = "" if good else "install Python 3.11 or newer and create a new virtual environment"
    return Examined("python", "good" if good else "bad", platform.python_version(), fix)


def _packages() -> Examined:
    from importlib import metadata

    missing, found = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Examined("packages", "bad", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return Examined("packages", "good", ", ".join(found))


def _cores() -> Examined:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{usable} usable"
    if usable < 2:
        fix = "real engines need two: one for the load driver, one for the system under test; simulated needs only one"
        return Examined("cores", "note", found, fix)
    return Examined("cores", "good", found)


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest folder above it that exists."""
    whole = folder.absolute()
    return next((place for place in (whole, *whole.parents) if place.exists()), Path("/"))


def _writable(out: Path) -> Examined:
    place = _nearest(out)
    if not place.is_dir():
        return Examined("results folder", "bad", f"{place} is not a folder", "set --out to a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        fix = "change its permissions, or set --out to another folder"
        return Examined("results folder", "bad", f"{place} cannot be written", fix)
    return Examined("results folder", "good", f"{out} can be written")


def _disk(out: Path) -> Examined:
    free = shutil.disk_usage(_nearest(out)).free
    if free < _LEAST_DISK:
        fix = "free some space, for example with `streamgauge clean`, or set --out to a folder on another disk"
        return Examined("disk", "note", f"{format_size(free)} free", fix)
    return Examined("disk", "good", f"{format_size(free)} free")


def _clock() -> Examined:
    if not _CLOCK.exists():
        return Examined("clock source", "note", f"not known on {platform.system()}", "measure real engines on Linux")
    source = _CLOCK.read_text(encoding="ascii").strip()
    if source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return Examined("clock source", "good", source)
    return Examined(
        "clock source", "note", f"{source} is slow to read", "boot with clocksource=tsc if the CPU allows it"
    )


def _java() -> Examined:
    from streamgauge.cli.java import java_home
    from streamgauge.install.ensure import ask_java, is_root
    from streamgauge.install.java import LEAST, find_java, javas, missing
    from streamgauge.install.packages import manager

    found = find_java(java_home(), ask_java)
    if found is not None:
        return Examined("java", "good", f"{found.version} in {found.home}")
    old = [*javas(java_home(), ask_java)]
    shown = ", ".join(f"{java.version} in {java.home}" for java in old) or "not found"
    by_setup = "or run `streamgauge setup spark`, which installs it if no password is needed"
    fix = f"{missing(old, manager(), is_root())}, {by_setup}"
    return Examined("java", "note", f"{shown}; engines on the JVM need {LEAST} or newer", fix)


def _spark() -> Examined:
    from streamgauge.cli.spark import INSTALL, pyspark_version

    version = pyspark_version()
    if version is None:
        found = "PySpark is not installed; engine spark and `show --recompute` need it"
        return Examined("spark", "note", found, INSTALL)
    return Examined("spark", "good", f"PySpark {version}")


def _kafka() -> Examined:
    from streamgauge.cli.cache import cache_folder
    from streamgauge.cli.kafka import INSTALL, client_version, missing_jars
    from streamgauge.install.ensure import is_root
    from streamgauge.install.jars import pinned
    from streamgauge.install.packages import find_maven, manager, maven_missing

    client, jars = client_version(), pinned("kafka")
    if client is None:
        return Examined("kafka", "note", "confluent-kafka is not installed; transport kafka needs it", INSTALL)
    wanted = missing_jars()
    if not wanted:
        return Examined("kafka", "good", f"confluent-kafka {client}, {jars.title} in {jars.folder(cache_folder())}")
    found = f"confluent-kafka {client}; jars not downloaded yet: {', '.join(each.title for each in wanted)}"
    fix = (
        "streamgauge setup kafka"
        if find_maven()
        else f"{maven_missing(manager(), is_root())}; then streamgauge setup kafka"
    )
    return Examined("kafka", "note", found, fix)


def _engines() -> Examined:
    from streamgauge.engines.registry import broken, engines

    if broken():
        return Examined("engines", "note", "; ".join(broken()), "reinstall or remove that package")
    return Examined("engines", "good", ", ".join(sorted(engines())))
