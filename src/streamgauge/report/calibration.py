"""A calibration for a person."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamgauge.model.calibration import QUEUE, Calibration, Ceilings
from streamgauge.model.units import format_count, format_duration, format_rate


def render_calibration(c: Calibration) -> RenderableType:
    """Ceilings first, then what was known against what was measured."""
    top = c.ceilings
    over = "queue" if c.transport == QUEUE else "broker"
    lines = [
        f"{c.machine}; {c.placement}" + ("" if c.transport == QUEUE else f"; {c.transport}"),
        f"maximum rate through generator and {over}: {format_rate(top.queue)}; {_believed(top)}",
        *([f"maximum rate of the collector: {format_count(top.collector)} rows/s"] if top.collector else []),
        f"send delay at {format_rate(top.rate)}: {format_duration(top.lag_p50)} (median), "
        f"{format_duration(top.lag_p99)} (p99), {format_duration(top.lag_max)} (max)",
    ]
    return Group(*(Text(line) for line in lines), Text(), _capacities(c), Text(), _latencies(c), *_reasons(c))


def _believed(top: Ceilings) -> str:
    """How far searches go, and how late ticks are there."""
    share = f", {top.most / top.queue:.0%} of it" if top.queue else ""
    said = f"maximum reliable load: {format_rate(top.most)}{share}"
    probe = next((p for p in reversed(top.probes) if p.rate == top.most), None)
    if probe is None:
        return said
    late = "" if top.confirmed is not False else f"; {_unconfirmed(top)}"
    return f"{said}, p99 send delay {format_duration(probe.lag_p99)} over {probe.seconds:g} s{late}"


def _unconfirmed(top: Ceilings) -> str:
    """That no probe of a trial's length was in time at the highest load of searches, and what to do."""
    long = max(p.seconds for p in top.probes)
    late = [format_rate(p.rate) for p in top.probes if p.seconds == long and not p.timely and p.rate > top.most]
    why = f", because events were late over {long:g} s at {' and '.join(late)}" if late else ""
    way_out = "stop other work on this machine and calibrate again"
    return f"this rate is not confirmed over the length of a trial{why}; {way_out}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _capacities(c: Calibration) -> Table:
    table = _table("true capacity", "measured", "error", "verdict")
    for row in c.capacities:
        table.add_row(format_rate(row.true), format_rate(row.measured), f"{row.error:+.2%}", row.verdict)
    return table


def _latencies(c: Calibration) -> Table:
    table = _table("delay", "window results", "true p50", "measured", "true p99", "measured", "verdict")
    for row in c.latencies:
        times = (row.true_p50, row.measured_p50, row.true_p99, row.measured_p99)
        table.add_row(format_duration(row.delay), str(row.firings), *(format_duration(t) for t in times), row.verdict)
    return table


def _reasons(c: Calibration) -> list[Text]:
    said = c.problems()
    return [Text(), *(Text(f"{verdict}: {reason}") for verdict, reason in said)] if said else []
