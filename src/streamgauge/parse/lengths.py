"""Checks that trials are long enough for a window to close, and for the percentiles of the objectives."""

from collections.abc import Sequence
from typing import Any

from streamgauge.judge.percentiles import min_results
from streamgauge.model.experiment import TrialPlan
from streamgauge.model.objective import SHARES, Objective
from streamgauge.model.options import Params
from streamgauge.model.units import SECOND, format_duration
from streamgauge.parse.choices import ChosenEngine
from streamgauge.parse.problems import Location, Problems
from streamgauge.parse.yaml_tree import Items, Table
from streamgauge.workloads.contract import Workload, has_reference
from streamgauge.workloads.parameters import Windowed, shortest_checked

_LATENCIES = ("event-time", "processing-time")


def check_lengths(
    trial: TrialPlan,
    params: Sequence[Params],
    workload: Workload[Any],
    engines: Sequence[ChosenEngine],
    objectives: Sequence[Objective],
    *,
    root: Table,
    problems: Problems,
) -> None:
    """Report objectives and checks that need longer trials, with the length to use."""
    waiting = [chosen for chosen in engines if chosen.traits.closes_windows]
    windows = [each for each in params if isinstance(each, Windowed)]
    if not windows or not waiting:
        return
    _check_percentiles(trial, max(each.period for each in windows), objectives, root, problems)
    if not has_reference(workload, windows[0]):
        return
    for chosen in waiting:
        if chosen.traits.simulated:
            continue
        min_duration = max(shortest_checked(each, chosen.traits.batch_interval_ns) for each in windows)
        if trial.duration < min_duration:
            message = (
                f"{format_duration(trial.duration)} is too short to check outputs of {chosen.choice.label}: a trial "
                "must last at least two windows, the watermark and two triggers. Set it to at least "
                f"{_seconds(min_duration)}, or use shorter windows"
            )
            problems.add(_location(root, "trial", "duration"), "trial.duration", message)
            return


def _seconds(nanos: int) -> str:
    """A length in whole seconds, rounded up, as it is written in a file."""
    return f"{-(-nanos // SECOND)}s"


def _check_percentiles(
    trial: TrialPlan, period: int, objectives: Sequence[Objective], root: Table, problems: Problems
) -> None:
    longest = max(trial.limit, trial.duration)
    for index, each in enumerate(objectives):
        share = SHARES.get(each.statistic or "") if each.metric in _LATENCIES else None
        if share is None or longest // period >= min_results(share):
            continue
        enough = _seconds(min_results(share) * period)
        message = (
            f"{each.text} needs at least {min_results(share)} window results, but a trial of at most "
            f"{format_duration(longest)} has {longest // period}, one every {format_duration(period)}. "
            f"Set trial.limit to at least {enough}, or use a lower percentile"
        )
        node = root.entries["objective"].node if "objective" in root.entries else root
        item = node.items[index] if isinstance(node, Items) and index < len(node.items) else node
        problems.add(item.location, f"objective[{index}]" if isinstance(node, Items) else "objective", message)


def _location(root: Table, section: str, key: str) -> Location:
    """The location of a key; of its section, or of the file, if it is not set."""
    entry = root.entries.get(section)
    if entry is None:
        return root.location
    written = entry.node.entries.get(key) if isinstance(entry.node, Table) else None
    return written.node.location if written is not None else entry.node.location
