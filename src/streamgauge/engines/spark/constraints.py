"""What Spark does not support: variants, real-time mode, update mode and panes have conditions that are known. Pure."""

from collections.abc import Iterator

from streamgauge.engines.contract import Situation
from streamgauge.engines.spark.jobs.table import (
    CONNECTIONS,
    emits_early,
    job_of,
    supports_updates,
    variants,
    with_updates,
)
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.settings import shuffle_partitions, slots
from streamgauge.engines.toolkit import too_fine
from streamgauge.model.units import SECOND, format_duration
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import STREAM
from streamgauge.workloads.parameters import Sliding
from streamgauge.workloads.registry import workloads

SHORTEST = 5 * SECOND
"""The shortest batch of real-time mode that Spark accepts."""
_MAX_NAME = 60


def problems(options: SparkOptions, situation: Situation[SparkOptions]) -> Iterator[str]:
    """Each a sentence with its fix."""
    transport = transports()[situation.transport]
    if options.output_mode == "update" and not supports_updates(transport.name):
        yield (
            f"output_mode: update needs transport: {with_updates()}, because Spark's Python data sources, which the "
            "queue uses, support only append"
        )
    job = None if options.pipeline or options.mode == "real-time" else job_of(situation.workload, options.variant)
    if options.output_mode == "update" and job and job.joins and _joining(situation):
        yield f"{situation.workload} joins streams, which Spark supports only with output_mode: append"
    if transport.broker and not options.stamp:
        yield f"stamp has no effect over {transport.title}, where the broker stamps every record; remove stamp"
    if options.output_mode == "update" and not options.pipeline and emits_early(options.variant):
        yield (
            f"variant: {options.variant} joins two streams, which Spark supports only with output_mode: append; set "
            "it, or choose another variant"
        )
    if options.mode == "real-time":
        yield from _real_time(options, situation)
    yield from _variant(options, situation)
    if not options.pipeline:
        yield from too_fine(situation)
        if options.variant == "panes":
            yield from _panes(situation)


def _variant(options: SparkOptions, situation: Situation[SparkOptions]) -> Iterator[str]:
    """The variant must be one of the workload and run over the transport. A user's own function has no variants."""
    name = "" if options.pipeline else situation.workload
    known, whose = variants(name), f"the workload {name}" if name else "any workload"
    if not known:
        return  # Spark does not implement the workload, which another check reports
    job = job_of(name, options.variant)
    if job is None and options.variant not in ("", *known):
        written = options.variant[:_MAX_NAME]
        yield (
            f"variant: {written!r} is not a variant of {whose}; set variant: {' or '.join(known)}, or remove it for "
            f"{known[0]}"
        )
    elif job is not None and situation.transport not in job.transports:
        others = [each for each in known if (other := job_of(name, each)) and situation.transport in other.transports]
        yield (
            f"variant: {job.variant} of {whose} needs transport: {' or '.join(sorted(job.transports))}; set it"
            + (f", or set variant: {' or '.join(others)}" if others else "")
        )
    elif job is not None and job.chained and situation.ranged in ("window", "slide"):
        others = [each for each in known if (other := job_of(name, each)) and not other.chained]
        yield (
            f"variant: {job.variant} needs windows that fit to its partial results, but find.between searches every "
            f"{situation.ranged} of a range. Use find.values with values that fit"
            + (f", or set variant: {' or '.join(others)}" if others else "")
        )
    elif job is not None and job.chained and options.output_mode == "update":
        others = [each for each in known if (other := job_of(name, each)) and not other.chained]
        yield (
            f"variant: {job.variant} of {whose} has several operators with state, which Spark supports only with "
            "output_mode: append; set it" + (f", or set variant: {' or '.join(others)}" if others else "")
        )


def _joining(situation: Situation[SparkOptions]) -> str:
    """The workload, if its outputs need the events of several streams; nothing if each event is an output."""
    known = workloads().get(situation.workload)
    if known is None:
        return ""
    joins = (len(known.streams(each)) > 1 and STREAM not in known.output(each).identity for each in situation.params)
    return known.name if any(joins) else ""


def _panes(situation: Situation[SparkOptions]) -> Iterator[str]:
    """Panes of one slide each are combined to windows, so the slide must divide the window."""
    if situation.ranged in ("window", "slide"):
        return  # refused for every variant that combines partial results
    for params in situation.params:
        if isinstance(params, Sliding) and params.window % params.period:
            yield (
                f"variant: panes needs a slide that divides the window, but {format_duration(params.period)} does not "
                f"divide {format_duration(params.window)}. Change workload.slide, or set variant: naive"
            )


def _real_time(options: SparkOptions, situation: Situation[SparkOptions]) -> Iterator[str]:
    if not supports_updates(situation.transport):
        titles = " or ".join(transports()[name].title for name, c in sorted(CONNECTIONS.items()) if c.updates)
        yield f"mode: real-time reads only from {titles}; set transport: {with_updates()} or mode: micro-batch"
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
    yield from _of_workload(options, situation)


def _of_workload(options: SparkOptions, situation: Situation[SparkOptions]) -> Iterator[str]:
    """All stages of a real-time query run at the same time, so every partition of each needs a separate slot."""
    known, params = workloads().get(situation.workload), next(iter(situation.params), None)
    partitions = situation.partitions or options.cores
    # of a user's function it is not known whether it shuffles: Spark reports it when it starts
    shuffles = False
    streams = 1
    if known is not None and params is not None and not options.pipeline:
        streams = max(1, len(known.streams(params)))
        if _joining(situation):
            yield f"mode: real-time cannot join streams, and {known.name} has {streams}; set mode: micro-batch"
            return
        shuffles = known.output(params).window_column is not None
    partitions *= streams
    shuffled = shuffle_partitions(options) if shuffles else 0
    if slots(options) < partitions + shuffled:
        parts = f"{partitions} for the partitions of the stream{'s' if streams > 1 else ''}"
        parts += f" and {shuffled} for those of the shuffle" if shuffled else ""
        yield (
            f"mode: real-time needs {partitions + shuffled} slots, {parts}, but has {slots(options)}; "
            f"set slots: {partitions + shuffled} (more than cores is allowed), or use fewer partitions"
        )
