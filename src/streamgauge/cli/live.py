"""How a run is followed: a live block on a terminal, a line per trial elsewhere."""

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
from streamgauge.model.units import SECOND, format_count, format_duration, format_rate
from streamgauge.run.clock import elapsed_ns
from streamgauge.stats.buckets import quantile

_BAR = 60
_PHASES = {
    "estimate": "first estimate",
    "probe": "narrowing",
    "confirm": "confirming",
    "measure": "measuring",
}


def describe(trial: Trial) -> str:
    """A trial in a few words: what for, where."""
    line = f" ({trial.ask.line})" if trial.ask.line else ""
    return f"{trial.engine}: {_PHASES[trial.ask.purpose]} at {_where(trial)}{line}"


def _where(trial: Trial) -> str:
    if trial.ask.dimension == "load":
        return format_rate(trial.load)
    return f"{trial.ask.dimension} {format_count(trial.ask.value)}, {format_rate(trial.load)}"


class Lines:
    """Where nobody watches: one line per trial, when it is over."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._expected = 0
        self._seconds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to tidy up."""

    def said(self, sentence: str) -> None:
        """A line of its own."""
        self._console.print(sentence, markup=False, soft_wrap=True)

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """Nothing yet: the line comes with the verdict."""
        self._expected, self._seconds = max(expected_trials, trial.number), 0

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Count the seconds for the line."""
        self._seconds += len(seconds)

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """The line."""
        told = (
            f"trial {trial.number} of about {self._expected}: {describe(trial)}: {verdict.kind} after {self._seconds}s"
        )
        self._console.print(told, markup=False, soft_wrap=True)


class LiveBlock:
    """On a terminal: phase, trial n of about m, offered rate, lag, latency, time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=8, transient=True)
        self._began = elapsed_ns()
        self._expected = 1
        self._done = 0
        self._past = 0
        self._trial: Trial | None = None
        self._newest: Seconds | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, value, trace)

    def said(self, sentence: str) -> None:
        """A line above the block."""
        self._live.console.print(sentence, markup=False, highlight=False)

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """A new block for a new trial."""
        self._trial, self._expected, self._past, self._newest = trial, max(expected_trials, trial.number), 0, None
        self._live.update(self._block())

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """The newest numbers."""
        self._past, self._newest = seconds.stop, seconds
        self._live.update(self._block())

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """A finished trial leaves a line above the block."""
        self._done += 1
        line = f"{trial.number:>3}  {describe(trial)}: {verdict.kind} after {self._past}s"
        self._live.console.print(line, markup=False, highlight=False)

    def _block(self) -> RenderableType:
        trial = self._trial
        if trial is None:
            return Text("")
        length = max(1, ((trial.warmup or 0) + trial.duration) // SECOND)
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for name, value in self._facts(trial):
            table.add_row(Text(name, style="dim"), Text(value))
        bar = Padding(ProgressBar(total=length, completed=self._past, width=_BAR), (0, 0))  # a bar ends no line itself
        return Group(Text(describe(trial), style="bold"), bar, table)

    def _facts(self, trial: Trial) -> list[tuple[str, str]]:
        newest = self._newest
        queue = int(newest["queue"][-1]) if newest is not None and len(newest) else 0
        return [
            ("trial", f"{trial.number} of about {self._expected}, second {self._past}"),
            (
                "offered",
                format_rate(float(newest["offered"][-1]) if newest is not None and len(newest) else trial.load),
            ),
            ("lag", f"{format_count(queue)} events"),
            ("latency", _median(newest)),
            ("time left", self._left()),
        ]

    def _left(self) -> str:
        """From the pace of the trials so far: a guess, and said as one."""
        if not self._done:
            return "not known yet"
        each = (elapsed_ns() - self._began) / self._done
        left = each * max(1, self._expected - self._done)
        return f"about {format_duration(max(1, round(left / SECOND)) * SECOND)}"


def _median(seconds: Seconds | None) -> str:
    """The median event-time latency of the newest stretch."""
    found = None if seconds is None else seconds.latency("event-time")
    if found is None or not len(found.count):
        return "–"
    return format_duration(quantile(found.bucket, found.count, 0.5) * 1_000)


def follow(console: Console) -> Lines | LiveBlock:
    """The one that fits where the talk goes."""
    return LiveBlock(console) if console.is_terminal else Lines(console)
