"""Lag at its floor: how often a growing level is found there, and what that proves."""

import math
from dataclasses import replace

import numpy as np
import pytest
from judge_samples import LAG, LOAD, Floats, recording, trial

from streamgauge.judge import decide, measure
from streamgauge.judge.trend_rules import MAX_FALSE_RETURNS, REFUTED_GROWTH
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.stats.renewal import first_return, next_return, returns_needed

GROWTH = 0.01 + REFUTED_GROWTH


def reflected(drift: float, noise: float, memory: float, length: int, seed: int) -> Floats:
    """Seconds of load that wait, at the end of each second: noise with a memory, and a floor at zero."""
    shock, level, walk = np.random.default_rng(seed).standard_normal(length), 0.0, 0.0
    found = np.empty(length)
    for i, each in enumerate(shock):
        level = memory * level + math.sqrt(1 - memory**2) * each if i else each
        walk = max(walk + drift + noise * level, 0.0)
        found[i] = walk
    return found


def judged(waiting: Floats, trigger: int = 0) -> Verdict:
    """The verdict on a trial in which so many seconds of load wait at each acknowledgement."""
    asked = replace(trial(duration=len(waiting), limit=len(waiting)), trigger=trigger * SECOND)
    happened = recording(np.asarray(waiting) * LOAD, of=asked)
    return decide(happened, measure(happened), [LAG])


def test_case_10_a_trial_that_was_at_its_floor_for_its_last_28_seconds_is_sustained_despite_a_disturbance() -> None:
    disturbed = np.concatenate([np.zeros(18), np.linspace(0, 6, 8), np.linspace(5, 0, 6), np.zeros(28)])
    noise = 0.02 * np.abs(np.random.default_rng(1).standard_normal(60))
    assert judged(disturbed + noise).kind is VerdictKind.SUSTAINED
    assert judged(2 + disturbed + noise, trigger=2).kind is VerdictKind.SUSTAINED


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_case_10_a_trigger_that_does_not_cause_the_lag_is_not_its_floor(noise: float) -> None:
    """The engine acknowledges 0.1 s after its events, and its trigger is 5 s: it grows by 2.1 s of load in a minute."""
    kinds = [judged(0.1 + reflected(GROWTH, noise, 0.5, 60, seed), trigger=5).kind for seed in range(300)]
    assert kinds.count(VerdictKind.SUSTAINED) <= MAX_FALSE_RETURNS * len(kinds)


@pytest.mark.parametrize("trigger", [1, 2, 5])
def test_case_10_one_early_acknowledgement_does_not_move_the_floor(trigger: int) -> None:
    """After a micro-batch that took long, the next one begins and ends early, so fewer events wait."""
    disturbed = np.concatenate([np.zeros(18), np.linspace(0, 6, 8), np.linspace(5, 0, 6), np.zeros(28)])
    lag = trigger + disturbed + 0.02 * np.abs(np.random.default_rng(1).standard_normal(60))
    lag[32] = 0.5 * trigger
    assert judged(lag, trigger=trigger).kind is VerdictKind.SUSTAINED


def test_a_level_that_returns_to_more_than_its_trigger_leaves_is_not_at_its_floor() -> None:
    swings = 4 + 2 * np.sin(np.arange(60) / 4) + np.linspace(0, 0.5, 60)
    assert judged(swings).kind is VerdictKind.UNDECIDED


def test_a_trial_that_left_its_floor_at_the_end_is_not_sustained() -> None:
    assert judged(np.concatenate([np.zeros(48), np.linspace(0, 6, 12)])).kind is not VerdictKind.SUSTAINED


def test_the_closed_forms_agree_with_a_simulated_walk() -> None:
    drift, noise, length = 0.035, 0.0866, 30
    found = np.array([reflected(drift, noise, 0.0, length, seed) for seed in range(4000)])[:, length // 2 :]
    came = (found <= 0.0).sum(axis=1)
    z = drift * math.sqrt(length / 2) / noise
    assert np.mean(came > 0) == pytest.approx(first_return(z), abs=0.012)
    assert np.mean(came > 1) <= first_return(z) * next_return(drift, noise) + 0.01


def test_a_walk_without_drift_always_returns_and_one_with_a_clear_drift_never_does() -> None:
    assert first_return(0.0) == pytest.approx(1.0)
    assert first_return(8.0) == pytest.approx(0.0, abs=1e-12)
    assert next_return(1e-6, 1.0) > 0.95
    assert next_return(1.0, 0.1) < 1e-6


def test_the_noisier_or_shorter_a_trial_the_more_returns_are_needed() -> None:
    def needed(noise: float, time: float, share: float = 0.01) -> int:
        return returns_needed(GROWTH, noise, time=time, step=1.0, slack=0.0, share=share)

    by_noise = [needed(noise, 30.0) for noise in (0.01, 0.1, 0.2)]
    assert by_noise == sorted(by_noise)
    assert needed(0.1, 15.0) > needed(0.1, 30.0) > needed(0.1, 60.0) >= 1
    assert needed(0.1, 15.0, 0.001) > needed(0.1, 15.0)


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_case_10_a_system_that_grows_by_two_and_a_half_percent_more_than_allowed_is_hardly_ever_sustained(
    noise: float,
) -> None:
    kinds = [judged(reflected(GROWTH, noise, 0.5, 40, seed)).kind for seed in range(300)]
    assert kinds.count(VerdictKind.SUSTAINED) <= 3 * MAX_FALSE_RETURNS * len(kinds) + 2


def test_a_system_five_percent_below_its_limit_is_nearly_always_sustained_within_a_trial() -> None:
    kinds = [judged(reflected(-0.042, 0.05, 0.5, 60, seed)).kind for seed in range(100)]
    assert kinds.count(VerdictKind.SUSTAINED) >= 90
    assert VerdictKind.OVERLOADED not in kinds
