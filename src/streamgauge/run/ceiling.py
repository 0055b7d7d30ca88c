"""How far a search may go: the highest load at which the driver can be believed, on this machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streamgauge.engines.base import RealEngine
from streamgauge.engines.registry import engines
from streamgauge.model.calibration import UNPROVEN
from streamgauge.model.experiment import Experiment
from streamgauge.model.units import format_rate
from streamgauge.run.environment import machine_name
from streamgauge.run.place import place
from streamgauge.store.calibrations import kept, workspace


def with_ceiling(
    experiment: Experiment, root: Path, token: str, say: Callable[[str], None], runtime: Path | None
) -> Experiment:
    """The experiment with the ceiling of this machine, from its calibration or a short check.

    Virtual engines have none.
    """
    real = [c for c in experiment.engines if isinstance(engines().get(c.name), RealEngine)]
    if not real or experiment.dimension.name != "load":
        return experiment
    ceiling = min(_ceiling(root, c.options, token, say, runtime) for c in real)
    return replace(experiment, ceiling=ceiling)


def _ceiling(
    root: Path, options: dict[str, object], token: str, say: Callable[[str], None], runtime: Path | None
) -> float:
    placement = place(options)
    calibration = kept(root, machine_name(), placement.sentence)
    if calibration is not None:
        return calibration.ceilings.most
    from streamgauge.run.calibrate import quick_ceiling  # noqa: PLC0415 (Arrow Flight only where a process is started)

    say("no calibration of this machine: a short check of the driver's ceiling (streamgauge calibrate does it well)")
    with workspace(root, token) as folder:
        flat_out = quick_ceiling(folder, placement, runtime)
    found = UNPROVEN * flat_out
    why = "no calibration has shown that its ticks are in time at more"
    say(f"the driver is believed up to {format_rate(found)}, {UNPROVEN:.0%} of its flat-out rate: {why}")
    return found
