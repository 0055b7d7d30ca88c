"""How far a search may go: the highest load that streamgauge can generate reliably on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from streamgauge.engines.registry import engines
from streamgauge.model.calibration import UNCALIBRATED_SHARE
from streamgauge.model.experiment import EngineChoice, Experiment, TransportChoice
from streamgauge.model.layout import Placement
from streamgauge.model.units import format_rate
from streamgauge.processes.placement import assign_cores
from streamgauge.run.environment import machine_name
from streamgauge.run.explore import options_of
from streamgauge.run.trial.setup import RunLimits
from streamgauge.store.calibrations import load, workspace
from streamgauge.transports.registry import identity_of, transport_of


def with_max_load(
    experiment: Experiment, root: Path, token: str, say: Callable[[str], object], limits: RunLimits
) -> Experiment:
    """The experiment with the maximum reliable load of this machine, from its calibration or a quick check.

    Simulated engines have none.
    """
    placements = placements_of(experiment.engines)
    if not placements or experiment.dimension.name != "load":
        return experiment
    transport, found = experiment.transport, []
    identity = identity_of(transport)
    for placement in placements:
        calibration = load(root, machine_name(), placement.sentence, identity)
        if calibration is not None:
            found.append(calibration.ceilings.max_load)
            if calibration.ceilings.confirmed is False:
                say(
                    f"The calibration of this machine has not confirmed its highest load, "
                    f"{format_rate(calibration.ceilings.max_load)}, over the length of a trial. Trials near it may be "
                    "INVALID. Calibrate again while the machine is quiet."
                )
        else:
            with workspace(root, token) as folder:
                found.append(_quick_limit(folder, placement, say, limits, transport))
    return replace(experiment, ceiling=min(found))


def placements_of(choices: Sequence[EngineChoice]) -> list[Placement]:
    """The different CPU pinnings of the real engines among these. Raises NotEnoughCores."""
    found: dict[str, Placement] = {}
    for choice in choices:
        engine, options = engines()[choice.name], options_of(choice)
        if not engine.traits(options).simulated:
            placement = assign_cores(int(engine.layout(options, 1).cores))
            found[placement.sentence] = placement
    return list(found.values())


def _quick_limit(
    folder: Path, placement: Placement, say: Callable[[str], object], limits: RunLimits, choice: TransportChoice
) -> float:
    """The load limit after a quick check."""
    from streamgauge.run.calibrate.calibrate import open_setup, quick_check  # noqa: PLC0415 - Arrow Flight only where it is needed

    transport, options = transport_of(choice)
    arguments = transport.calibrate_arguments(options)
    over = f" over {transport.title}" if arguments else ""
    say(
        f"This machine is not calibrated{over}. Measuring the load generator for a few seconds. Run "
        f"`{' '.join(['streamgauge calibrate', *arguments])}` once for a more accurate limit."
    )
    with open_setup(folder, placement, say, limits, choice) as setup:
        maximum = quick_check(setup)
    found = UNCALIBRATED_SHARE * maximum
    say(
        f"Loads are limited to {format_rate(found)}, {UNCALIBRATED_SHARE * 100:.0f} % of the measured maximum. "
        "A calibration can raise this limit."
    )
    return found
