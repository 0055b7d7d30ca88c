"""What Spark cannot do where it is put: real-time mode and Kafka have conditions that can be told beforehand. Pure."""

from collections.abc import Iterator
from typing import Any

from streamgauge.engines.contract import Conditions, too_fine
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.settings import shuffle_partitions, slots
from streamgauge.model.options import Params
from streamgauge.model.units import SECOND, format_duration
from streamgauge.workloads.contract import OutputContract, Stream, Workload
from streamgauge.workloads.registry import workloads

SHORTEST = 5 * SECOND
"""The shortest batch of real-time mode that Spark takes."""


def problems(options: SparkOptions, conditions: Conditions) -> Iterator[str]:
    """Each a sentence with its fix."""
    over_kafka = conditions.transport.name == "kafka"
    if options.output_mode == "update" and not over_kafka:
        yield (
            "output_mode: update needs transport: kafka, because Spark's Python data sources, which the queue uses, "
            "support only append"
        )
    if over_kafka and not options.stamp:
        yield "stamp has no effect over Kafka, where the broker stamps every record; remove stamp"
    if options.mode == "real-time":
        yield from _real_time(options, conditions)
    if not options.pipeline:
        yield from too_fine(conditions)
        if options.variant == "panes":
            yield from _panes(conditions)


def _streams(conditions: Conditions) -> tuple[Stream, ...]:
    """The streams of the workload; none if it is unknown."""
    workload = workloads().get(conditions.workload)
    return workload.streams(_params(workload, conditions)) if workload else ()


def _output(conditions: Conditions) -> OutputContract | None:
    """What the workload outputs; None if it is unknown."""
    workload = workloads().get(conditions.workload)
    return workload.output(_params(workload, conditions)) if workload else None


def _params(workload: Workload[Any], conditions: Conditions) -> Params:
    """The parameters, or those of the first value of a parameter that is searched."""
    params: Params = workload.params.from_resolved(conditions.params[0] if conditions.params else {})
    return params


def _panes(conditions: Conditions) -> Iterator[str]:
    """Panes of one slide each are put together to windows, so the slide must divide the window."""
    if conditions.ranged in ("window", "slide"):
        yield (
            "variant: panes needs a slide that divides the window, but find.between searches every "
            f"{conditions.ranged} of a range. Use find.values with values that fit, or set variant: naive"
        )
        return
    for params in conditions.params:
        window, slide = params.get("window", 0), params.get("slide") or 0
        if slide and window % slide:
            yield (
                f"variant: panes needs a slide that divides the window, but {format_duration(slide)} does not divide "
                f"{format_duration(window)}. Change workload.slide, or set variant: naive"
            )


def _real_time(options: SparkOptions, conditions: Conditions) -> Iterator[str]:
    if conditions.transport.name != "kafka":
        yield "mode: real-time reads only from Kafka; set transport: kafka or mode: micro-batch"
    if options.output_mode != "update":
        yield (
            "mode: real-time emits every change immediately; set output_mode: update (append waits for the end of "
            "a window)"
        )
    if options.trigger < SHORTEST:
        yield (
            f"batches of mode: real-time last at least {format_duration(SHORTEST)}; set trigger: 5s or more (outputs "
            "do not wait for the end of a batch)"
        )
    if options.state_store != "rocksdb":
        yield "mode: real-time needs RocksDB, even for jobs without state; set state_store: rocksdb"
    if options.max_batch:
        yield (
            "max_batch has no effect with mode: real-time, which processes each event when it arrives; remove max_batch"
        )
    streams = _streams(conditions)
    if not options.pipeline and len(streams) > 1:
        yield (
            f"mode: real-time cannot join streams, and {conditions.workload} has {len(streams)}; set mode: micro-batch"
        )
    yield from _too_few_slots(options, conditions)


def _too_few_slots(options: SparkOptions, conditions: Conditions) -> Iterator[str]:
    """All stages of a real-time query run at once, so every partition of each needs a slot of its own."""
    output = _output(conditions)
    partitions = conditions.partitions or options.cores
    # of a function of the user's it is not known whether it shuffles: Spark says so when it starts
    straight = bool(options.pipeline) or (output is not None and output.one_output_per_event)
    shuffled = 0 if straight else shuffle_partitions(options)
    if slots(options) < partitions + shuffled:
        parts = f"{partitions} for the partitions of the stream"
        parts += f" and {shuffled} for those of the shuffle" if shuffled else ""
        yield (
            f"mode: real-time needs {partitions + shuffled} slots, {parts}, but has {slots(options)}; "
            f"set slots: {partitions + shuffled} (more than cores is allowed), or use fewer partitions"
        )
