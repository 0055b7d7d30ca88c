"""Bounds that are asked to be narrower than trials can tell apart: whole searches of the simulated quickstart."""

from pathlib import Path

import pytest

from streamgauge.engines.simulated import simulated
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.parse import read, shipped_text
from streamgauge.run.explore import setup_of, trial_of
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext
from streamgauge.search import build

TRUTH = 730_000 / 0.99


def searched(seed: int, precision: str, hint: float = 0.0) -> Finding:
    """What ``streamgauge run simulated --set search.precision=… --set seed=…`` finds."""
    experiment = read(shipped_text("simulated"), overrides=(f"search.precision={precision}", f"seed={seed}"))
    search, past = build(experiment, "simulated", hint), list[TrialResult]()
    while (request := search.next(past)) is not None:
        trial = trial_of(experiment, experiment.engines[0], request, len(past) + 1)
        rule = EarlyStopRule(trial, experiment.objectives)
        recording = execute(setup_of(trial, simulated, DiscardingRecorder(Path()), RunContext(), rule))
        past.append(TrialResult(request, decide(recording, measure(recording), experiment.objectives), trial.number))
    (finding,) = search.findings(past)
    return finding


@pytest.mark.parametrize("precision", ["0.1%", "1%"])
@pytest.mark.parametrize("seed", range(1, 11))
def test_case_5_the_simulated_quickstart_contains_the_true_limit_and_explains_why_its_bounds_are_wider(
    seed: int, precision: str
) -> None:
    """Before, all of ten results missed the truth at 0.1 %, five of them without a remark, and one at 1 %."""
    finding = searched(seed, precision)
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH <= finding.fails.value
    assert finding.status == "wide"
    assert any("Increase trial.duration" in note or "Increase trial.limit" in note for note in finding.notes)


@pytest.mark.parametrize(("seed", "hint"), [(3, 0.97), (4, 1.01), (66, 1.024), (110, 1.125)])
def test_case_5_a_search_with_a_hint_contains_the_true_limit_and_measures_both_ends_twice(
    seed: int, hint: float
) -> None:
    """Before, the last two passed at 0.2 to 0.4 % above the limit, in one trial of each passing end."""
    finding = searched(seed, "0.1%", hint * TRUTH)
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH <= finding.fails.value
    assert finding.holds.value * 1.015 < finding.fails.value
    assert min(len(finding.holds.trials), len(finding.fails.trials)) >= 2
    assert finding.status == "wide"
    assert any("Increase trial.duration" in note or "Increase trial.limit" in note for note in finding.notes)
