"""The process of the Spark engine: one session, which runs the queries of trials one after the other.

Run as ``python -m streamgauge.engines.spark.session_process``. Its specification comes through standard input; trials
come over its control channel. It has a clock and threads because it stands for a foreign system.
"""

import shutil
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamgauge.engines.spark.batch_log import JVM_GONE, BatchRecorder, JvmSampler
from streamgauge.engines.spark.connect.table import Columns, UnsupportedColumn, connect
from streamgauge.engines.spark.error_source import QueryFailure, explain_failure
from streamgauge.engines.spark.jobs import table
from streamgauge.engines.spark.options import QuerySpec, SessionSpec
from streamgauge.engines.spark.output_columns import unfit
from streamgauge.engines.spark.settings import temporary
from streamgauge.engines.spark.user_code import load_function, module_of
from streamgauge.processes.child import log, read_spec
from streamgauge.processes.control import ControlRefused, ControlServer, Json
from streamgauge.workloads.registry import workloads

_POLL_INTERVAL = 0.02
_LOG = "ERROR"
_READY = 120.0


class Session:
    """The Spark session and the query that runs in it, if any."""

    def __init__(self, spec: SessionSpec) -> None:
        temporary(spec.folder).mkdir(parents=True, exist_ok=True)
        builder = SparkSession.builder.master(spec.master)
        for key, value in spec.settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel(_LOG)
        self.recorder = BatchRecorder()
        self.sampler = JvmSampler(self.spark, self.recorder)
        self.connectors = dict[str, Any]()
        """What connects queries to a transport, by its name: some of it stays between queries."""
        self.connector: Any = None
        self.query: StreamingQuery | None = None
        self.real_time = False
        self.columns: Columns = ()
        self.pipeline = ""
        self.checkpoint: Path | None = None
        self.control = ControlServer(spec.control, spec.token)

    def handle(self, action: str, content: Json) -> Json:
        """A request of the controller."""
        if action == "run":
            return self.run(QuerySpec.model_validate(content["query"]))
        if action == "end":
            return self.end()
        if action == "batch":
            return self.batch(QuerySpec.model_validate(content["query"]))
        if action == "describe":
            return self.describe()
        raise ControlRefused(f"a Spark session has no action {action}")

    def run(self, spec: QuerySpec) -> Json:
        """Start the query of a trial; the response comes when it consumes, or has the reason why it cannot."""
        try:
            # the query runs beside the control channel, so that it can be ended at any time
            self.query = self._start_query(spec)
            self.recorder.follow(self.query)
            self._await_consuming(self.query)
        except (PySparkException, QueryFailed) as error:
            if isinstance(error, QueryFailed):
                found = error.failure
            else:
                found = explain_failure(error, traceback.format_exc(), self.pipeline)
            self.query = None
            self._stop_positions()
            return {"error": found.message, "trace": list(found.trace), "user_error": found.user_error}
        number = str(self.query.runId)
        threading.Thread(target=self._await_end, args=(self.query, number), name="end", daemon=True).start()
        return {"query": number, "outputs": self.columns}

    def _start_query(self, spec: QuerySpec) -> StreamingQuery:
        self.spark.sparkContext.setLogLevel(_LOG)
        self.pipeline, self.real_time, self.columns = spec.pipeline, spec.mode == "real-time", ()
        self._set(spec)
        self.connector = self._connector(spec.ends.transport)
        try:
            outputs = self._outputs(spec, self.connector.events(spec.ends, stream=True))
            writer: DataStreamWriter = self.connector.writer(outputs, spec)
            self.columns = self.connector.columns
        except UnsupportedColumn as error:
            raise QueryFailed(QueryFailure(str(error), (), user_error=bool(spec.pipeline))) from error
        spec.checkpoint.mkdir(parents=True, exist_ok=True)
        self.checkpoint = spec.checkpoint
        self.recorder.open(spec.folder)
        self.sampler.start(spec.folder)
        # keywords by name: the types of PySpark do not include real-time mode yet
        trigger: dict[str, Any] = {"realTime" if self.real_time else "processingTime": _interval(spec.trigger_ns)}
        writer = writer.trigger(**trigger)
        writer = writer.outputMode(spec.output_mode).queryName(spec.ends.query)
        return writer.option("checkpointLocation", str(spec.checkpoint)).start()

    def _connector(self, transport: str) -> Any:  # noqa: ANN401 - a SparkConnector
        """What connects this session to a transport."""
        if transport not in self.connectors:
            self.connectors[transport] = connect(transport, self.spark, self.control.notify)
        return self.connectors[transport]

    def _stop_positions(self) -> None:
        """Report no more positions."""
        if self.connector is not None:
            self.connector.stop()

    def _set(self, spec: QuerySpec) -> None:
        """Set what a query takes when it starts."""
        for key, value in spec.settings.items():
            self.spark.conf.set(key, value)

    def batch(self, spec: QuerySpec) -> Json:
        """The same pipeline over all events that are there, in batch and to nowhere; the seconds that it took."""
        self._set(spec)
        outputs = self._outputs(spec, self._connector(spec.ends.transport).events(spec.ends, stream=False))
        began = time.monotonic()
        outputs.write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - began}

    def _outputs(self, spec: QuerySpec, streams: dict[str, DataFrame]) -> DataFrame:
        if not spec.pipeline:
            known = table.job_of(spec.workload, spec.variant)
            assert known is not None, "checked before the trial"
            module, function = known.function.split(":")
            params = workloads()[spec.workload].params.from_resolved(spec.params)
            job = getattr(import_module(f"{table.__package__}.{module}"), function)
            built_in: DataFrame = job(streams, params)
            return built_in
        try:
            custom = load_function(spec.pipeline)
            self._open_to_workers(spec.pipeline)
            outputs = custom(*streams.values())
        # The user's code may fail in any way, even by sys.exit, and must be shown as an error of the user.
        except (Exception, SystemExit) as error:
            raise QueryFailed(explain_failure(error, traceback.format_exc(), spec.pipeline)) from error
        if not isinstance(outputs, DataFrame):
            sentence = f"{spec.pipeline} returned {type(outputs).__name__}; it must return a streaming DataFrame"
            raise QueryFailed(QueryFailure(sentence, (), user_error=True))
        if problem := unfit(outputs.schema):
            raise QueryFailed(QueryFailure(f"your function {spec.pipeline} {problem}", (), user_error=True))
        return outputs

    def _open_to_workers(self, pipeline: str) -> None:
        """Let Spark's Python workers have what the user's file has: itself by value, modules beside it by import."""
        module = module_of(pipeline)
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        self.spark.sparkContext.environment["PYTHONPATH"] = str(Path(str(module.__file__)).parent)

    def _await_consuming(self, query: StreamingQuery) -> None:
        """Until it has read from its source: the load must not begin before."""
        ends = time.monotonic() + _READY
        while time.monotonic() < ends:
            failure = query.exception()
            if failure is not None:
                raise failure
            # the first micro-batch, an empty one, is done: everything is planned and compiled
            if query.lastProgress or str(query.status["message"]).startswith("Waiting"):
                return
            if self.real_time and self._all_tasks_running():
                return
            time.sleep(_POLL_INTERVAL)
        raise QueryFailed(QueryFailure(f"the query did not begin to read within {_READY:g} s", (), user_error=False))

    def _all_tasks_running(self) -> bool:
        """Whether all tasks of a real-time query run: they read until the end of their batch."""
        tracker = self.spark.sparkContext.statusTracker()
        stages = [s for job in tracker.getActiveJobsIds() if (j := tracker.getJobInfo(job)) for s in j.stageIds]
        known = [stage for number in stages if (stage := tracker.getStageInfo(number))]
        return bool(known) and all(stage.numActiveTasks == stage.numTasks for stage in known)

    def _await_end(self, query: StreamingQuery, number: str) -> None:
        """Report a query that ends by itself, and why."""
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            found = explain_failure(error, str(error), self.pipeline)
        except JVM_GONE as error:
            found = QueryFailure(f"Spark's JVM has ended: {error}", (), user_error=False)
        else:
            found = QueryFailure("the query ended unexpectedly", (), user_error=False)
        if self.query is query:
            ended = {"ended": found.message, "trace": list(found.trace), "user_error": found.user_error}
            self.control.notify({"query": number, **ended})

    def end(self) -> Json:
        """Stop the query of the trial and leave the session as clean as it was. What was not clean is reported."""
        query, self.query = self.query, None
        left = list[str]()
        if query is not None:
            try:
                self._stop(query)
            except PySparkException as error:
                left.append(f"the query did not stop: {error}")
            except JVM_GONE:
                left.append("its JVM has ended")
        self._stop_positions()
        self.sampler.stop()
        try:
            self.recorder.close()
            left += self._leftovers()
        except JVM_GONE:
            left.append("its JVM has ended")
        if self.checkpoint is not None:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        return {"left": [*dict.fromkeys(left)]}  # a JVM that has ended is noticed twice

    def _stop(self, query: StreamingQuery) -> None:
        """Stop a query. One in real-time mode is interrupted in the middle of its tasks, and would log every one of
        them as an error, some after the end; the log is silent until the next query."""
        if self.real_time:
            self.spark.sparkContext.setLogLevel("OFF")
        query.stop()

    def _leftovers(self) -> list[str]:
        """Queries, jobs and state that the trial left in the session."""
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        jvm.java.lang.System.gc()
        left = [f"the query {query.name} still runs" for query in self.spark.streams.active]
        jobs = self.spark.sparkContext.statusTracker().getActiveJobsIds()
        return [*left, f"{len(jobs)} jobs still run"] if jobs else left

    def describe(self) -> Json:
        """Versions and effective settings."""
        jvm: Any = self.spark._jvm
        system = jvm.java.lang.System
        settings = dict(self.spark.sparkContext.getConf().getAll())
        return {
            "version": self.spark.version,
            "java": str(system.getProperty("java.version")),
            "python": sys.version.split()[0],
            "settings": {key: value for key, value in sorted(settings.items()) if key not in _VARIES},
        }


_VARIES = ("spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port")


def _interval(nanoseconds: int) -> str:
    return f"{nanoseconds // 1_000_000} milliseconds"


class QueryFailed(Exception):
    """A query cannot run: because of the user's code, or another reason."""

    def __init__(self, failure: QueryFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def main() -> None:
    """The process's table of contents."""
    spec = SessionSpec.model_validate_json(read_spec())
    session = Session(spec)
    log("ready")  # the launcher waits for this line
    session.control.serve(session.handle)
    session.end()
    session.spark.stop()
    shutil.rmtree(temporary(spec.folder), ignore_errors=True)


if __name__ == "__main__":
    main()
