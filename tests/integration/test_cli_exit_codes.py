"""Every exit code, each from the command line as a user gets it."""

import os
from pathlib import Path

import pytest
from cli_session import EXPERIMENT, MEASURE, CommandResult, start, streamgauge, write

ENTRY = "[streamgauge.engines]\nodd = odd_engine:odd\n"
ODD_ENGINE = """
from dataclasses import replace
from streamgauge.engines.simulated import simulated

class Disturbed:
    def __init__(self, real):
        self.real = real
    def seconds(self):
        return self.real.seconds()
    def outcome(self, stop):
        return replace(self.real.outcome(stop), disturbances=("the driver waited 40% of the time for a CPU",))

class Odd:
    name, summary, jobs = "odd", "disturbed, or broken", simulated.jobs
    options = simulated.options
    check, describe, layout, traits = simulated.check, simulated.describe, simulated.layout, simulated.traits
    requirements = simulated.requirements
    def simulate(self, trial, work):
        if trial.options["batch_cost"]:
            raise ZeroDivisionError("a bug")
        return Disturbed(simulated.simulate(trial, work))

odd = Odd()
"""


def run(folder: Path, text: str, *more: str) -> CommandResult:
    return streamgauge("run", write(folder, text), "--out", folder / "runs", "--json", *more)


def run_odd(folder: Path, text: str) -> CommandResult:
    """With an engine that another package brings, as a plug-in does."""
    (folder / "odd_engine.py").write_text(ODD_ENGINE, encoding="utf-8")
    (folder / "odd_engine-1.0.dist-info").mkdir()
    (folder / "odd_engine-1.0.dist-info" / "entry_points.txt").write_text(ENTRY, encoding="utf-8")
    (folder / "odd_engine-1.0.dist-info" / "METADATA").write_text("Name: odd-engine\nVersion: 1.0\n", encoding="utf-8")
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths}
    process = start("run", write(folder, text), "--out", folder / "runs", "--json", env=env)
    out, err = process.communicate(timeout=60)
    return CommandResult(process.returncode, out, err)


def test_0_when_the_question_is_answered(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT)
    assert said.code == 0, said.err
    finding = said.document["findings"][0]
    assert finding["status"] == "bracketed"
    assert finding["holds"]["value"] < 100_000 / 0.99 < finding["fails"]["value"]


def test_0_when_a_measured_load_holds(tmp_path: Path) -> None:
    assert run(tmp_path, MEASURE).code == 0


def test_1_when_a_measured_load_misses_the_objective(tmp_path: Path) -> None:
    said = run(tmp_path, MEASURE, "--set", "load.rate=150k/s")
    assert said.code == 1, said.err
    assert said.document["trials"][0]["verdict"] == "OVERLOADED"


def test_1_when_not_even_the_easiest_value_holds(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT, "--set", "load.between=[200k/s, 1M/s]")
    assert said.code == 1, said.err
    assert said.document["findings"][0]["status"] == "none-holds"


def test_2_when_the_experiment_is_wrong(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT.replace("find:", "fnd:"))
    assert said.code == 2
    assert 4 in [problem["line"] for problem in said.document["problems"]]


def test_3_when_the_driver_spoils_every_trial(tmp_path: Path) -> None:
    said = run_odd(tmp_path, EXPERIMENT.replace("name: simulated", "name: odd"))
    assert said.code == 3, said.err
    document = said.document
    assert document["findings"][0]["status"] == "invalid"
    assert [t["verdict"] for t in document["trials"]] == ["INVALID"] * 6, "three trials at each of two loads"
    assert len({t["seed"] for t in document["trials"]}) == 6
    assert [t["value"] for t in document["trials"]] == sorted([t["value"] for t in document["trials"]], reverse=True)
    assert len({t["value"] for t in document["trials"]}) == 2


def test_4_when_the_output_is_wrong(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT, "--set", "engine.alter=5%")
    assert said.code == 4, said.err
    assert said.document["findings"][0]["status"] == "failed"
    verdicts = [t["verdict"] for t in said.document["trials"]]
    assert verdicts.index("FAILED") == len(verdicts) - 1, "the run goes on although its output is wrong"


def test_4_when_the_lowest_load_crashes_too(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT, "--set", "engine.crash_at=5k/s")
    assert said.code == 4, said.err


def test_4_when_a_plain_measurement_crashes(tmp_path: Path) -> None:
    said = run(tmp_path, MEASURE, "--set", "engine.crash_at=5k/s")
    assert said.code == 4, said.err
    sentence = said.document["findings"][0]["sentence"]
    assert sentence.startswith("measured at 50k/s, the system under test failed: the system under test crashed")


def test_a_crash_at_a_high_load_is_only_a_failing_bound(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT, "--set", "engine.crash_at=60k/s")
    assert said.code == 0, said.err
    assert said.document["findings"][0]["holds"]["value"] < 60_000 <= said.document["findings"][0]["fails"]["value"]


def test_5_when_nothing_is_published(tmp_path: Path) -> None:
    said = run(tmp_path, MEASURE, "--set", "load.rate=1/h")
    assert said.code == 5, said.err


def test_70_when_something_is_broken_with_a_file_to_send(tmp_path: Path) -> None:
    said = run_odd(tmp_path, EXPERIMENT.replace("name: simulated", "name: odd, batch_cost: 1ms, batch_interval: 1s"))
    assert said.code == 70, said.err
    assert said.document["exit_code"] == 70
    assert "Traceback" not in said.err
    sent = list((tmp_path / "runs").glob("streamgauge-bug-*.txt"))
    assert len(sent) == 1
    assert "ZeroDivisionError" in sent[0].read_text(encoding="utf-8")
    assert str(sent[0]) in said.err


@pytest.mark.parametrize("arguments", [["--nope"], ["nope"], ["run"], ["run", "a", "b"], ["list", "--out"]])
def test_2_when_the_command_line_is_wrong(arguments: list[str]) -> None:
    said = streamgauge(*arguments)
    assert said.code == 2
    assert said.err.strip()
    assert "Traceback" not in said.err


def test_6_when_a_measurement_could_not_be_decided(tmp_path: Path) -> None:
    """At its capacity a noisy system neither clearly keeps up nor clearly falls behind."""
    noisy = ("--set", "engine.noise=20%", "--set", "load.rate=101k/s", "--set", "trial.limit=30s")
    said = run(tmp_path, MEASURE, *noisy)
    assert said.document["trials"][0]["verdict"] == "UNDECIDED"
    assert said.code == 6, said.err
    assert said.document["findings"][0]["status"] == "measured"


def test_6_when_the_budget_ends_a_search_before_it_has_both_bounds(tmp_path: Path) -> None:
    said = run(tmp_path, EXPERIMENT, "--budget", "31s")
    assert said.code == 6, said.err
    assert said.document["findings"][0]["status"] == "unfinished"
    assert streamgauge("list", "--out", tmp_path / "runs", "--json").document["runs"][0]["run_exit_code"] == 6
