"""How far a search may go: the highest load at which the driver can be believed, on this machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streamgauge.engines.contract import RealEngine
from streamgauge.engines.registry import engines
from streamgauge.model.calibration import UNPROVEN
from streamgauge.model.experiment import QUEUE, Experiment, TransportChoice
from streamgauge.model.units import format_rate
from streamgauge.processes.placement import Placement, place
from streamgauge.run.environment import machine_name
from streamgauge.run.limits import Limits
from streamgauge.store.calibrations import load, workspace
from streamgauge.transports.kafka.options import KafkaOptions, kafka_options

_ELSEWHERE = ("format", "cluster", "commit_group")
"""Options that are told in words of their own, or that change no rate."""


def with_ceiling(
    experiment: Experiment, root: Path, token: str, say: Callable[[str], None], limits: Limits
) -> Experiment:
    """The experiment with the ceiling of this machine, from its calibration or a short check.

    Virtual engines have none.
    """
    real = [c for c in experiment.engines if isinstance(engines().get(c.name), RealEngine)]
    if not real or experiment.dimension.name != "load":
        return experiment
    placements = {placement.sentence: placement for placement in (place(c.options) for c in real)}
    found = []
    for placement in placements.values():
        calibration = load(root, machine_name(), placement.sentence, transport_named(experiment.transport))
        if calibration is not None:
            found.append(calibration.ceilings.most)
            if calibration.ceilings.confirmed is False:
                say(
                    f"The calibration of this machine has not confirmed its highest load, "
                    f"{format_rate(calibration.ceilings.most)}, over the length of a trial. Trials near it may be "
                    "INVALID. Calibrate again while the machine is quiet."
                )
        else:
            with workspace(root, token) as folder:
                found.append(_unproven(folder, placement, say, limits, experiment.transport))
    return replace(experiment, ceiling=min(found))


def _unproven(
    folder: Path, placement: Placement, say: Callable[[str], None], limits: Limits, transport: TransportChoice
) -> float:
    """What is believed after a short check."""
    from streamgauge.run.calibrate.calibrate import quick_ceiling, site  # noqa: PLC0415 (Arrow Flight only where it is needed)

    options = kafka_options(transport)
    hint = "" if options is None else " --cluster EXPERIMENT" if options.cluster else " --transport kafka"
    over = " over Kafka" if options else ""
    say(
        f"This machine is not calibrated{over}. Measuring the load generator for a few seconds. Run "
        f"`streamgauge calibrate{hint}` once for a more accurate limit."
    )
    with site(folder, placement, say, limits, transport) as at:
        flat_out = quick_ceiling(at)
    found = UNPROVEN * flat_out
    say(
        f"Loads are limited to {format_rate(found)}, {UNPROVEN:.0%} of the measured maximum. A calibration can raise "
        "this limit."
    )
    return found


def transport_named(transport: TransportChoice) -> str:
    """What a transport is called in calibrations: with all that its rates hang on."""
    options = kafka_options(transport)
    if options is None:
        return QUEUE
    usual, said = KafkaOptions().dumped(), options.dumped()
    differs = [f"{key} {said[key]}" for key in usual if key not in _ELSEWHERE and said[key] != usual[key]]
    at = [f"the cluster at {options.cluster.bootstrap}"] if options.cluster else []
    return ", ".join(["kafka", f"{options.format} records", *differs, *at])
