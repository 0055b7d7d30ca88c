"""A run for the terminal: the answer first, then the bracket, why it stopped, latency, and every trial."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streamgauge.report.latency import PERCENTILES, LatencyLine, footnote
from streamgauge.report.view import FindingView, RunView, TrialRow, as_sentence, searched_name
from streamgauge.report.why import Why

_COLOURS = {
    "SUSTAINED": "green",
    "OVERLOADED": "yellow",
    "FAILED": "bold red",
    "INVALID": "magenta",
    "UNDECIDED": "cyan",
}
_GOOD = ("bracketed", "all-hold", "measured", "wide")
_LIMITS = 3
"""Limits that are told here; the page has all of them."""


def render_run(view: RunView, trials: bool = True) -> RenderableType:
    """The whole run. Readable in 80 columns, and without colours."""
    parts: list[RenderableType] = []
    for finding in view.findings:
        parts += [*_finding(finding, trials), Text("")]
    if view.ended:
        parts.append(Text(f"Ended early: {view.ended}.", style="yellow"))
    if any(finding.rows for finding in view.findings):
        parts.append(Text(view.checked))
        parts += [Text(as_sentence(view.transport))] if view.transport else []
    parts.append(Text(f"run {view.id}", style="dim"))
    return Group(*parts)


def _finding(finding: FindingView, trials: bool) -> list[RenderableType]:
    style = "bold green" if finding.status in _GOOD else "bold yellow"
    parts: list[RenderableType] = []
    if finding.title:
        parts.append(Text(finding.title, style="bold"))
    parts.append(Text(as_sentence(finding.sentence), style=style))
    parts += [Text(f"  {line}") for line in _bracket(finding)]
    parts += [Padding(Text(f"note: {note}"), (0, 0, 0, 2), expand=False) for note in finding.notes]
    if finding.circumstances:
        parts += [Text("  circumstances:"), *(_item(said) for said in finding.circumstances)]
    if finding.why is not None:
        parts += _why(finding.why)
    if finding.latencies:
        parts += [Text(""), _latency(finding.latencies)]
        said = footnote(finding.latencies)
        parts += [Padding(Text(said, style="dim"), (0, 0, 0, 2), expand=False)] if said else []
    for said in filter(None, (finding.no_latency, finding.updates)):
        parts.append(Padding(Text(said), (0, 0, 0, 2), expand=False))
    if trials and finding.rows:
        parts += [Text(""), _table(finding)]
    return parts


def _bracket(finding: FindingView) -> list[str]:
    lines = []
    if finding.holds:
        lines.append(f"holds at {finding.holds}")
    if finding.fails:
        lines.append(f"fails at {finding.fails}")
    if finding.rows:
        count = len(finding.rows)
        lines.append(f"{count} trial{'' if count == 1 else 's'}, {finding.time} of trial time")
    return lines


def _why(reason: Why) -> list[RenderableType]:
    lead = "why it stopped there" if reason.where == "fails" else "how busy it was"
    return [
        Text(f"  {lead} (trial {reason.trial}, {reason.load}):"),
        *(_item(limit.sentence) for limit in reason.limits[:_LIMITS]),
    ]


def _item(said: str) -> Padding:
    return Padding(Text(f"- {said}"), (0, 0, 0, 4), expand=False)


def _latency(lines: Sequence[LatencyLine]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("latency", overflow="fold")
    for name in ("at", "avg", "min", "max", *PERCENTILES, "windows"):
        table.add_column(name, justify="right", overflow="fold")
    for line in lines:
        numbers = (line.average, line.least, line.most, *line.percentiles, str(line.firings))
        table.add_row(Text(line.kind), Text(line.at), *(Text(number) for number in numbers))
    return table


def _table(finding: FindingView) -> Table:
    own_value = any(row.value != row.load for row in finding.rows)
    several = any(row.start > 1 for row in finding.rows)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("trial", justify="right", no_wrap=True)
    if several:
        table.add_column("start", justify="right", no_wrap=True)
    table.add_column("for", no_wrap=True)
    if own_value:
        table.add_column(searched_name(finding), justify="right", no_wrap=True)
    table.add_column("load", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("because", overflow="fold", ratio=1)
    for row in finding.rows:
        table.add_row(*_cells(row, own_value, several))
    return table


def _cells(row: TrialRow, own_value: bool, several: bool) -> list[RenderableType]:
    because = f"[{row.proves}] {row.reason}" if row.proves else row.reason
    start = [Text(str(row.start))] if several else []
    cells: list[RenderableType] = [Text(str(row.number)), *start, Text(row.purpose)]
    if own_value:
        cells.append(Text(row.value))
    verdict = Text(row.verdict, style=_COLOURS.get(row.verdict, ""))
    return [*cells, Text(row.load), Text(f"{row.seconds}s"), verdict, Text(because)]
