"""When a trend is decided: the rule of short trials, and the stricter one of full-length ones."""

import math
from dataclasses import replace

import pytest
from judge_samples import interval

from streamgauge.judge import trend_rules
from streamgauge.judge.trend_rules import TrendEvidence
from streamgauge.model.measurement import Interval

LOAD = 100_000.0
ALLOWED = 1000.0


def evidence_of(
    mean: float, error: float, seconds: float = 60.0, corridor: float = math.inf, level: float = math.inf
) -> TrendEvidence:
    """Lag that grows by ``mean`` where 1 % of 100k/s is allowed."""
    return TrendEvidence(interval(mean, error), ALLOWED, LOAD, seconds, corridor, level)


def test_a_short_trial_proves_nothing_before_its_first_seconds() -> None:
    steep = [
        trend_rules.classify_short(evidence_of(50_000, 10, s))
        for s in (5, trend_rules.BROKEN_SECONDS - 1, trend_rules.BROKEN_SECONDS)
    ]
    assert steep == ["unclear", "unclear", "broken"]
    falling = [
        trend_rules.classify_short(evidence_of(-50_000, 10, s))
        for s in (10, trend_rules.HOLDS_SECONDS - 1, trend_rules.HOLDS_SECONDS)
    ]
    assert falling == ["unclear", "unclear", "holds"]


def test_a_short_trial_does_not_believe_that_its_own_noise_is_smaller_than_assumed() -> None:
    # 2 % over the threshold: clear if the noise were as small as it looks, but ten seconds cannot know that
    assert trend_rules.classify_short(evidence_of(3000, 1, seconds=10)) == "unclear"
    assert trend_rules.classify_short(evidence_of(3000, 1, seconds=90)) == "broken"


def test_noise_that_is_larger_than_assumed_is_used() -> None:
    assert trend_rules.classify_short(evidence_of(6000, 100, seconds=60)) == "broken"
    assert trend_rules.classify_short(evidence_of(6000, 4000, seconds=60)) == "unclear"


def test_a_queue_that_stays_in_a_narrow_corridor_holds() -> None:
    narrow = 0.9 * trend_rules.flat_corridor(30) * LOAD
    assert trend_rules.classify_short(evidence_of(0, 1500, 30, corridor=narrow)) == "holds"
    assert trend_rules.classify_short(evidence_of(0, 1500, 30, corridor=1.2 * narrow)) == "unclear"


def test_a_narrow_corridor_proves_nothing_about_a_queue_that_grows() -> None:
    assert trend_rules.classify_short(evidence_of(1001, 1500, 30, corridor=0.0)) == "unclear"


def test_the_longer_a_trial_is_the_wider_a_corridor_may_be() -> None:
    widths = [trend_rules.flat_corridor(s) for s in range(10, 300)]
    assert widths == sorted(widths)


@pytest.mark.parametrize("rule", [trend_rules.classify_short, trend_rules.classify_full])
def test_without_a_trend_nothing_is_decided_unless_the_queue_grew_without_bound(rule: trend_rules.TrendRule) -> None:
    assert rule(TrendEvidence(None, ALLOWED, LOAD, 60.0, 0.0)) == "unclear"
    assert rule(TrendEvidence(None, ALLOWED, LOAD, 60.0, 0.0, runaway=True)) == "broken"


def test_lag_runs_away_when_it_grows_by_a_quarter_of_the_load_over_some_seconds() -> None:
    assert trend_rules.is_runaway(0.25, 10)
    assert not trend_rules.is_runaway(0.24, 100)
    assert not trend_rules.is_runaway(5.0, 9)


def test_a_full_length_trial_is_clear_once_the_interval_is_clear_of_the_threshold() -> None:
    assert [trend_rules.classify_full(evidence_of(mean, 100)) for mean in (0, 700, 900, 1100, 1300, 2000)] == [
        *("holds", "unclear", "unclear", "unclear", "unclear", "broken")
    ]


def test_a_full_length_trial_with_much_noise_proves_nothing() -> None:
    assert trend_rules.classify_full(evidence_of(-500, 2000)) == "unclear"
    assert trend_rules.classify_full(evidence_of(2500, 2000)) == "unclear"


def test_no_trial_sees_less_than_its_resolution() -> None:
    finest = trend_rules.RESOLUTION * LOAD
    assert trend_rules.classify_full(evidence_of(ALLOWED + 0.9 * finest, 1e-6)) == "unclear"
    assert trend_rules.classify_full(evidence_of(ALLOWED + 1.1 * finest, 1e-6)) == "broken"
    assert trend_rules.classify_full(evidence_of(ALLOWED - 0.9 * finest, 1e-6)) == "unclear"
    assert trend_rules.classify_full(evidence_of(ALLOWED - 1.1 * finest, 1e-6)) == "holds"


def test_few_degrees_of_freedom_need_more() -> None:
    few = Interval(1700, 700, 2700, 300, 6, 0.5, 2.0)
    many = Interval(1700, 700, 2700, 300, 60, 0.0, 59.0)
    assert trend_rules.classify_full(TrendEvidence(few, ALLOWED, LOAD, 60.0, math.inf)) == "unclear"
    assert trend_rules.classify_full(TrendEvidence(many, ALLOWED, LOAD, 60.0, math.inf)) == "broken"


def test_lag_whose_level_is_steady_holds_although_its_increments_are_noisy() -> None:
    assert trend_rules.classify_full(evidence_of(0, 2000)) == "unclear"
    assert (
        trend_rules.classify_full(evidence_of(0, 2000, level=trend_rules.level_error(spread=5000, span=100))) == "holds"
    )
    assert (
        trend_rules.classify_full(evidence_of(0, 2000, level=trend_rules.level_error(spread=50_000, span=100)))
        == "unclear"
    )
    assert trend_rules.classify_full(evidence_of(1600, 2000, level=0.0)) == "unclear"


def test_the_error_of_a_level_falls_with_the_length_of_the_trial() -> None:
    assert trend_rules.level_error(100, 60) == pytest.approx(2 * trend_rules.level_error(100, 120))
    assert trend_rules.level_error(100, 0) == math.inf


def test_a_short_trial_that_reached_its_full_length_may_prove_itself_like_a_full_one() -> None:
    slight = evidence_of(2000, 50, seconds=60)
    assert trend_rules.classify_short(slight) == "unclear"
    assert trend_rules.trend_rule_for(True, 60.0)(slight) == "broken"
    assert trend_rules.trend_rule_for(True, 90.0)(slight) == "unclear"


def test_a_full_length_trial_is_never_judged_by_the_rule_of_short_ones() -> None:
    flat = evidence_of(0, 1500, 60, corridor=0.0)
    assert trend_rules.classify_short(flat) == "holds"
    assert trend_rules.trend_rule_for(False, 60.0)(flat) == "unclear"


def test_a_level_that_clearly_returns_has_no_trend_however_noisy_its_increments_are() -> None:
    noisy = evidence_of(0, 5000)
    assert trend_rules.classify_full(noisy) == "unclear"
    assert trend_rules.classify_full(replace(noisy, reversion=trend_rules.CLEAR_REVERSION)) == "holds"
    growing = evidence_of(1500, 5000)
    assert trend_rules.classify_full(replace(growing, reversion=2 * trend_rules.CLEAR_REVERSION)) == "unclear", (
        "it ended higher than it began"
    )


def test_case_11_growth_that_ends_in_the_second_half_is_settling_and_no_overload() -> None:
    """Micro-batches of cost a + b·load settle at a finite lag over tens of seconds."""
    steep = evidence_of(5000, 100)
    assert trend_rules.classify_full(replace(steep, late=4000.0)) == "broken"
    assert trend_rules.classify_full(replace(steep, late=900.0)) == "unclear"
    assert trend_rules.classify_short(replace(steep, late=4000.0)) == "broken"
    assert trend_rules.classify_short(replace(steep, late=900.0)) == "unclear"


def test_case_16_a_trial_that_is_looked_at_more_often_needs_more_at_each_look() -> None:
    assert [trend_rules.max_checks(60, limit) for limit in (60, 65, 69, 120, 300)] == [1, 2, 2, 6, 13]
    shares = [trend_rules.confidence_of_each(count) for count in (1, 2, 6, 13)]
    assert shares == sorted(shares)
    assert shares[0] == trend_rules.FULL_CONFIDENCE
    slight = evidence_of(1000 + 2.2 * 500, 500)
    assert trend_rules.trend_rule_for(False, 60.0, 60.0)(slight) == "broken"
    assert trend_rules.trend_rule_for(False, 60.0, 300.0)(slight) == "unclear"


def settling(late: float, error: float = 100.0, reversion: float = 0.0, mean: float = 3000.0) -> TrendEvidence:
    """Lag that grew by ``mean`` over a whole trial with a long memory, and by ``late`` in its second half."""
    recent = Interval(late, late - 2 * error, late + 2 * error, error, 6, freedom=5.0)
    return replace(evidence_of(mean, 2000.0), late=late, recent=recent, reversion=reversion)


def test_growth_that_is_clear_in_the_second_half_only_is_an_overload() -> None:
    """Micro-batches of an overloaded Spark grow, and get more done the longer they are: the whole interval is wide."""
    assert trend_rules.classify_full(settling(late=2800.0)) == "broken"
    assert trend_rules.classify_full(settling(late=2800.0, error=900.0)) == "unclear"
    assert trend_rules.classify_full(settling(late=1300.0, error=10.0)) == "unclear", "less than a trial can see"


def test_growth_that_has_come_to_rest_holds_and_one_that_only_falls_does_not() -> None:
    assert trend_rules.classify_full(settling(late=-100.0, reversion=-4.5)) == "holds"
    assert trend_rules.classify_full(settling(late=-100.0, error=100.0)) == "holds", "clearly less than is allowed"
    assert trend_rules.classify_full(settling(late=-100.0, error=900.0, reversion=-2.0)) == "unclear"
    assert trend_rules.classify_full(settling(late=900.0, reversion=-4.5)) == "unclear"
