"""What the session's process is told: how it is started, and the order for the query of a trial."""

import sys
from pathlib import Path

from streamgauge.engines.contract import Endpoints
from streamgauge.engines.spark.options import Ends, QueryOrder, SessionOrder, SparkOptions
from streamgauge.engines.spark.settings import TUNED_KAFKA, query_settings, temporary
from streamgauge.install.jars import Wanted, pinned
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Child, LineReady
from streamgauge.workloads.contract import SEQUENCE
from streamgauge.workloads.parameters import Windowed
from streamgauge.workloads.registry import workloads

_START = 120 * SECOND
CONNECTOR: Wanted = "spark-kafka"
"""The set of jars with which Spark reads from Kafka and writes to it."""


def session_child(order: SessionOrder, cores: tuple[int, ...]) -> Child:
    """The session's process: all that it writes goes into its folder."""
    return Child(
        name="spark",
        argv=(sys.executable, "-m", "streamgauge.engines.spark.session_process"),
        env={
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(temporary(order.folder)),
            "PYTHONUNBUFFERED": "1",
        },
        cores=cores,
        ready=LineReady(),
        deadline=_START,
        grace=5 * SECOND,
        secret=order.model_dump_json(),
        folder=None,
    )


def connector(cache: Path | None) -> tuple[Path, ...]:
    """The jars of Spark's connector to Kafka; none if the run has no Kafka or the user names other jars."""
    if cache is None:
        return ()
    jars = pinned(CONNECTOR)
    return tuple(jars.folder(cache) / jar.name for jar in jars.jars)


def query_order(trial: Trial, endpoints: Endpoints, runtime: Path, epoch: int = 0) -> QueryOrder:
    """What the session is told of a trial."""
    o, workload = SparkOptions.from_resolved(trial.options), workloads()[trial.workload]
    params = workload.params.from_resolved(trial.params)
    if o.variant == "panes" and not o.pipeline and isinstance(params, Windowed) and params.window % params.period:
        raise ValueError("panes need a slide that divides the window: change one of them, or set variant: naive")
    stream, *_ = workload.streams(params)
    name = f"{trial.workload}-{trial.number}"
    ends = Ends(
        queues=endpoints.queues,
        outputs=endpoints.outputs,
        token=endpoints.token,
        stream=stream.name,
        columns=stream.schema,
        query=name,
        stamp=o.stamp,
        numbered=not o.pipeline and SEQUENCE in dict(workload.output(params).schema),
        partitions=endpoints.partitions,
        max_batch=o.max_batch,
        epoch=epoch,
        kafka=endpoints.kafka.wire() if endpoints.kafka else None,
        consumer=TUNED_KAFKA if o.profile == "tuned" else {},
    )
    near = runtime if o.profile == "tuned" else endpoints.folder.absolute()
    return QueryOrder(
        ends=ends,
        workload=trial.workload,
        params=trial.params,
        variant=o.variant,
        pipeline=o.pipeline,
        output_mode=o.output_mode,
        mode=o.mode,
        trigger_ns=int(o.trigger),
        settings=query_settings(o),
        checkpoint=near / f"checkpoint-{name}",
        folder=endpoints.folder.absolute(),
    )
