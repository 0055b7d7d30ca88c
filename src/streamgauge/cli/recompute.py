"""``show --recompute``: every trial counted and judged again from its raw journals, and held against what is stored."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamgauge.cli.trouble import Trouble

if TYPE_CHECKING:
    from streamgauge.analyze.rejudge import Rejudged
    from streamgauge.cli.talk import Talk
    from streamgauge.model.seconds import Seconds
    from streamgauge.store import Run, StoredTrial


def chosen_trials(run: "Run", number: int | None) -> "list[StoredTrial]":
    """All finished trials of a run, or the one that was asked for."""
    trials = run.trials()
    found = [trial for trial in trials if number in (None, trial.trial.number)]
    if number is not None and not found:
        raise Trouble(f"run {run.id} has no finished trial {number}; it has {len(trials)}")
    _refuse_older(run, found)
    return found


def _refuse_older(run: "Run", trials: "Sequence[StoredTrial]") -> None:
    """The rules of today need what older formats did not record: judged by them, an old trial would get a verdict that
    its recording does not support."""
    from streamgauge.store.formats import lacks

    for stored in trials:
        if missing := lacks(stored.format):
            raise Trouble(
                f"Trial {stored.trial.number} of run {run.id} was recorded in format {stored.format}, which does not "
                f"have what today's rules need: {missing}. `streamgauge show {run.id}` shows it as it was judged."
            )


def recomputed(run: "Run", trials: "Sequence[StoredTrial]", talk: "Talk") -> "Iterator[Rejudged]":
    """Judge these trials again, one after the other. Spark is started only if one of them has journals."""
    from streamgauge.analyze.rejudge import rejudge

    for stored, again in _seconds(trials, talk):
        judged = stored.measurement, stored.verdict
        recording = run.recording(stored.trial.number)
        yield rejudge(recording, judged, run.experiment.objectives, again)


def _seconds(trials: "Sequence[StoredTrial]", talk: "Talk") -> "Iterator[tuple[StoredTrial, Seconds | None]]":
    from streamgauge.analyze.journals import journals_of

    journals = {stored.trial.number: journals_of(stored) for stored in trials}
    if not any(journals.values()):
        yield from ((stored, None) for stored in trials)
        return

    from streamgauge.cli.spark import ready_for_spark
    from streamgauge.store.trials import check_files

    for stored in trials:
        if journals[stored.trial.number] is not None:
            check_files(stored)
    ready_for_spark()

    from streamgauge.analyze.recompute import recompute
    from streamgauge.analyze.session import NoSession, session

    talk.say("Starting Spark to count the journals again ...")
    try:
        with session(_cores()) as spark:
            for stored in trials:
                found = journals[stored.trial.number]
                yield stored, None if found is None else recompute(spark, found)
    except NoSession as error:
        raise Trouble(f"{error}. `streamgauge doctor` checks what it needs.") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def line(rejudged: "Rejudged", real: bool) -> str:
    """One trial in words."""
    source = "its raw journals" if rejudged.source == "journals" else "its stored seconds"
    why = "" if rejudged.source == "journals" else f" ({'its load never began' if real else 'it ran in virtual time'})"
    said = "the same seconds, measurement and verdict" if rejudged.source == "journals" else "the same verdict"
    said = said if rejudged.same else f"{len(rejudged.differences)} differences"
    return f"trial {rejudged.number}: {rejudged.verdict.kind.value}, from {source}{why}: {said}"


def part_of_document(rejudged: "Rejudged") -> dict[str, Any]:
    """One trial for machines."""
    return {
        "number": rejudged.number,
        "from": rejudged.source,
        "verdict": rejudged.verdict.kind.value,
        "same": rejudged.same,
        "differences": list(rejudged.differences),
    }
