"""The machine that a run ran on, for its folder: what must be equal for two runs to be compared.

No environment variables, host names or addresses: a run's folder is made to be sent on.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import streamgauge
from streamgauge.install.java import parse_release, parse_version

VERSION = 1
"""Of the keys of ``capture``."""

_JAVA_SECONDS = 0.4
_GIT_SECONDS = 0.4
_UNLIMITED = 1 << 60  # cgroup v1 states "no limit" as a number close to 2^63

Fact = dict[str, Any]


def capture(cwd: Path = Path(), root: Path = Path("/")) -> Fact:
    """Everything about the machine and the software that a result depends on, ready for JSON.

    ``root`` is the folder of ``proc`` and ``sys``.
    """
    return {
        "version": VERSION,
        "streamgauge": streamgauge.__version__,
        "cpu": _cpu(root),
        "memory": _memory(),
        "cgroup": cgroup(root),
        "system": _system(root),
        "clock_source": _first_line(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": _packages(),
        "java": _java(),
        "git": git_state(cwd),
    }


def machine_name(root: Path = Path("/")) -> str:
    """What calibrations are kept by: the processor and how many of its cores we may use."""
    cpu = _cpu(root)
    return f"{cpu['model'] or cpu['architecture']}, {len(cpu['usable'] or ()) or cpu['logical']} cores"


def _read(path: Path) -> str | None:
    """A small file of the kernel's; None where there is none, or none for us."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def _first_line(path: Path) -> str | None:
    text = _read(path)
    return text.strip().partition("\n")[0] if text and text.strip() else None


def _cpu(root: Path) -> Fact:
    """``usable`` are the CPUs that this process may run on."""
    info = _read(root / "proc/cpuinfo") or ""
    model = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", info, re.MULTILINE)
    affinity = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else None
    return {
        "model": model[1].strip() if model else platform.processor() or None,
        "architecture": platform.machine(),
        "logical": psutil.cpu_count(logical=True),
        "physical": psutil.cpu_count(logical=False),
        "usable": affinity,
        "governor": _first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "hypervisor": bool(re.search(r"^flags\s*:.*\bhypervisor\b", info, re.MULTILINE)),
    }


def _memory() -> Fact:
    return {"total_bytes": psutil.virtual_memory().total, "swap_bytes": psutil.swap_memory().total}


def _system(root: Path) -> Fact:
    release = _read(root / "etc/os-release") or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', release, re.MULTILINE)
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "build": platform.version(),
        "distribution": name[1] if name else None,
    }


@cache
def _packages() -> dict[str, str]:
    """Name and version of everything that can be imported. They stay the same as long as the process lives."""
    found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


# --- cgroup: how much of the machine may be used -----------------------------------------------------


def cgroup(root: Path = Path("/")) -> Fact:
    """CPU and memory limits of our control group, version 1 or 2. None where there is no limit.

    A limit of a parent group applies too, so the lowest on the way up counts.
    """
    groups = _groups(_read(root / "proc/self/cgroup") or "")
    mount = root / "sys/fs/cgroup"
    if (mount / "cgroup.controllers").exists():
        return {"version": 2, **_limits_v2(mount, groups.get("", "/"))}
    if groups:
        return {"version": 1, **_limits_v1(mount, groups)}
    return {"version": None, "cpus": None, "memory_bytes": None, "cpuset": None}


def _groups(text: str) -> dict[str, str]:
    """Controller → path, from lines such as ``4:cpu,cpuacct:/docker/ab12``; version 2 has no controller."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            found |= dict.fromkeys(controllers.split(","), path)
    return found


def _up(mount: Path, group: str) -> list[Path]:
    """The folders of a group and of those above it. In a container the own group may be mounted as the root."""
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]


def _tightest(limits: list[float | None]) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _whole(limit: float | None) -> int | None:
    return None if limit is None else int(limit)


def _limits_v2(mount: Path, group: str) -> Fact:
    folders = _up(mount, group)
    cpuset = (_first_line(f / "cpuset.cpus.effective") for f in folders)
    return {
        "cpus": _tightest([_cpu_max(_first_line(f / "cpu.max")) for f in folders]),
        "memory_bytes": _whole(_tightest([_number(_first_line(f / "memory.max")) for f in folders])),
        "cpuset": next((cpus for cpus in cpuset if cpus), None),
    }


def _limits_v1(mount: Path, groups: dict[str, str]) -> Fact:
    def folders(controller: str) -> list[Path]:
        return _up(mount / controller, groups.get(controller, "/"))

    quotas = [_share(_first_line(f / "cpu.cfs_quota_us"), _first_line(f / "cpu.cfs_period_us")) for f in folders("cpu")]
    memory = [_number(_first_line(f / "memory.limit_in_bytes")) for f in folders("memory")]
    cpuset = (_first_line(f / "cpuset.effective_cpus") or _first_line(f / "cpuset.cpus") for f in folders("cpuset"))
    return {
        "cpus": _tightest(quotas),
        "memory_bytes": _whole(_tightest(memory)),
        "cpuset": next((cpus for cpus in cpuset if cpus), None),
    }


def _cpu_max(line: str | None) -> float | None:
    quota, _, period = (line or "").partition(" ")
    return _share(quota, period)


def _share(quota: str | None, period: str | None) -> float | None:
    top, bottom = _number(quota), _number(period)
    return top / bottom if top is not None and bottom else None


def _number(text: str | None) -> float | None:
    """A limit, None for ``max``, −1 and the huge numbers that mean the same."""
    if text is None or not text.strip().isdecimal() or int(text) >= _UNLIMITED:
        return None
    return float(text)


# --- output of other programs -------------------------------------------------------------------------


def _answer(argv: list[str], seconds: float) -> str | None:
    """What a program prints, or None if it cannot, fails, or takes too long."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout + done.stderr).decode("utf-8", "replace") if done.returncode == 0 else None


def _java() -> Fact | None:
    """The Java on the path. Its ``release`` file has the version without starting a JVM."""
    found = shutil.which("java")
    if found is None:
        return None
    release = _read(Path(found).resolve().parent.parent / "release")
    known = java_release(release) if release else None
    return known or java_version(_answer([found, "-version"], _JAVA_SECONDS) or "")


def java_release(text: str) -> Fact | None:
    """Version and vendor from the ``release`` file of a Java home."""
    release = parse_release(text)
    return {"version": release[0], "vendor": release[1] or None} if release else None


def java_version(text: str) -> Fact:
    """The same from ``java -version``."""
    version, vendor = parse_version(text) or (None, None)
    return {"version": version, "vendor": vendor}


def git_state(cwd: Path) -> Fact | None:
    """Commit of the repository around ``cwd``, and whether tracked files differ from it."""
    git = shutil.which("git")
    if git is None:
        return None
    # A repository may name a program to run on status, which is not started.
    quiet = [git, "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(cwd)]
    text = _answer([*quiet, "status", "--porcelain=v2", "--branch", "--untracked-files=no"], _GIT_SECONDS)
    commit = re.search(r"^# branch\.oid ([0-9a-f]{40,64})$", text or "", re.MULTILINE)
    if text is None or commit is None:
        return None
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in text.splitlines())}
