"""``streamgauge doctor``: check that this machine can run streamgauge, and show how to fix each problem."""

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamgauge.cli.console import CliOutput
from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.model.units import format_size
from streamgauge.run.result import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamgauge.cli.requirements import Part
    from streamgauge.install.requirements import PythonPackage

State = Literal["ok", "warning", "error"]
_PACKAGES = ("numpy", "scipy", "pyarrow", "pydantic", "ruamel.yaml", "typer", "rich", "psutil")
_MIN_DISK = 1 << 30
_SIGNS: dict[State, tuple[str, str]] = {
    "ok": ("ok  ", "green"),
    "warning": ("note", "yellow"),
    "error": ("BAD ", "bold red"),
}
_JSON_STATES: dict[State, str] = {"ok": "good", "warning": "note", "error": "bad"}
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check: a warning is a limitation, an error must be fixed."""

    name: str
    state: State
    found: str
    fix: str = ""


def command(out: Out = RUNS, json: Json = False) -> None:
    """Check that this machine can run streamgauge, and show how to fix each problem."""
    output = CliOutput(json)

    from rich.text import Text

    from streamgauge.cli.requirements import parts
    from streamgauge.report.render.json import document

    known = parts()
    checks = [_python(), _packages(), _cores(), _writable(out), _disk(out), _clock(), *_java(known)]
    checks += [check for part in known for check in _part(part, known)]
    checks.append(_plugins())
    for check in checks:
        sign, style = _SIGNS[check.state]
        output.print(Text.assemble((sign, style), f"  {check.name}: {check.found}"))
        if check.fix:
            output.print(Text(f"      fix: {check.fix}"))
    code = ExitCode.USAGE if any(c.state == "error" for c in checks) else ExitCode.OK
    output.exit(document(code, checks=[_row(check) for check in checks]), code)


def _row(check: HealthCheck) -> dict[str, Any]:
    """A check in the JSON document."""
    return {"name": check.name, "state": _JSON_STATES[check.state], "found": check.found, "fix": check.fix}


def _python() -> HealthCheck:
    good = sys.version_info >= (3, 11)
    fix = "" if good else "install Python 3.11 or newer and create a new virtual environment"
    return HealthCheck("python", "ok" if good else "error", platform.python_version(), fix)


def _packages() -> HealthCheck:
    from importlib import metadata

    missing, found = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return HealthCheck("packages", "error", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return HealthCheck("packages", "ok", ", ".join(found))


def _cores() -> HealthCheck:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{usable} usable"
    if usable < 2:
        fix = "real engines need two: one for the load driver, one for the system under test; simulated needs only one"
        return HealthCheck("cores", "warning", found, fix)
    return HealthCheck("cores", "ok", found)


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest folder above it that exists."""
    absolute = folder.absolute()
    return next((place for place in (absolute, *absolute.parents) if place.exists()), Path("/"))


def _writable(out: Path) -> HealthCheck:
    place = _nearest(out)
    if not place.is_dir():
        return HealthCheck("results folder", "error", f"{place} is not a folder", "set --out to a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        fix = "change its permissions, or set --out to another folder"
        return HealthCheck("results folder", "error", f"{place} cannot be written", fix)
    return HealthCheck("results folder", "ok", f"{out} can be written")


def _disk(out: Path) -> HealthCheck:
    free = shutil.disk_usage(_nearest(out)).free
    if free < _MIN_DISK:
        fix = "free some space, for example with `streamgauge clean`, or set --out to a folder on another disk"
        return HealthCheck("disk", "warning", f"{format_size(free)} free", fix)
    return HealthCheck("disk", "ok", f"{format_size(free)} free")


def _clock() -> HealthCheck:
    if not _CLOCK.exists():
        return HealthCheck(
            "clock source", "warning", f"not known on {platform.system()}", "measure real engines on Linux"
        )
    source = _CLOCK.read_text(encoding="ascii").strip()
    if source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return HealthCheck("clock source", "ok", source)
    return HealthCheck(
        "clock source", "warning", f"{source} is slow to read", "boot with clocksource=tsc if the CPU allows it"
    )


def _java(known: "Sequence[Part]") -> list[HealthCheck]:
    """The Java that all engines and transports can use, if any of them needs one."""
    from streamgauge.cli.environment import locations
    from streamgauge.install.ensure import examine
    from streamgauge.install.requirements import JavaRuntime

    users = {part.name: each for part in known for each in part.requirements if isinstance(each, JavaRuntime)}
    if not users:
        return []
    newest = max(users.values(), key=lambda java: java.min_version)
    (status,) = examine([newest], locations())
    if status.met:
        return [HealthCheck("java", "ok", f"{status.version} in {status.folder}")]
    found = f"{status.version or 'not found'}; engines on the JVM need {newest.min_version} or newer"
    by_setup = f"or run `streamgauge setup {next(iter(users))}`, which installs it if no password is needed"
    return [HealthCheck("java", "warning", found, f"{status.problem}, {by_setup}")]


def _part(part: "Part", known: "Sequence[Part]") -> list[HealthCheck]:
    """The packages and jars of one engine or transport, if it needs any."""
    from streamgauge.cli.environment import locations
    from streamgauge.install.ensure import examine
    from streamgauge.install.requirements import JarSet, PythonPackage

    found = examine((each for each in part.requirements if isinstance(each, (PythonPackage, JarSet))), locations())
    if not found:
        return []
    lacking = [s.requirement for s in found if not s.met and isinstance(s.requirement, PythonPackage)]
    if lacking:
        reasons = [f"{package.title or package.name} is not installed; {_users(package, known)}" for package in lacking]
        commands = " && ".join(package.command for package in lacking)
        return [HealthCheck(part.name, "warning", "; ".join(reasons), commands)]
    jars = [s.requirement.title for s in found if not s.met and isinstance(s.requirement, JarSet)]
    present = ", ".join(status.text for status in found if status.met)
    if not jars:
        return [HealthCheck(part.name, "ok", present)]
    text = "; ".join([*([present] if present else []), f"jars not downloaded yet: {', '.join(jars)}"])
    return [HealthCheck(part.name, "warning", text, f"{_maven_first()}streamgauge setup {part.name}")]


def _users(package: "PythonPackage", known: "Sequence[Part]") -> str:
    """What needs a package, for a sentence."""
    from streamgauge.analyze import REQUIREMENTS

    users = [f"{part.kind} {part.name}" for part in known if package in part.requirements]
    users += ["`show --recompute`"] if package in REQUIREMENTS else []
    return f"{' and '.join(users)} need{'s' * (len(users) == 1)} it"


def _maven_first() -> str:
    """How to install Maven, which downloads the jars; empty if it is installed."""
    from streamgauge.install.packages import find_maven, maven_hint, package_manager
    from streamgauge.install.programs import is_root

    return "" if find_maven() else f"{maven_hint(package_manager(), is_root())}; then "


def _plugins() -> HealthCheck:
    """The engines, and every engine, transport and workload that is installed but cannot be used."""
    from streamgauge.engines.registry import engines
    from streamgauge.engines.registry import load_problems as engine_problems
    from streamgauge.transports.registry import load_problems as transport_problems
    from streamgauge.workloads.registry import load_problems as workload_problems

    problems = [*engine_problems(), *transport_problems(), *workload_problems()]
    if problems:
        return HealthCheck("engines", "warning", "; ".join(problems), "reinstall or remove that package")
    return HealthCheck("engines", "ok", ", ".join(sorted(engines())))
