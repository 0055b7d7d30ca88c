"""kill -9 at any moment loses no finished trial and leaves every run readable."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import store_child as child

from streamgauge.store import Store, read_partial

KILLS = 6
CHILD = Path(__file__).with_name("store_child.py")


def kill_at_random(root: Path, token: str | None, rng: random.Random) -> list[str]:
    """Start a writer, kill it after some lines and some microseconds, return all it had said."""
    argv = [sys.executable, str(CHILD), str(root), *([token] if token else [])]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(rng.randrange(1, 16))]
        moment = time.perf_counter_ns() + rng.randrange(30_000_000)
        while time.perf_counter_ns() < moment:  # finer than a sleep: the kill must hit the middle of a write too
            pass
        writer.kill()
        said += writer.stdout.readlines()
    assert said[0].startswith("run "), said
    return [line.strip() for line in said if line.endswith("\n")]


def check_run(root: Path, said: list[str]) -> None:
    """Everything that was said to be finished is there, whole and right."""
    run = Store(root).find(said[0].removeprefix("run "))
    reported = {int(line.split()[1]) for line in said if line.startswith("trial ")}
    numbers = [t.trial.number for t in run.trials()]
    assert reported <= set(numbers)
    assert numbers == list(range(1, len(numbers) + 1))
    for number in numbers:
        recording = run.recording(number)
        assert recording.trial == child.trial(number)
        expected = child.seconds(number)
        assert all(np.array_equal(recording.seconds[name], expected[name]) for name in expected.columns)
        assert np.array_equal(recording.seconds.latency("event-time").bucket, expected.latency("event-time").bucket)
    assert all(read_partial(path).trial.number <= len(numbers) + 1 for path in run.partials())
    concluded = [int(line.split()[1]) for line in said if line.startswith("concluded ")]
    ending = run.conclusion()
    if concluded:
        assert ending is not None
        assert ending.spent_ns >= concluded[-1]
    with run.lock():  # the lock died with its holder
        pass


def test_kill_at_random_moments_loses_nothing(tmp_path: Path) -> None:
    rng = random.Random(20261115)
    begun: list[str] = []
    for kill in range(KILLS):
        said = kill_at_random(tmp_path, f"{kill:04x}" if kill % 3 == 0 else None, rng)
        begun.append(said[0].removeprefix("run "))
        check_run(tmp_path, said)
    store = Store(tmp_path)
    assert {run.id for run in store.runs()} == set(begun)
    assert "unreadable" not in {run.state for run in store.runs()}


def test_what_the_crash_left_can_be_looked_into_and_cleaned(tmp_path: Path) -> None:
    rng = random.Random(7)
    left: list[Path] = []
    for kill in range(20):
        said = kill_at_random(tmp_path, None if kill else "00", rng)
        run = Store(tmp_path).find(said[0].removeprefix("run "))
        left = run.partials()
        if left:
            break
    assert left, "twenty kills never hit the middle of a trial"
    for path in left:
        growing = read_partial(path)
        whole = child.seconds(growing.trial.number)
        assert np.array_equal(growing.seconds["published"], whole.between(0, len(growing.seconds))["published"])
    before = len(run.trials())
    assert run.discard_leftovers() > 0
    assert (run.partials(), len(run.trials())) == ([], before)


def test_a_kill_before_every_single_step_loses_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, str(CHILD.with_name("store_steps.py")), str(tmp_path / "runs")]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    said: dict[int, list[str]] = {}
    for line in done.stdout.splitlines():
        step, _, text = line.partition(" ")
        said.setdefault(int(step), []).append(text)
    assert max(said) > 30, "the steps of the file system were not noticed"
    assert said[max(said)][-1] == "concluded 2"
    for lines in said.values():
        check_run(tmp_path / "runs", lines)
    listed = Store(tmp_path / "runs").runs()
    assert [run.reason for run in listed if run.state == "unreadable"] == []
    assert {lines[0].removeprefix("run ") for lines in said.values()} <= {run.id for run in listed}
