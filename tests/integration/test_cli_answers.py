"""What a user is told about a simulated system whose truth is known."""

import json
from pathlib import Path

import pytest
from cli_session import MEASURE, CommandResult, streamgauge, write

from streamgauge.model.units import format_rate

DEMAND = """\
name: retrograde
workload: windowed-aggregation
engine: {name: simulated, capacity: 300k/s, contention: 10%, coherence: 1%}
find: demand
load: {values: [1M/s]}
instances: {between: [1, 32]}
"""
CAPACITY = """\
name: scaling
workload: windowed-aggregation
engine: {name: simulated, capacity: 100k/s, contention: 2%}
find: capacity
instances: [1, 2, 3, 4, 5, 6, 7, 8]
load: {between: [10k/s, 5M/s]}
"""
RAMP = """\
name: ramp
workload: windowed-aggregation
engine: {name: simulated, capacity: 10k/s}
find: nothing
load: {profile: ramp, from: 100/s, to: 2k/s, over: 30s}
trial: {duration: 60s, warmup: 0s}
"""


def run(folder: Path, text: str, *changes: str) -> CommandResult:
    """The experiment as it is typed, with ``--json``."""
    overrides = [word for change in changes for word in ("--set", change)]
    return streamgauge("run", write(folder, text), "--out", folder / "runs", "--json", *overrides)


def test_a_noiseless_system_has_a_capacity_for_every_number_of_instances(tmp_path: Path) -> None:
    said = run(tmp_path, CAPACITY)
    assert said.code == 0, said.err
    assert len(said.document["findings"]) == 8
    for finding in said.document["findings"]:
        n = int(finding["line"].removeprefix("instances="))
        boundary = 100_000 * n / (1 + 0.02 * (n - 1)) / 0.99
        assert finding["holds"]["value"] <= boundary <= finding["fails"]["value"]


def test_a_search_that_is_repeated_gives_the_spread_between_starts_even_if_it_was_interrupted(tmp_path: Path) -> None:
    noisy = CAPACITY.replace("find: capacity", "find: sustainable-throughput").replace(
        "instances: [1, 2, 3, 4, 5, 6, 7, 8]\n", "search: {starts: 3}\n"
    )
    said = streamgauge("run", write(tmp_path, noisy), "--out", tmp_path / "runs", "--json", "--budget", "5m")
    (finding,) = said.document["findings"]
    assert 0 < len(finding["starts"]) < 3
    said = streamgauge("resume", "--out", tmp_path / "runs", "--json")
    assert said.code == 0, said.err
    (finding,) = said.document["findings"]
    assert [start["number"] for start in finding["starts"]] == [1, 2, 3]
    assert {trial["start"] for trial in said.document["trials"]} == {1, 2, 3}
    assert finding["spread"] == pytest.approx(0, abs=0.05)
    assert "the midpoints of 3 starts range from" in finding["sentence"]


def test_a_plain_measurement_that_is_undecided_is_extended_up_to_trial_limit(tmp_path: Path) -> None:
    """The load is at the boundary itself, so no noise ever tells on which side it is."""
    changes = ("engine.capacity=99k/s", "engine.noise=8%", "load.rate=100k/s", "trial.limit=150s")
    (trial,) = run(tmp_path, MEASURE, *changes).document["trials"]
    assert trial["verdict"] == "UNDECIDED"
    assert trial["measured"]["judged_seconds"] in range(150, 160)


def test_the_load_of_a_ramp_is_the_mean_of_what_was_planned_while_it_was_judged(tmp_path: Path) -> None:
    said = run(tmp_path, RAMP)
    (trial,) = said.document["trials"]
    assert trial["load"] == trial["measured"]["load"] == 1525.0
    assert trial["measured"]["published_rate"] == pytest.approx(1525.0, abs=1)
    assert said.document["findings"][0]["sentence"] == "measured at 1.525k/s, every objective was met"
    shown = streamgauge("show", "--out", tmp_path / "runs").out
    assert "1.525k/s" in shown
    assert "1.05k/s" not in shown


def test_a_profile_is_measured_at_the_mean_of_what_was_offered_after_an_automatic_warm_up(tmp_path: Path) -> None:
    """The system is slow for 15 s, so these seconds of the ramp are not judged: the planned mean is 1.525k/s."""
    text = RAMP.replace("capacity: 10k/s", "capacity: 1900/s, warmup: 15s").replace(", warmup: 0s", "")
    said = run(tmp_path, text)
    (trial,) = said.document["trials"]
    assert trial["measured"]["warmup_seconds"] > 0
    assert trial["load"] == trial["measured"]["load"] > 1_540
    assert trial["load"] == pytest.approx(trial["measured"]["published_rate"], abs=1)
    (finding,) = said.document["findings"]
    assert finding["sentence"].startswith(f"measured at {format_rate(trial['load'])}, ")
    assert finding["sentence"] in json.dumps(streamgauge("show", "--out", tmp_path / "runs", "--json").document)


def test_shares_of_the_load_of_a_profile_are_shares_of_what_was_offered(tmp_path: Path) -> None:
    """A ramp up to 2k/s on a system that carries 1.96k/s: in the last minute the queue grows by 2 % of the load."""
    changes = ("engine.capacity=1960/s", "trial.warmup=30s", 'objective=["lag-trend <= 3%", "queue <= 500%"]')
    (trial,) = run(tmp_path, RAMP, *changes).document["trials"]
    assert trial["load"] == 2000.0
    assert trial["verdict"] == "SUSTAINED"
    assert "2.00 % of the load" in trial["reasons"][0]
    assert trial["checks"][1]["threshold"] == 10_000.0


@pytest.mark.parametrize("strategy", ["adaptive", "binary", "full", "linear", "from-above"])
def test_the_demand_of_a_system_that_more_instances_make_slower_is_found(tmp_path: Path, strategy: str) -> None:
    """By the law 6 to 15 instances hold 1M/s, and 16 to 32 do not."""
    said = run(tmp_path, DEMAND, f"search.strategy={strategy}")
    assert said.code == 0
    (finding,) = said.document["findings"]
    assert finding["sentence"] == "load 1M/s needs 6 instances (5 fail)"
    tried = {trial["value"] for trial in said.document["trials"]}
    slower = any("more instances make this system slower" in note for note in finding["notes"])
    assert slower == (max(tried) > 15)


@pytest.mark.parametrize("engine", ["spark", "reference"])
def test_plan_refuses_more_cores_than_there_are_as_run_does(tmp_path: Path, engine: str) -> None:
    text = MEASURE.replace("{name: simulated, capacity: 100k/s, noise: 2%}", f"{{name: {engine}, cores: 1024}}")
    planned, ran = (streamgauge(command, write(tmp_path, text), "--json") for command in ("plan", "run"))
    assert (planned.code, ran.code) == (2, 2)
    assert planned.document["error"] == ran.document["error"]
    assert "needs 1024 cores" in planned.document["error"]


def test_plan_promises_no_number_of_trials_that_noise_exceeds(tmp_path: Path) -> None:
    """A load at the very boundary with much noise takes many more trials than a clear one."""
    text = DEMAND.replace("find: demand", "find: sustainable-throughput").replace("instances: {between: [1, 32]}\n", "")
    text = text.replace("values: [1M/s]", "between: [10k/s, 5M/s]").replace("coherence: 1%", "noise: 30%")
    said = streamgauge("plan", write(tmp_path, text))
    assert said.code == 0
    assert "at most" not in said.out
    assert "INVALID and UNDECIDED trials add to this" in " ".join(said.out.split())
    planned, ran = streamgauge("plan", write(tmp_path, text), "--json").document, run(tmp_path, text).document
    trials, seconds = len(ran["trials"]), sum(trial["seconds"] for trial in ran["trials"])
    assert planned["trials"]["usual_most"] < trials <= planned["trials"]["most"]
    assert seconds <= planned["seconds"]["trials_most"]


def test_a_plan_counts_every_second_that_a_trial_has_begun(tmp_path: Path) -> None:
    """Trials last whole seconds, so that a warm-up and a limit of 0.2 s more each make a trial two seconds longer."""
    text = MEASURE.replace("capacity: 100k/s, noise: 2%", "capacity: 100k/s, pause_every: 30s, pause: 20s")
    text = text.replace("duration: 30s, warmup: 5s", "duration: 30.2s, limit: 30.2s, warmup: 9.2s, stall: 30.2s")
    planned, ran = streamgauge("plan", write(tmp_path, text), "--json").document, run(tmp_path, text).document
    assert planned["seconds"]["trials_most"] == 10 + 31 + 31
    assert sum(trial["seconds"] for trial in ran["trials"]) <= planned["seconds"]["trials_most"]


def test_a_budget_in_a_plan_bounds_the_time_of_the_trials(tmp_path: Path) -> None:
    changes = ("engine.capacity=99k/s", "engine.noise=8%", "load.rate=100k/s")
    overrides = [word for change in changes for word in ("--set", change)]
    file = write(tmp_path, MEASURE)
    planned = streamgauge("plan", file, "--budget", "40s", "--json", *overrides).document
    ran = streamgauge("run", file, "--budget", "40s", "--out", tmp_path / "runs", "--json", *overrides).document
    assert 40 < sum(trial["seconds"] for trial in ran["trials"]) <= planned["seconds"]["trials_most"]
    shown = " ".join(streamgauge("plan", file, "--budget", "40s", *overrides).out.split())
    assert "The budget of 40 s ends the run with the bounds found so far, after at most 3 min 5 s of trials" in shown


def test_a_plan_of_spark_has_the_time_of_the_clock(tmp_path: Path) -> None:
    """Start, warm-up, the growing load, set-up and checks: the quickstart takes about five minutes, not two."""
    seconds = streamgauge("plan", "quickstart", "--json").document["seconds"]
    assert 240 <= seconds["likely"] <= 360
    assert seconds["trials_likely"] <= 0.7 * seconds["likely"]
    shown = " ".join(streamgauge("plan", "quickstart").out.split())
    assert "in total" in shown
    assert "to start and warm up the system under test, to set up each trial and to check its outputs" in shown
    never = write(tmp_path, MEASURE.replace("{name: simulated, capacity: 100k/s, noise: 2%}", "spark"))
    plain, fresh = (
        streamgauge("plan", never, "--json", "--set", f"engine={engine}").document["seconds"]["likely"]
        for engine in ("{name: spark, warm_limit: 0s}", "{name: spark}")
    )
    assert fresh >= plain + 40
