"""The result states its circumstances: how the bounds came about, for those who did not see the run."""

import io
from dataclasses import replace
from typing import Any

import pytest
from report_samples import ASKED, EXPLAINED, FINDING, REPORT, judged
from rich.console import Console

from streamgauge.model.facts import EngineFacts, MicroBatches, TrialFacts, WarmUp
from streamgauge.model.finding import Bound, Start
from streamgauge.model.measurement import VerdictKind
from streamgauge.report.render.html.page import render_page
from streamgauge.report.render.json import run_document
from streamgauge.report.render.terminal import render_run
from streamgauge.report.view.circumstances import circumstances
from streamgauge.report.view.findings import view_run
from streamgauge.report.view.page import view_page
from streamgauge.report.view.run_report import JudgedTrial, RunReport
from streamgauge.store.facts import facts_from_json

WARM = replace(EXPLAINED, warm_up=WarmUp(started=14.0, seconds=45, load=2e5, steady=True))
BATCHES = replace(WARM, micro_batches=MicroBatches(15, 1620.0, 1900.0, 2000.0))


def held(number: int = 2, facts: TrialFacts = BATCHES) -> JudgedTrial:
    return judged(number, 1e5, VerdictKind.SUSTAINED, "confirm", facts=facts)


def failed(number: int, kind: VerdictKind = VerdictKind.OVERLOADED, **measured: Any) -> JudgedTrial:  # noqa: ANN401 (fields of a measurement)
    found = judged(number, 1.04e5, kind, "confirm", facts=WARM)
    return replace(found, measurement=replace(found.measurement, **measured))


TWICE = replace(FINDING, fails=Bound(1.04e5, (3, 5)))
TRIALS = (held(), failed(3, foreign_share=0.013, steal_share=0.009), failed(5, judged_seconds=33))
RUN = replace(REPORT, findings=(TWICE,), trials=TRIALS)


def said(report: RunReport = RUN) -> str:
    return " | ".join(circumstances(report.findings[0], report.trials, report.asked).sentences)


def test_case_19_the_result_states_how_often_each_end_was_measured() -> None:
    assert "the passing load was measured once, the failing load twice" in said()
    contradicted = replace(RUN, trials=(*TRIALS, failed(6, VerdictKind.SUSTAINED)))
    assert "the failing load 3 times (2 of them failed)" in said(contradicted)


def test_case_19_the_result_states_how_much_growth_was_allowed_and_over_how_many_seconds() -> None:
    assert "the lag may grow by 1 % of the load, judged over 30 s at the passing load and 33 s at the failing" in said()


def test_the_result_counts_invalid_and_undecided_trials() -> None:
    assert "no trial was INVALID or UNDECIDED" in said()
    noisy = (failed(6, VerdictKind.INVALID), failed(7, VerdictKind.UNDECIDED), failed(8, VerdictKind.UNDECIDED))
    assert "of 6 trials 1 was INVALID and 2 were UNDECIDED" in said(replace(RUN, trials=(*TRIALS, *noisy)))


def test_case_19_the_result_states_what_others_took_of_the_cores() -> None:
    assert "used up to 1.3 % of the CPU of the system under test at the two bounds (steal time up to 0.9 %)" in said()


def test_case_19_the_result_states_how_long_micro_batches_were_against_the_trigger_at_the_passing_end() -> None:
    assert "micro-batches took 1.62 s at the passing load, 81 % of the trigger" in said()
    untriggered = held(facts=replace(WARM, micro_batches=MicroBatches(mean_ms=300.0)))
    assert "trigger" not in said(replace(RUN, trials=(untriggered, *TRIALS[1:])))


@pytest.mark.parametrize(
    ("first", "last", "sentence"),
    [
        (1.00e6, 1.25e6, "fell by 20 % from the first to the last confirmation, so the system was not warm yet in the"),
        (1.00e6, 1.00e6, "fell by 0 % from the first to the last confirmation, so the warm-up was long enough"),
        (1.00e6, 0.80e6, "rose by 25 % from the first to the last confirmation, so the warm-up was long enough"),
    ],
)
def test_case_19_after_a_growing_load_the_trials_show_whether_the_system_was_warm(
    first: float, last: float, sentence: str
) -> None:
    grown = replace(WARM, warm_up=WarmUp(seconds=40, estimated_limit=1e6))
    rates = [first, *[last] * (len(TRIALS) - 1)]
    trials = tuple(
        replace(
            t,
            trial=replace(t.trial, ask=replace(t.trial.ask, purpose="confirm")),
            facts=grown,
            measurement=replace(t.measurement, carries=rate),
        )
        for t, rate in zip(TRIALS, rates, strict=True)
    )
    assert sentence in said(replace(RUN, trials=trials))


def test_case_19_the_result_states_whether_the_warm_up_became_steady() -> None:
    assert "the warm-up of the system became steady after 45 s" in said()
    cold = held(facts=replace(BATCHES, warm_up=WarmUp(seconds=60, steady=False)))
    assert "the warm-up of the system did not become steady in 1 min" in said(replace(RUN, trials=(cold, *TRIALS[1:])))
    unsteady = tuple(replace(t, facts=TrialFacts(), measurement=replace(t.measurement, steady=False)) for t in TRIALS)
    asked = replace(ASKED, trial=replace(ASKED.trial, warmup=None))
    assert "every trial became steady after its warm-up, except 2, 3, 5" in said(
        replace(RUN, trials=unsteady, asked=asked)
    )


def test_without_repeated_starts_the_result_states_one_start() -> None:
    assert said().startswith("one start of the system under test")
    starts = (Start(1, 9.8e4, 1.02e5), Start(2, 1e5, 1.04e5), Start(3, 1.02e5, 1.06e5))
    thrice = replace(RUN, findings=(replace(TWICE, starts=starts),))
    assert said(thrice).startswith("3 starts: 98k/s to 102k/s, 100k/s to 104k/s and 102k/s to 106k/s")


def test_a_simulated_run_reports_no_cores_and_a_run_without_bounds_no_bounds() -> None:
    virtual = tuple(replace(t, facts=TrialFacts(EngineFacts(simulated=True))) for t in TRIALS)
    assert "cores" not in said(replace(RUN, trials=virtual))
    nothing = replace(RUN, findings=(replace(FINDING, holds=None, fails=None),))
    assert "measured once" not in said(nothing)
    assert circumstances(nothing.findings[0], (), None).sentences == ("one start of the system under test",)


@pytest.mark.parametrize("rubbish", [None, "x", 7, [1], {"mean_ms": "x", "trigger_ms": None}, {"seconds": "x"}])
def test_what_a_plug_in_returns_beside_that_is_omitted(rubbish: object) -> None:
    read = facts_from_json({"micro_batches": rubbish, "warmed": rubbish})
    facts = replace(EXPLAINED, micro_batches=read.micro_batches, warm_up=read.warm_up)
    assert "trigger" not in said(replace(RUN, trials=(held(facts=facts), *TRIALS[1:])))


@pytest.mark.parametrize("width", [40, 80])
def test_the_terminal_shows_them_within_its_width(width: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(render_run(view_run(RUN), trials=False))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "the failing load twice" in " ".join(line.strip() for line in lines)


def test_the_page_and_the_document_have_them_too() -> None:
    assert b"the failing load twice" in render_page(view_page(RUN, {}))
    found = run_document(RUN)["findings"][0]["circumstances"]
    assert found["measured"] == {"holds": {"trials": 1, "agree": 1}, "fails": {"trials": 2, "agree": 2}}
    assert (found["starts"], found["invalid"], found["undecided"]) == (1, 0, 0)
    assert found["batch_over_trigger"] == pytest.approx(0.81)
    assert found["growth"] == {"objective": "lag-trend <= 1%", "seconds": {"holds": 30, "fails": 33}}
    assert (found["foreign"], found["steal"], found["warmup_steady"]) == (0.013, 0.009, True)


SENT = tuple(replace(t, facts=replace(t.facts, send_interval_ns=5_000_000)) for t in TRIALS)
RESOLUTION = (
    "the generator sends every 5 ms, so event-time latencies include up to 5 ms of waiting to be sent, "
    "2.5 ms on average"
)


def test_case_17_the_resolution_is_printed_in_the_terminal_and_in_json() -> None:
    report = replace(RUN, trials=SENT)
    console = Console(file=io.StringIO(), width=300)
    console.print(render_run(view_run(report)))
    assert isinstance(console.file, io.StringIO)
    assert RESOLUTION in console.file.getvalue()
    found = run_document(report)["findings"][0]["circumstances"]
    assert found["resolution"] == RESOLUTION
    assert RESOLUTION in found["sentences"]


def test_case_17_the_line_on_the_resolution_names_the_queue_and_the_brokers_delay_over_kafka() -> None:
    late = replace(SENT[0], measurement=replace(SENT[0].measurement, append_delay_p99=8e6))
    engine = replace(late.facts.engine, queue="published − end offset of the last batch that was started")
    report = replace(RUN, trials=(replace(late, facts=replace(late.facts, engine=engine)), *SENT[1:]))
    assert "the broker had appended 99 % of the events of every trial within 8 ms" in said(report)
    assert said(report).endswith("; queue: published − end offset of the last batch that was started")


def test_case_17_a_simulated_run_has_no_resolution() -> None:
    assert circumstances(RUN.findings[0], RUN.trials, RUN.asked).resolution is None
