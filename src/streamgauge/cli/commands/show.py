"""``show --recompute``: recompute every trial from its raw logs, and compare it with the stored result."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import RUNS, Json, Out, RunArgument

if TYPE_CHECKING:
    from streamgauge.analyze.rejudge import Rejudged
    from streamgauge.cli.console import CliOutput
    from streamgauge.model.seconds import Seconds
    from streamgauge.store import Run, StoredTrial


def chosen_trials(run: "Run", number: int | None) -> "list[StoredTrial]":
    """All finished trials of a run, or the one with this number. Raises UserError if there is no such trial."""
    from streamgauge.cli.inputs import refuse_older

    trials = run.trials()
    found = [trial for trial in trials if number in (None, trial.trial.number)]
    if number is not None and not found:
        count = "1 finished trial" if len(trials) == 1 else f"{len(trials)} finished trials"
        raise UserError(f"Run {run.id} has no finished trial {number}. It has {count}.")
    refuse_older(run, found)
    return found


def recomputed(run: "Run", trials: "Sequence[StoredTrial]", output: "CliOutput") -> "Iterator[Rejudged]":
    """Judge these trials again, one after the other. Spark is started only if one of them has raw logs."""
    from streamgauge.analyze.rejudge import rejudge

    for stored, again in _seconds(trials, output):
        judged = stored.measurement, stored.verdict
        recording = run.recording(stored.trial.number)
        yield rejudge(recording, judged, run.experiment.objectives, again)


def _seconds(trials: "Sequence[StoredTrial]", output: "CliOutput") -> "Iterator[tuple[StoredTrial, Seconds | None]]":
    from streamgauge.analyze.journals import journals_of

    journals = {stored.trial.number: journals_of(stored) for stored in trials}
    if not any(journals.values()):
        yield from ((stored, None) for stored in trials)
        return

    from streamgauge.analyze import REQUIREMENTS
    from streamgauge.cli.environment import drop_foreign_spark
    from streamgauge.cli.requirements import require
    from streamgauge.store.trials import check_files

    for stored in trials:
        if journals[stored.trial.number] is not None:
            check_files(stored)
    require(REQUIREMENTS, output.note)
    drop_foreign_spark()

    from streamgauge.analyze.recompute import recompute
    from streamgauge.analyze.session import SessionFailed, session

    output.note("Starting Spark to recompute the trials from their raw logs ...")
    try:
        with session(_cores()) as spark:
            for stored in trials:
                found = journals[stored.trial.number]
                yield stored, None if found is None else recompute(spark, found)
    except SessionFailed as error:
        raise UserError(f"{error}. Check what Spark needs with: streamgauge doctor") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(rejudged: "Rejudged", real: bool) -> str:
    """The line of a recomputed trial: its verdict, what it was computed from, and how it compares."""
    raw, count = rejudged.source == "journals", len(rejudged.differences)
    why = "its load was never started" if real else "a simulated trial has no raw logs"
    source = "its raw logs" if raw else f"its stored per-second metrics ({why})"
    same = "same per-second metrics, measurement and verdict" if raw else "same verdict"
    compared = same if rejudged.same else f"{count} difference{'' if count == 1 else 's'}"
    return f"trial {rejudged.number}: {rejudged.verdict.kind.value}, from {source}: {compared}"


def to_json(rejudged: "Rejudged") -> dict[str, Any]:
    """A recomputed trial in the JSON document."""
    return {
        "number": rejudged.number,
        "from": rejudged.source,
        "verdict": rejudged.verdict.kind.value,
        "same": rejudged.same,
        "differences": list(rejudged.differences),
    }


Recompute = Annotated[
    bool,
    typer.Option(
        "--recompute",
        help="Recompute every trial from its raw logs with Spark, and compare it with the stored result.",
    ),
]
Trial = Annotated[
    int | None, typer.Option("--trial", metavar="N", min=1, help="Recompute only this trial; needs --recompute.")
]


def command(
    run: RunArgument = "@last",
    *,
    out: Out = RUNS,
    recompute: Recompute = False,
    trial: Trial = None,
    json: Json = False,
) -> None:
    """Show the result of a run and all its trials."""
    output = CliOutput(json)

    from streamgauge.cli.inputs import conclusion_of, find_run, run_report
    from streamgauge.report.render.json import run_document
    from streamgauge.report.render.terminal import render_run
    from streamgauge.report.view.findings import view_run

    found = find_run(out, run)
    if recompute:
        _again(found, trial, output)
    if trial is not None:
        raise UserError("--trial needs --recompute. Without --recompute, every trial is shown.")
    known = conclusion_of(found)
    report = run_report(found, known)
    output.print(render_run(view_run(report)))
    if found.report.exists():
        output.note(f"report: {found.report}")
    output.exit({**run_document(report), "run_exit_code": int(known.exit_code)})


def _again(run: "Run", trial: int | None, output: CliOutput) -> NoReturn:
    from rich.text import Text

    from streamgauge.report.render.json import document
    from streamgauge.run.result import ExitCode

    trials, parts = chosen_trials(run, trial), []
    real = {stored.trial.number: bool(stored.facts.placement) for stored in trials}
    for one in recomputed(run, trials, output):
        output.print(Text(describe(one, real[one.number])))
        for difference in one.differences:
            output.print(Text(f"  {difference}"))
        parts.append(to_json(one))
    code = ExitCode.OK if all(part["same"] for part in parts) else ExitCode.OBJECTIVE_MISSED
    output.exit(document(code, run=run.id, experiment=run.experiment.name, recomputed=parts), code)
