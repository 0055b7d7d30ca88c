"""Read the experiment and the budget that the user named on the command line."""

import difflib
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.cli.errors import UserError
from streamgauge.model.units import UnitError, parse_duration
from streamgauge.processes.clock import VirtualPace
from streamgauge.report.view.run_report import JudgedTrial, RunReport
from streamgauge.run.result import ExitCode, RunResult, result_of, trial_time_ns
from streamgauge.run.trial.setup import RunLimits
from streamgauge.store import Run, Store, StoredTrial
from streamgauge.store.documents import lacks

if TYPE_CHECKING:
    from streamgauge.model.experiment import Experiment


def load_experiment(named: str, overrides: Sequence[str] | None) -> "Experiment":
    """The experiment of a file or the built-in experiment of this name, checked, with ``--set`` applied."""
    return parse_experiment(*read_text(named), overrides)


def parse_experiment(text: str, source: str, overrides: Sequence[str] | None) -> "Experiment":
    """The experiment of this text. Raises UserError with all its problems."""
    from streamgauge.parse import ExperimentError, read

    try:
        return read(text, source=source, overrides=list(overrides or ()))
    except ExperimentError as error:
        raise as_user_error(error) from None


def as_user_error(error: Exception) -> UserError:
    """All problems of an experiment in one exception, as text and as data for ``--json``."""
    problems = [
        asdict(p) if is_dataclass(p) and not isinstance(p, type) else {"message": str(p)}
        for p in getattr(error, "problems", ())
    ]
    return UserError(str(error), problems=problems)


def read_text(named: str) -> tuple[str, str]:
    """The text of a file or of a built-in experiment, and its name in messages."""
    from streamgauge.parse.shipped import shipped_names, shipped_text

    path = Path(named)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name that no file can have: too long, or with a NUL in it
        exists = False
    if exists:
        return _read(path), named
    names = sorted(shipped_names())
    if named in names:
        return shipped_text(named), named
    raise UserError(f"There is no experiment file or built-in experiment {named[:200]!r}. {_hint(named, names)}")


def _hint(named: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(named[:200], names, 1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    built_in = f"`streamgauge experiments` describes the built-in ones: {', '.join(names)}."
    return f"{guess}{built_in} `streamgauge init` writes a first file."


def _read(path: Path) -> str:
    from streamgauge.parse.yaml_tree import MAX_BYTES, TOO_LARGE

    if path.is_dir():
        raise UserError(f"{path} is a folder, not an experiment file. Give the path of a file.")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Check its permissions.") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path} is {TOO_LARGE}.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a text file: byte {error.start} is not UTF-8. Check the path.") from None
    if "\0" in text:
        raise UserError(f"{path} is not a text file: it contains a NUL byte. Check the path.")
    return text


def read_limits(budget: str | None, pace: float) -> RunLimits:
    """The limits of a run from ``--budget`` and ``--pace``."""
    if budget is None:
        return RunLimits(None, VirtualPace(pace))
    try:
        allowed = parse_duration(budget)
    except UnitError as error:
        raise UserError(f"--budget: {error}.") from None
    if allowed <= 0:
        raise UserError(f"--budget: {budget!r} leaves no time for a trial. Use a longer time, for example 10m.")
    return RunLimits(allowed, VirtualPace(pace))


def open_store(out: Path, must_exist: bool = False) -> Store:
    """The store at ``--out``. Raises UserError if it is not a folder, or does not exist although it must."""
    try:
        exists, folder = out.exists(), out.is_dir()
    except (OSError, ValueError) as error:
        raise UserError(f"--out: {error}. Use a folder.") from None
    if exists and not folder:
        raise UserError(f"--out: {out} is not a folder. Use a folder.")
    if must_exist and not exists:
        raise UserError(f"There are no runs in {out}: the folder does not exist. Check --out.")
    return Store(out)


def find_run(out: Path, reference: str) -> Run:
    """The run with this id, unique prefix or experiment name, or @last or @last~1."""
    return open_store(out, must_exist=True).find(reference)


def refuse_older(run: Run, trials: Sequence[StoredTrial]) -> None:
    """Raise UserError for trials in an older format: they lack data that the current rules need for a verdict."""
    for stored in trials:
        if missing := lacks(stored.format):
            raise UserError(
                f"Trial {stored.trial.number} of run {run.id} was recorded in format {stored.format}, which lacks data "
                f"that the current rules need: {missing}. `streamgauge show {run.id}` shows its stored verdict."
            )


def judged(run: Run) -> list[JudgedTrial]:
    """The finished trials of a run, as the report needs them."""
    return [JudgedTrial(t.trial, t.measurement, t.verdict, t.extent.count, t.outcome, t.facts) for t in run.trials()]


def run_report(run: Run, explored: RunResult, code: int = 0) -> RunReport:
    """A run as the report needs it: the content of its folder, and its results."""
    trials = judged(run)
    return RunReport(
        run=run.id,
        experiment=run.experiment.name,
        findings=explored.findings,
        trials=trials,
        ended=explored.ended,
        exit_code=code,
        asked=run.experiment,
        options=_written_options(trials),
        text=run.text,
        environment=run.environment,
        created=run.created,
        command=run.command,
        version=run.streamgauge,
    )


def conclusion_of(run: Run) -> RunResult:
    """The results of a run: the stored ones, or those of its trials if it has no ending or has more trials since."""
    ending = run.conclusion()
    if ending is not None and ending.spent_ns == trial_time_ns(run):
        return RunResult(ending.findings, ending.ended, ExitCode(ending.exit_code), ending.spent_ns)
    return result_of(run.experiment, run, "it is unfinished")


def original_budget(run: Run) -> str | None:
    """The budget of a killed run. A run that ended by its budget has none when it is resumed."""
    if run.conclusion() is not None:
        return None
    arguments = [*run.command]
    for at, argument in enumerate(arguments):
        if argument.startswith("--budget="):
            return argument.removeprefix("--budget=")
        if argument == "--budget" and at + 1 < len(arguments):
            return arguments[at + 1]
    return None


def _written_options(trials: Sequence[JudgedTrial]) -> dict[str, dict[str, Any]]:
    """By label of an engine: the options that it reported, as they are written in a file; not of unknown engines."""
    from streamgauge.engines.registry import engines
    from streamgauge.parse.fields import write_values

    written: dict[str, dict[str, Any]] = {}
    for trial in trials:
        engine = trial.facts.engine
        known = engines().get(engine.name)
        if engine.options and known is not None and trial.trial.engine not in written:
            written[trial.trial.engine] = write_values(known.options, dict(engine.options))
    return written
