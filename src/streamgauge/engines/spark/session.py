"""Specifications for the process of a session: its start, and the query of a trial."""

import sys
from collections.abc import Sequence
from pathlib import Path

from streamgauge.engines.contract import JobRun
from streamgauge.engines.spark.jobs.table import CUSTOM, job_of
from streamgauge.engines.spark.options import QuerySpec, SessionSpec, SourceAndSink, SparkOptions, StreamSpec
from streamgauge.engines.spark.settings import TUNED_CONSUMER, query_settings, temporary
from streamgauge.model.streams import MEAN_PUBLISHED
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import LineReady, ProcessSpec

_START = 120 * SECOND


def session_process(spec: SessionSpec, cores: tuple[int, ...]) -> ProcessSpec:
    """The process of a session: all that it writes goes into its folder."""
    return ProcessSpec(
        name="spark",
        argv=(sys.executable, "-m", "streamgauge.engines.spark.session_process"),
        env={
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(temporary(spec.folder)),
            "PYTHONUNBUFFERED": "1",
        },
        cores=cores,
        ready=LineReady(),
        deadline=_START,
        stop_timeout=5 * SECOND,
        secret=spec.model_dump_json(),
    )


def query_spec(run: JobRun[SparkOptions], options: SparkOptions, runtime: Path) -> QuerySpec:
    """The specification of a trial for the session."""
    name = f"{run.trial.workload}-{run.trial.number}"
    ends = SourceAndSink(
        transport=run.endpoints.transport,
        endpoints=run.endpoints.wire(),
        streams=_streams(run, numbered=not options.pipeline),
        query=name,
        stamp=options.stamp,
        published=not options.pipeline and MEAN_PUBLISHED in dict(run.output.schema),
        partitions=run.endpoints.partitions,
        max_batch=options.max_batch,
        restart=run.restart,
        consumer=TUNED_CONSUMER if options.profile == "tuned" else {},
    )
    near = runtime if options.profile == "tuned" else run.folder.absolute()
    return QuerySpec(
        ends=ends,
        workload=run.trial.workload,
        params=run.trial.params,
        variant=_variant(run.trial.workload, options),
        pipeline=options.pipeline,
        output_mode=options.output_mode,
        mode=options.mode,
        trigger_ns=int(options.trigger),
        settings=query_settings(options),
        checkpoint=near / f"checkpoint-{name}",
        folder=run.folder.absolute(),
    )


def _variant(workload: str, options: SparkOptions) -> str:
    """The name of the variant that runs. That there is one was checked before the trial."""
    job = None if options.pipeline else job_of(workload, options.variant)
    return job.variant if job else CUSTOM


def _streams(run: JobRun[SparkOptions], *, numbered: bool) -> tuple[StreamSpec, ...]:
    """The streams as the query reads them. A user's function gets only the columns of the events."""
    return tuple(
        StreamSpec(name=stream.name, columns=_columns(stream.schema), numbered=numbered and stream.numbered)
        for stream in run.streams
    )


def _columns(schema: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, kind) for name, kind in schema)
