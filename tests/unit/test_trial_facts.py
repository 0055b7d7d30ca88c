"""An engine of another package may fail to report about itself: the reason is kept, and the trial with it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamgauge.engines.contract import Deployment
from streamgauge.model.facts import EngineFacts, Explanation, Phases, ProbeResult
from streamgauge.model.units import SECOND
from streamgauge.run.trial.facts import _probe, describe_engine, phases_of


def reporting(facts: Any, numbers: Any) -> Deployment:  # noqa: ANN401 (whatever a plug-in returns)
    return cast(Deployment, SimpleNamespace(describe=lambda: facts, probe=lambda since_ns, until_ns: numbers))


def gone(*_: int) -> Any:  # noqa: ANN401
    raise ConnectionError("its page does not answer")


def test_what_an_engine_reports_is_kept() -> None:
    facts = EngineFacts("mine", "1.0", settings={"heap": "1g"})
    numbers = ProbeResult((Explanation("core", 0.9, "its core was busy"),))
    system = reporting(facts, numbers)
    assert describe_engine(system) == facts
    assert _probe(system, 0, 1) == (numbers, "")


def test_an_engine_that_fails_to_report_leaves_its_reason() -> None:
    system = cast(Deployment, SimpleNamespace(describe=gone, probe=gone))
    assert describe_engine(system) == EngineFacts(describe_failed="ConnectionError: its page does not answer")
    assert _probe(system, 0, 1) == (ProbeResult(), "ConnectionError: its page does not answer")


@pytest.mark.parametrize("value", [None, {}, {"engine": "mine"}])
def test_a_report_of_another_type_is_a_failure_with_its_type(value: object) -> None:
    system, kind = reporting(value, value), type(value).__name__
    assert describe_engine(system) == EngineFacts(describe_failed=f"it returned {kind}, not EngineFacts")
    assert _probe(system, 0, 1) == (ProbeResult(), f"it returned {kind}, not ProbeResult")


def test_phases_are_the_times_between_the_moments_and_never_negative() -> None:
    moments = (0, 4 * SECOND, 40 * SECOND, 39 * SECOND, 41 * SECOND)
    assert phases_of(*moments) == Phases(starting=4.0, load=36.0, tail=0.0, checking=2.0)
