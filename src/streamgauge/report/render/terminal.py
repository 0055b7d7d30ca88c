"""A run for the terminal: the result first, then its bounds, what limited it, latency, and every trial."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streamgauge.model.calibration import Calibration, Ceilings
from streamgauge.model.layout import placement_text
from streamgauge.model.units import duration_text, format_count, format_duration, format_rate
from streamgauge.report.view import stages
from streamgauge.report.view.findings import FindingView, RunView, TrialRow, as_sentence, searched_name
from streamgauge.report.view.latency import PERCENTILES, LatencyLine, footnote
from streamgauge.report.view.limits import LimitingFactors

_COLOURS = {
    "SUSTAINED": "green",
    "OVERLOADED": "yellow",
    "FAILED": "bold red",
    "INVALID": "magenta",
    "UNDECIDED": "cyan",
}
_GOOD = ("bracketed", "all-hold", "measured", "wide")
_NARROW = 60
"""Columns of a terminal below which the table of trials is not readable."""
_STATISTICS = ("avg", "min", "max", *PERCENTILES)
_LIMITS = 3
"""Limits that are shown here; the page has all of them."""


def render_run(view: RunView, trials: bool = True) -> RenderableType:
    """The whole run. Readable in 80 columns, and without colours."""
    parts: list[RenderableType] = []
    for finding in view.findings:
        parts += [*_finding(finding, trials), Text("")]
    for table in view.stages:
        parts += [*_stages(table, len(view.stages) > 1), Text("")]
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
    if finding.heading:
        parts.append(Text(finding.heading, style="bold"))
    parts.append(Text(as_sentence(finding.sentence), style=style))
    parts += [Text(f"  {line}") for line in _bounds(finding)]
    parts += [Padding(Text(f"note: {note}"), (0, 0, 0, 2), expand=False) for note in finding.notes]
    if finding.circumstances:
        parts += [Text("  circumstances:"), *(_item(text) for text in finding.circumstances)]
    if finding.why is not None:
        parts += _why(finding.why)
    if finding.latencies:
        parts += [Text(""), _Latencies(finding.latencies)]
        text = footnote(finding.latencies)
        parts += [Padding(Text(text, style="dim"), (0, 0, 0, 2), expand=False)] if text else []
    for text in filter(None, (finding.no_latency, finding.updates, finding.early)):
        parts.append(Padding(Text(text), (0, 0, 0, 2), expand=False))
    if trials and finding.rows:
        parts += [Text(""), _Trials(finding)]
    return parts


def _stages(table: stages.StageTable, several: bool) -> list[RenderableType]:
    """The latency of each stage, next to the published figures."""
    shown = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    for place, name in enumerate(stages.columns(table)):
        shown.add_column(name, justify="left" if place < stages.TEXTS else "right", overflow="fold")
    for row in stages.cells(table):
        shown.add_row(*(Text(cell) for cell in row))
    title = f"Latency of each stage{f' of {table.engine}' if several else ''}"
    return [
        Text(title, style="bold"),
        shown,
        Padding(Text(stages.note(table), style="dim"), (0, 0, 0, 2), expand=False),
    ]


def _bounds(finding: FindingView) -> list[str]:
    lines = []
    if finding.holds:
        lines.append(f"passed at {finding.holds}")
    if finding.fails:
        lines.append(f"failed at {finding.fails}")
    if finding.rows:
        count = len(finding.rows)
        lines.append(f"{count} trial{'' if count == 1 else 's'}, {finding.time} of trial time")
    return lines


def _why(reason: LimitingFactors) -> list[RenderableType]:
    lead = "what limited it" if reason.where == "fails" else "how busy it was"
    return [
        Text(f"  {lead} (trial {reason.trial}, {reason.load}):"),
        *(_item(limit.sentence) for limit in reason.limits[:_LIMITS]),
    ]


def _item(text: str) -> Padding:
    return Padding(Text(f"- {text}"), (0, 0, 0, 4), expand=False)


@dataclass(frozen=True, slots=True)
class _Latencies:
    """The latencies at the loads of a result: a table, or a paragraph for each if the terminal is narrow."""

    lines: Sequence[LatencyLine]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= _NARROW:
            yield _latency_table(self.lines)
            return
        for line in self.lines:
            numbers = zip(_STATISTICS, (line.average, line.least, line.most, *line.percentiles), strict=True)
            shown = ", ".join(f"{name} {number}" for name, number in numbers)
            yield Text(f"{line.kind} latency at {line.at}: {shown} ({line.firings} window results)")


def _latency_table(lines: Sequence[LatencyLine]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("latency", overflow="fold")
    for name in ("at", *_STATISTICS, "window results"):
        table.add_column(name, justify="right", overflow="fold")
    for line in lines:
        numbers = (line.average, line.least, line.most, *line.percentiles, str(line.firings))
        table.add_row(Text(line.kind), Text(line.at), *(Text(number) for number in numbers))
    return table


@dataclass(frozen=True, slots=True)
class _Trials:
    """Every trial of a finding: a table, or a paragraph for each if the terminal is too narrow for its columns."""

    finding: FindingView

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= _NARROW:
            yield _table(self.finding)
            return
        for row in self.finding.rows:
            role = f", {row.role}" if row.role else ""
            yield Text(f"trial {row.number}: {row.purpose} at {row.load}, {row.seconds} s{role}")
            yield Padding(Text(row.verdict, style=_COLOURS.get(row.verdict, "")), (0, 0, 0, 2))
            yield Padding(Text(row.reason), (0, 0, 0, 2))


def _table(finding: FindingView) -> Table:
    own_value = any(row.value != row.load for row in finding.rows)
    several = any(row.start > 1 for row in finding.rows)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("trial", justify="right", no_wrap=True)
    if several:
        table.add_column("start", justify="right", no_wrap=True)
    table.add_column("purpose", no_wrap=True)
    if own_value:
        table.add_column(searched_name(finding), justify="right", no_wrap=True)
    table.add_column("load", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("role", overflow="fold", max_width=12)
    table.add_column("reason", overflow="fold", ratio=1)
    for row in finding.rows:
        table.add_row(*_cells(row, own_value, several))
    return table


def _cells(row: TrialRow, own_value: bool, several: bool) -> list[RenderableType]:
    start = [Text(str(row.start))] if several else []
    cells: list[RenderableType] = [Text(str(row.number)), *start, Text(row.purpose)]
    if own_value:
        cells.append(Text(row.value))
    verdict = Text(row.verdict, style=_COLOURS.get(row.verdict, ""))
    return [*cells, Text(row.load), Text(f"{row.seconds}s"), verdict, Text(row.role), Text(row.reason)]


def render_calibration(c: Calibration) -> RenderableType:
    """The maximum rates first, then known values against measured ones."""
    top = c.ceilings
    over = "broker" if c.broker else c.transport
    lines = [
        f"{c.machine}; {placement_text(c.placement)}" + (f"; {c.transport}" if c.broker else ""),
        f"maximum rate through generator and {over}: {format_rate(top.queue)}; {_max_reliable_load(top)}",
        *([f"maximum rate of the collector: {format_count(top.collector)} rows/s"] if top.collector else []),
        f"send delay at {format_rate(top.rate)}: {duration_text(top.lag_p50)} (median), "
        f"{duration_text(top.lag_p99)} (p99), {duration_text(top.lag_max)} (max)",
    ]
    return Group(*(Text(line) for line in lines), Text(), _capacities(c), Text(), _latencies(c), *_reasons(c))


def _max_reliable_load(top: Ceilings) -> str:
    """The maximum reliable load, and the send delay there."""
    share = f", {top.max_load / top.queue * 100:.0f} % of it" if top.queue else ""
    text = f"maximum reliable load: {format_rate(top.max_load)}{share}"
    probe = next((p for p in reversed(top.probes) if p.rate == top.max_load), None)
    if probe is None:
        return text
    late = "" if top.confirmed is not False else f"; {_unconfirmed(top)}"
    return f"{text}, p99 send delay {duration_text(probe.lag_p99)} over {probe.seconds:g} s{late}"


def _unconfirmed(top: Ceilings) -> str:
    """That no probe of a trial's length was in time at the highest load of searches, and what to do."""
    long = max(p.seconds for p in top.probes)
    late = [format_rate(p.rate) for p in top.probes if p.seconds == long and not p.timely and p.rate > top.max_load]
    why = f", because events were late over {long:g} s at {' and '.join(late)}" if late else ""
    way_out = "stop other work on this machine and calibrate again"
    return f"this rate is not confirmed over the length of a trial{why}; {way_out}"


def _calibration_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _capacities(c: Calibration) -> Table:
    table = _calibration_table("true capacity", "measured", "error", "verdict")
    for row in c.capacities:
        table.add_row(format_rate(row.true), format_rate(row.measured), f"{row.error:+.2%}", row.verdict)
    return table


def _latencies(c: Calibration) -> Table:
    table = _calibration_table("delay", "window results", "true p50", "measured", "true p99", "measured", "verdict")
    for row in c.latencies:
        times = (row.true_p50, row.measured_p50, row.true_p99, row.measured_p99)
        table.add_row(format_duration(row.delay), str(row.firings), *(format_duration(t) for t in times), row.verdict)
    return table


def _reasons(c: Calibration) -> list[Text]:
    problems = c.problems()
    return [Text(), *(Text(f"{verdict}: {reason}") for verdict, reason in problems)] if problems else []
