"""The progress of a run: a live view on a terminal, one line per trial elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND, duration_text, format_count, format_duration, format_value
from streamgauge.processes.clock import elapsed_ns
from streamgauge.stats.buckets import quantile
from streamgauge.workloads.registry import workloads

_BAR = 60
_PURPOSES = {
    "estimate": "estimate",
    "probe": "probe",
    "confirm": "confirmation",
    "measure": "measurement",
}


def describe(trial: Trial) -> str:
    """The engine of a trial, its purpose and its load, such as ``spark: probe at 500k events/s``."""
    return f"{trial.engine}: {_PURPOSES[trial.ask.purpose]} at {_where(trial)}"


def _where(trial: Trial) -> str:
    """The load of a trial, with the number of instances or the searched parameter if there is one."""
    name, value = trial.ask.dimension, trial.ask.value
    instances = value if name == "instances" else dict(trial.ask.fixed).get("instances")
    load = f"{format_count(trial.load)} events/s"
    if instances is not None:
        return f"{load} with {format_count(instances)} instance{'' if instances == 1 else 's'}"
    known = workloads().get(trial.workload)
    units = {dimension.name: dimension.unit for dimension in known.dimensions} if known is not None else {}
    return load if name == "load" else f"{load}, {name} {format_value(value, units.get(name, 'count'))}"


def _position(number: int, expected: int) -> str:
    """The number of a trial and the estimated number of trials, unless there are more than estimated."""
    return f"[{number}/~{expected}]" if number <= expected else f"[{number}]"


class PlainProgress:
    """Progress without a terminal: one line per trial, when it has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._expected = 0
        self._seconds_done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def message(self, sentence: str) -> None:
        """Print one line."""
        self._console.print(sentence, markup=False, soft_wrap=True)

    def trial_started(self, trial: Trial, expected_trials: int) -> None:
        """Print nothing yet: the line is printed with the verdict."""
        self._expected, self._seconds_done = expected_trials, 0

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Count the seconds for the line."""
        self._seconds_done += len(seconds)

    def trial_judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """Print the line of the trial."""
        line = f"{_position(trial.number, self._expected)} {describe(trial)}: {verdict.kind} ({self._seconds_done} s)"
        self._console.print(line, markup=False, soft_wrap=True)


class LiveProgress:
    """Progress on a terminal: the current trial with its load, queue and latency, and the time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True)
        self._start_ns = elapsed_ns()
        self._expected = 1
        self._trials_done = 0
        self._seconds_done = 0
        self._trial: Trial | None = None
        self._latest: Seconds | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, value, trace)

    def message(self, sentence: str) -> None:
        """Print a line above the live view."""
        self._live.console.print(sentence, markup=False, highlight=False)

    def trial_started(self, trial: Trial, expected_trials: int) -> None:
        """Show a new trial."""
        self._trial, self._expected, self._seconds_done, self._latest = trial, expected_trials, 0, None
        self._live.update(self._block())

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Show the latest values."""
        self._seconds_done, self._latest = seconds.stop, seconds
        self._live.update(self._block())

    def trial_judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """Print a line for the finished trial above the live view."""
        self._trials_done += 1
        line = f"{_position(trial.number, self._expected)} {describe(trial)}: {verdict.kind} ({self._seconds_done} s)"
        self._live.console.print(line, markup=False, highlight=False)

    def _block(self) -> RenderableType:
        trial = self._trial
        if trial is None:
            return Text("")
        length = max(1, ((trial.warmup or 0) + trial.duration) // SECOND)
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for name, value in self._facts(trial):
            table.add_row(Text(name, style="dim"), Text(value))
        bar = Padding(ProgressBar(total=length, completed=self._seconds_done, width=_BAR), (0, 0))  # it has no line end
        return Group(Text(describe(trial), style="bold"), bar, table)

    def _facts(self, trial: Trial) -> list[tuple[str, str]]:
        latest = self._latest
        queue = int(latest["queue"][-1]) if latest is not None and len(latest) else 0
        offered = float(latest["offered"][-1]) if latest is not None and len(latest) else trial.load
        return [
            ("trial", f"{_position(trial.number, self._expected)} {self._seconds_done} s"),
            ("load", f"{format_count(offered)} events/s"),
            ("queue", f"{format_count(queue)} events"),
            ("median event-time latency", _median(latest)),
            ("time left", self._time_left()),
        ]

    def _time_left(self) -> str:
        """The estimated time left, from the mean duration of the trials so far."""
        if not self._trials_done:
            return "not known yet"
        each = (elapsed_ns() - self._start_ns) / self._trials_done
        finished = self._trial.number - 1 if self._trial is not None else self._trials_done
        left = each * max(1, self._expected - finished)
        return f"about {duration_text(max(1, round(left / SECOND)) * SECOND)}"


def _median(seconds: Seconds | None) -> str:
    """The median event-time latency of the latest seconds."""
    found = None if seconds is None else seconds.latency("event-time")
    if found is None or not len(found.count):
        return "–"
    return format_duration(quantile(found.bucket, found.count, 0.5) * 1_000)


def progress_for(console: Console) -> PlainProgress | LiveProgress:
    """The live view if messages go to a terminal, else one line per trial."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)
