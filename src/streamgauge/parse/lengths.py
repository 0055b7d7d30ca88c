"""Whether trials are long enough: for a window to close in them, and for the percentiles that are asked for."""

from collections.abc import Sequence
from typing import Any

from streamgauge.engines.contract import Conditions, RealEngine, appends, trigger_of
from streamgauge.judge.percentiles import needed
from streamgauge.model.experiment import TrialPlan
from streamgauge.model.objective import SHARES, Objective
from streamgauge.model.units import SECOND, format_duration
from streamgauge.parse.choices import ChosenEngine
from streamgauge.parse.problems import Mark, Problems
from streamgauge.parse.yaml_tree import Items, Table
from streamgauge.workloads.contract import Workload, has_reference
from streamgauge.workloads.parameters import Windowed, shortest_checked

_LATENCIES = ("event-time", "processing-time")


def check_lengths(
    trial: TrialPlan,
    conditions: Conditions,
    workload: Workload[Any],
    engines: Sequence[ChosenEngine],
    objectives: Sequence[Objective],
    *,
    root: Table,
    problems: Problems,
) -> None:
    """Refuse what no trial of this length can show, with the length to use."""
    waiting = [chosen for chosen in engines if appends(chosen.engine, chosen.choice.options)]
    params = [workload.params.from_resolved(values) for values in conditions.params]
    windows = [each for each in params if isinstance(each, Windowed)]
    if not windows or not waiting:
        return
    _check_percentiles(trial, max(each.period for each in windows), objectives, root, problems)
    if not has_reference(workload, windows[0]):
        return
    for chosen in waiting:
        if not isinstance(chosen.engine, RealEngine):
            continue
        trigger = trigger_of(chosen.engine, chosen.choice.options)
        least = max(shortest_checked(each, trigger) for each in windows)
        if trial.duration < least:
            message = (
                f"{format_duration(trial.duration)} is too short to check outputs of {chosen.choice.label}: a trial "
                "must last at least two windows, the watermark and two triggers. Set it to at least "
                f"{_seconds(least)}, or use shorter windows"
            )
            problems.add(_mark(root, "trial", "duration"), "trial.duration", message)
            return


def _seconds(nanos: int) -> str:
    """A length as it is written in a file, rounded up."""
    return f"{-(-nanos // SECOND)}s"


def _check_percentiles(
    trial: TrialPlan, period: int, objectives: Sequence[Objective], root: Table, problems: Problems
) -> None:
    longest = max(trial.limit, trial.duration)
    for index, each in enumerate(objectives):
        share = SHARES.get(each.statistic or "") if each.metric in _LATENCIES else None
        if share is None or longest // period >= needed(share):
            continue
        enough = _seconds(needed(share) * period)
        message = (
            f"{each.text} needs at least {needed(share)} window results, but a trial of at most "
            f"{format_duration(longest)} has {longest // period}, one every {format_duration(period)}. "
            f"Set trial.limit to at least {enough}, or use a lower percentile"
        )
        node = root.entries["objective"].node if "objective" in root.entries else root
        item = node.items[index] if isinstance(node, Items) and index < len(node.items) else node
        problems.add(item.mark, f"objective[{index}]" if isinstance(node, Items) else "objective", message)


def _mark(root: Table, section: str, key: str) -> Mark:
    """Where a key is said, else its section, else the file."""
    entry = root.entries.get(section)
    if entry is None:
        return root.mark
    said = entry.node.entries.get(key) if isinstance(entry.node, Table) else None
    return said.node.mark if said is not None else entry.node.mark
