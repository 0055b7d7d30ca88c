"""What a run's folder says of its machine."""

import json
import subprocess
from pathlib import Path

import pytest

from streamgauge.run.environment import capture, cgroup, git_state, java_release, java_version


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_machine_is_captured_ready_for_json(tmp_path: Path) -> None:
    found = capture(tmp_path)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["version"] == 1
    assert found["cpu"]["logical"] >= 1
    assert found["memory"]["total_bytes"] > 2**20
    assert found["packages"]["pyarrow"]
    assert found["git"] is None
    assert {"cgroup", "system", "clock_source", "python", "java", "streamgauge"} <= set(found)


def test_no_secret_of_the_environment_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_TOKEN", "JAVA_TOOL_OPTIONS", "PIP_EXTRA"):
        monkeypatch.setenv(name, "-Dsecret=hunter2")
    assert "hunter2" not in json.dumps(capture(tmp_path))


def test_a_machine_that_shows_nothing_is_captured_too(tmp_path: Path) -> None:
    found = capture(tmp_path, root=tmp_path)
    assert found["clock_source"] is None
    assert found["cgroup"] == {"version": None, "cpus": None, "memory_bytes": None, "cpuset": None}


def test_limits_of_version_2_are_those_of_the_tightest_group(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": "1073741824\n",
            "sys/fs/cgroup/user.slice/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/job/memory.max": "2147483648\n",
            "sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0-3\n",
        },
    )
    assert cgroup(root) == {"version": 2, "cpus": 1.5, "memory_bytes": 2**30, "cpuset": "0-3"}


def test_limits_of_version_1_are_found_by_controller(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/ab\n3:cpuset:/\n2:cpu,cpuacct:/docker/ab\n0::/\n",
            "sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": "536870912\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpuset/cpuset.cpus": "1\n",
        },
    )
    assert cgroup(root) == {"version": 1, "cpus": 0.5, "memory_bytes": 2**29, "cpuset": "1"}


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.controllers": "", "sys/fs/cgroup/cpu.max": "max 100000"},
        {"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"},
        {"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "nonsense"},
        {"proc/self/cgroup": "garbage\n"},
    ],
)
def test_no_limit_is_none(tmp_path: Path, files: dict[str, str]) -> None:
    found = cgroup(write(tmp_path, files))
    assert (found["cpus"], found["memory_bytes"]) == (None, None)


def test_a_container_that_sees_its_own_group_as_the_root_is_understood(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../pod/ab\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu\n",
            "sys/fs/cgroup/cpu.max": "200000 100000\n",
        },
    )
    assert cgroup(root)["cpus"] == 2.0


def test_java_is_known_by_its_release_file() -> None:
    text = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nMODULES="java.base"\n'
    assert java_release(text) == {"version": "17.0.15", "vendor": "Debian"}
    assert java_release("SOURCE=1\n") is None


def test_only_the_version_is_taken_from_what_java_prints() -> None:
    text = 'Picked up JAVA_TOOL_OPTIONS: -Dpassword=x\nopenjdk version "21.0.2" 2024-01-16\nOpenJDK Runtime\n'
    assert java_version(text) == {"version": "21.0.2", "vendor": "openjdk"}
    assert java_version("")["version"] is None


def test_the_commit_is_known_and_whether_it_was_changed(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, check=True)  # noqa: S607
        return done.stdout.decode().strip()

    git("init")
    assert git_state(tmp_path) is None  # no commit yet
    (tmp_path / "job.py").write_text("one")
    git("add", ".")
    git("commit", "-m", "first")
    assert git_state(tmp_path) == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "job.py").write_text("two")
    assert git_state(tmp_path) == {"commit": git("rev-parse", "HEAD"), "dirty": True}
