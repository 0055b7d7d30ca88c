"""Finding the store and the runs that the user means, and what they say."""

from pathlib import Path

from streamgauge.cli.trouble import Trouble
from streamgauge.report.story import Judged, Story
from streamgauge.run.answer import Explored, answer, spent
from streamgauge.run.exits import ExitCode
from streamgauge.store import Run, Store


def open_store(out: Path, must_exist: bool = False) -> Store:
    """The store at ``--out``; a sentence where there is or can be none."""
    try:
        exists, folder = out.exists(), out.is_dir()
    except (OSError, ValueError) as error:
        raise Trouble(f"--out: {error}. Name a folder for runs.") from None
    if exists and not folder:
        raise Trouble(f"--out: {out} is not a folder. Name a folder for runs.")
    if must_exist and not exists:
        raise Trouble(f"There are no runs in {out}: the folder does not exist. Is --out right?")
    return Store(out)


def find_run(out: Path, reference: str) -> Run:
    """The run that a reference means: id, unique prefix, @last, @last~1."""
    return open_store(out, must_exist=True).find(reference)


def judged(run: Run) -> list[Judged]:
    """The finished trials of a run, as a report wants them."""
    return [Judged(t.trial, t.measurement, t.verdict, t.extent.count, t.outcome, t.facts) for t in run.trials()]


def story_of(run: Run, explored: Explored, code: int = 0) -> Story:
    """A run as a report is given it: its folder alone, and what it found."""
    return Story(
        run=run.id,
        experiment=run.experiment.name,
        findings=explored.findings,
        trials=judged(run),
        ended=explored.ended,
        exit_code=code,
        asked=run.experiment,
        text=run.text,
        environment=run.environment,
        created=run.created,
        command=run.command,
        version=run.streamgauge,
    )


def shown(run: Run) -> Explored:
    """What a run found: what it wrote down, or what its trials say if it went on or never ended."""
    ending = run.ending()
    if ending is not None and ending.spent_ns == spent(run):
        return Explored(ending.findings, ending.ended, ExitCode(ending.exit_code), ending.spent_ns)
    return answer(run.experiment, run, "it is unfinished")


def budget_of(run: Run) -> str | None:
    """The budget that a killed run was begun with. One that has ended by its budget is not held to it again."""
    if run.ending() is not None:
        return None
    words = [*run.command]
    for at, word in enumerate(words):
        if word.startswith("--budget="):
            return word.removeprefix("--budget=")
        if word == "--budget" and at + 1 < len(words):
            return words[at + 1]
    return None
