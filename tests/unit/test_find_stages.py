"""``find: stages``: every stage of a pipeline is measured once, and what each adds to the latency is shown."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from report_samples import REPORT, judged
from rich.console import Console

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Bound, Finding, TrialResult
from streamgauge.model.measurement import LatencySummary, Verdict, VerdictKind
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Kind
from streamgauge.model.trial import TrialRequest
from streamgauge.parse import read
from streamgauge.report.render.html.page import render_page
from streamgauge.report.render.json import run_document
from streamgauge.report.render.terminal import render_run
from streamgauge.report.view.findings import view_run
from streamgauge.report.view.page import view_page
from streamgauge.report.view.run_report import JudgedTrial, RunReport
from streamgauge.report.view.stages import cells, columns, note, stage_tables
from streamgauge.run.explore import trial_of
from streamgauge.search import build

TEXT = """
name: stages
workload: {name: traffic, locations: 100, lanes: 2}
engine: {name: simulated, capacity: 100k/s}
find: stages
"""
NAMES = ("ingest", "parse", "join", "tumbling window", "sliding window")
HOLDS = Verdict(VerdictKind.SUSTAINED, ("all is well",))
MEDIANS = (20.0, 50.0, 80.0, 700.0, 690.0)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return read(TEXT)


def test_every_stage_is_a_value_of_the_parameter_at_the_load_that_the_workload_implies(experiment: Experiment) -> None:
    assert (experiment.what, experiment.stages, experiment.searches) == ("stages", NAMES, False)
    assert (experiment.dimension.name, experiment.span.values) == ("stage", (0, 1, 2, 3, 4))
    assert experiment.profile == constant(400.0)


def test_every_stage_is_measured_once_in_their_order(experiment: Experiment) -> None:
    search, past = build(experiment, "simulated"), list[TrialResult]()
    while (request := search.next(past)) is not None:
        past.append(TrialResult(request, HOLDS, len(past) + 1))
    assert [(r.ask.dimension, r.ask.value, r.ask.purpose) for r in past] == [("stage", n, "measure") for n in range(5)]
    assert search.forecast().likely_trials == 5
    findings = search.findings(past)
    assert [finding.sentence for finding in findings] == [
        f"measured at stage {stage} ({name}), every objective was met" for stage, name in enumerate(NAMES)
    ]


def test_the_trial_of_a_stage_has_the_pipeline_up_to_it(experiment: Experiment) -> None:
    trial = trial_of(experiment, experiment.engines[0], TrialRequest("stage", 2.0, "measure"), 1)
    assert (trial.params["stage"], trial.load) == (2, 400.0)


def report_of(
    experiment: Experiment,
    medians: tuple[float, ...] = MEDIANS,
    kinds: tuple[Kind, ...] = ("event-time", "publication-time"),
    verdicts: Mapping[int, VerdictKind] | None = None,
) -> RunReport:
    trials, findings = list[JudgedTrial](), list[Finding]()
    for stage, median in enumerate(medians):
        verdict = (verdicts or {}).get(stage, VerdictKind.SUSTAINED)
        base = judged(stage + 1, 400.0, verdict, "measure")
        shares = {"p5": median / 2 * 1e6, "p50": median * 1e6, "p75": median * 1.5e6, "p95": median * 2e6}
        summary = LatencySummary(500, 50, median * 1e6, 1e6, 1e9, shares)
        trial = replace(base.trial, ask=TrialRequest("stage", float(stage), "measure"), workload="traffic")
        measured = replace(base.measurement, latencies=dict.fromkeys(kinds, summary))
        trials.append(replace(base, trial=trial, measurement=measured))
        passed = verdict is VerdictKind.SUSTAINED
        end = Bound(float(stage), (stage + 1,))
        findings.append(
            Finding(
                line=f"stage={stage}",
                engine="simulated",
                dimension="stage",
                unit="count",
                status="measured",
                holds=end if passed else None,
                fails=None if passed else end,
                sentence=f"stage measured at {stage}",
            )
        )
    return replace(REPORT, asked=experiment, findings=findings, trials=trials)


def test_a_stage_adds_the_difference_of_the_medians_next_to_the_figures_of_the_paper(experiment: Experiment) -> None:
    (table,) = stage_tables(report_of(experiment))
    assert table.kind == "publication-time"
    assert columns(table) == ("stage", "verdict", "p5", "p50", "p75", "p95", "adds", "van Dongen: Flink")
    assert [row[0] for row in cells(table)] == [f"{n} {name}" for n, name in enumerate(NAMES)]
    assert [row[-2:] for row in cells(table)] == [
        ("20ms", "292ms"),
        ("+30ms", "+172ms"),
        ("+30ms", "+835ms"),
        ("+620ms", "+558ms"),
        ("−10ms", "+488ms"),
    ]
    assert "mean time of publication" in note(table)


def test_without_publication_the_event_time_is_compared(experiment: Experiment) -> None:
    (table,) = stage_tables(report_of(experiment, kinds=("event-time",)))
    assert table.kind == "event-time"
    assert "due time of the newest event" in note(table)


def test_nothing_is_subtracted_if_a_trial_did_not_pass(experiment: Experiment) -> None:
    (table,) = stage_tables(report_of(experiment, verdicts={2: VerdictKind.OVERLOADED}))
    assert [row.added is None for row in table.rows] == [False, False, True, True, False]
    assert "unknown for join, tumbling window, because a trial did not pass" in note(table)
    assert table.rows[2].verdict == "OVERLOADED"


def test_a_run_that_ended_early_shows_the_stages_that_it_has(experiment: Experiment) -> None:
    (table,) = stage_tables(report_of(experiment, MEDIANS[:2]))
    assert [row.trial for row in table.rows] == [1, 2, None, None, None]
    assert cells(table)[3][1:-1] == ("–",) * 6


def test_other_runs_have_no_stages() -> None:
    assert stage_tables(REPORT) == ()
    assert "stages" not in run_document(REPORT)


def test_every_report_shows_the_stages(experiment: Experiment) -> None:
    report = report_of(experiment)
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(render_run(view_run(report)))
    page = render_page(view_page(report, {})).decode()
    for text in (capture.get(), page):
        assert "Latency of each stage" in text
        assert "+620ms" in text
        assert "+558ms" in text
    (found,) = run_document(report)["stages"]
    assert [row["added"] for row in found["rows"]] == pytest.approx([20e6, 30e6, 30e6, 620e6, -10e6])
