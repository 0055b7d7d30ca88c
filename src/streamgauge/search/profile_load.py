"""The load of a profile: the one that was planned, and those at which its trials were judged.

A planned load is the mean of the profile over the planned length. A trial whose warm-up ends later, or that is
extended, is judged over other seconds of the profile, which can have another mean.
"""

from collections.abc import Iterator

from streamgauge.model.experiment import Experiment
from streamgauge.model.units import format_rate
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, ValueHistory

_NOTICEABLE = 0.01
"""A load of a trial that differs from the planned one by this share of it gets a note."""


def varies(experiment: Experiment, axis: SearchAxis) -> bool:
    """Whether the values of an axis are the mean loads of a profile."""
    shape = experiment.profile
    return axis.dimension == "load" and shape is not None and shape.shape != "constant"


def loads_of(entry: ValueHistory | None) -> str:
    """The loads at which the deciding trials of a value were judged: one rate, or two; empty if there are none."""
    loads = sorted(t.load for t in entry.deciding if t.load) if entry else []
    ends = dict.fromkeys(format_rate(load) for load in (loads[:1] + loads[-1:]))
    return " to ".join(ends)


def profile_notes(experiment: Experiment, history: AxisHistory) -> Iterator[str]:
    """A note for each bound whose trials were judged at another load than the planned one."""
    if not varies(experiment, history.axis):
        return
    for entry in (history.holds, history.fails):
        if entry and any(abs(t.load - entry.value) > _NOTICEABLE * entry.value for t in entry.deciding if t.load):
            yield (
                f"{history.axis.text(entry.value)} is the mean of the profile over the planned length; its trials were "
                f"judged at {loads_of(entry)}, the mean over their measurement phase"
            )
