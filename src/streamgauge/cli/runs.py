"""Find the results folder and the runs that the user named, and read their results."""

from pathlib import Path

from streamgauge.cli.trouble import Trouble
from streamgauge.report.story import Judged, Story
from streamgauge.run.answer import Explored, answer, spent
from streamgauge.run.exits import ExitCode
from streamgauge.store import Run, Store


def open_store(out: Path, must_exist: bool = False) -> Store:
    """The store at ``--out``. Raises Trouble if it is not a folder, or does not exist although it must."""
    try:
        exists, folder = out.exists(), out.is_dir()
    except (OSError, ValueError) as error:
        raise Trouble(f"--out: {error}. Use a folder.") from None
    if exists and not folder:
        raise Trouble(f"--out: {out} is not a folder. Use a folder.")
    if must_exist and not exists:
        raise Trouble(f"There are no runs in {out}: the folder does not exist. Check --out.")
    return Store(out)


def find_run(out: Path, reference: str) -> Run:
    """The run with this id, unique prefix or experiment name, or @last or @last~1."""
    return open_store(out, must_exist=True).find(reference)


def judged(run: Run) -> list[Judged]:
    """The finished trials of a run, as the report needs them."""
    return [Judged(t.trial, t.measurement, t.verdict, t.extent.count, t.outcome, t.facts) for t in run.trials()]


def story_of(run: Run, explored: Explored, code: int = 0) -> Story:
    """A run as the report needs it: the content of its folder, and its results."""
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
    """The results of a run: the stored ones, or those of its trials if it has no ending or has more trials since."""
    ending = run.ending()
    if ending is not None and ending.spent_ns == spent(run):
        return Explored(ending.findings, ending.ended, ExitCode(ending.exit_code), ending.spent_ns)
    return answer(run.experiment, run, "it is unfinished")


def budget_of(run: Run) -> str | None:
    """The budget of a killed run. A run that ended by its budget has none when it is resumed."""
    if run.ending() is not None:
        return None
    words = [*run.command]
    for at, word in enumerate(words):
        if word.startswith("--budget="):
            return word.removeprefix("--budget=")
        if word == "--budget" and at + 1 < len(words):
            return words[at + 1]
    return None
