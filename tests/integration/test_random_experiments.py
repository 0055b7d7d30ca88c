"""A few hundred random experiments on the simulated engine; `make soak` runs thousands."""

from pathlib import Path

import pytest
from cli_session import streamgauge, write
from random_experiments import draw
from random_play import EXPECTED, play, summary

SEEDS = 200
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_experiment_crashes_or_contradicts_its_truth_or_its_plan(part: int) -> None:
    """Exit codes are those of the reference, noiseless answers are right, and no bound of a plan is broken."""
    played = [play(seed, budget="2m") for seed in range(part, SEEDS, PARTS)]
    print(summary(played))
    assert not [p.report for p in played if p.report]
    assert sum(p.code == 2 for p in played) < 0.25 * len(played), "most of them must run"
    assert sum(p.trials for p in played) > 2 * len(played)


def test_the_random_experiments_are_of_every_kind() -> None:
    text = "\n".join(draw(seed).text for seed in range(SEEDS))
    for kind in EXPECTED:
        assert kind in text, kind


def test_a_batch_interval_that_rounding_stopped_comes_to_its_end(tmp_path: Path) -> None:
    """A multiple of this interval in seconds was rounded down to the trigger that had just fired, for ever."""
    engine = "{name: simulated, capacity: 180M/s, batch_interval: 3604990ns}"
    text = f"name: rounding\nworkload: ingest\nengine: {engine}\nfind: nothing\nload: {{rate: 1k/s}}\n"
    assert streamgauge("run", write(tmp_path, text), "--out", tmp_path / "runs").code == 0
