"""The process of the Spark engine: one session, which serves trials one after the other.

Run as ``python -m streamgauge.engines.spark.session_process``. Its specification comes through standard input; trials
come over its control channel. It has its own clock and threads because it stands for a foreign system.
"""

import os
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamgauge.engines.spark.batch_log import GONE, Recorder, Sampler
from streamgauge.engines.spark.connect.kafka import CannotTravel, Columns, columns_of, kafka_events, kafka_writer
from streamgauge.engines.spark.connect.positions import Listener, Positions
from streamgauge.engines.spark.connect.queue import collector_sink, queue_source
from streamgauge.engines.spark.error_source import Blame, blame
from streamgauge.engines.spark.jobs.pipelines import PIPELINES
from streamgauge.engines.spark.options import QueryOrder, SessionOrder
from streamgauge.engines.spark.output_columns import unfit
from streamgauge.engines.spark.settings import temporary
from streamgauge.engines.spark.user_code import load, module_of
from streamgauge.processes.control import Json, LineServer
from streamgauge.transports.kafka.cluster import KafkaEnds

_GLANCE = 0.02
_LOG = "ERROR"
_READY = 120.0


class Session:
    """The Spark session and the query that runs in it, if any."""

    def __init__(self, order: SessionOrder) -> None:
        temporary(order.folder).mkdir(parents=True, exist_ok=True)
        builder = SparkSession.builder.master(order.master)
        for key, value in order.settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel(_LOG)
        self.recorder = Recorder()
        self.sampler = Sampler(self.spark, self.recorder)
        self.listener: Listener | None = None
        self.query: StreamingQuery | None = None
        self.real_time = False
        self.columns: Columns = ()
        self.pipeline = ""
        self.checkpoint: Path | None = None
        self.line = LineServer(order.socket, order.token, threading.Lock())

    def answer(self, action: str, body: Json) -> Json:
        """An order of the controller."""
        if action == "run":
            return self.run(QueryOrder.model_validate(body["order"]))
        if action == "end":
            return self.end()
        if action == "batch":
            return self.batch(QueryOrder.model_validate(body["order"]))
        if action == "describe":
            return self.describe()
        raise KeyError(f"a Spark session knows no order {action}")

    def run(self, order: QueryOrder) -> Json:
        """Start the query of a trial; the answer comes when it consumes, or says whose fault it is that it cannot."""
        try:
            # the query is started beside the line, so that it can be told of its end at any time
            self.query = self._start(order)
            self.recorder.follow(self.query)
            self._await_consuming(self.query)
        except (PySparkException, BlamedError) as error:
            found = (
                error.blame if isinstance(error, BlamedError) else blame(error, traceback.format_exc(), self.pipeline)
            )
            self.query = None
            self._hang_up()
            return {"error": found.sentence, "trace": list(found.trace), "users": found.users}
        number = str(self.query.runId)
        threading.Thread(target=self._await_end, args=(self.query, number), name="end", daemon=True).start()
        return {"query": number, "outputs": self.columns}

    def _start(self, order: QueryOrder) -> StreamingQuery:
        self.spark.sparkContext.setLogLevel(_LOG)
        self.pipeline, self.real_time, self.columns = order.pipeline, order.mode == "real-time", ()
        writer = self._over_kafka(order) if order.ends.kafka else self._over_the_queue(order)
        order.checkpoint.mkdir(parents=True, exist_ok=True)
        self.checkpoint = order.checkpoint
        self.recorder.open(order.folder)
        self.sampler.start(order.folder)
        # keywords by name: the types of PySpark know nothing of real-time mode yet
        trigger: dict[str, Any] = {"realTime" if self.real_time else "processingTime": _interval(order.trigger_ns)}
        writer = writer.trigger(**trigger)
        writer = writer.outputMode(order.output_mode).queryName(order.ends.query)
        return writer.option("checkpointLocation", str(order.checkpoint)).start()

    def _over_the_queue(self, order: QueryOrder) -> DataStreamWriter:
        source, sink = self._prepare(order), collector_sink(order.ends)
        self.spark.dataSource.register(sink)
        outputs = self._outputs(order, self.spark.readStream.format(source).load())
        return outputs.writeStream.format(sink.name())

    def _over_kafka(self, order: QueryOrder) -> DataStreamWriter:
        assert order.ends.kafka is not None
        self._set(order)
        to = KafkaEnds.read(order.ends.kafka)
        try:
            outputs = self._outputs(order, kafka_events(self.spark, order.ends, to))
            self.columns = columns_of(outputs, to.format)
        except CannotTravel as error:
            raise BlamedError(Blame(str(error), (), users=bool(order.pipeline))) from error
        self.listener = self.listener or Listener(self.spark)
        trigger, checkpoint = (0, None) if self.real_time else (order.trigger_ns, order.checkpoint)
        self.listener.positions = Positions(order.ends, to, trigger, checkpoint)
        return kafka_writer(outputs, to)

    def _hang_up(self) -> None:
        """Tell the last position."""
        if self.listener is not None and self.listener.positions is not None:
            self.listener.positions.close()
            self.listener.positions = None

    def _set(self, order: QueryOrder) -> None:
        """Set what a query takes when it starts."""
        for key, value in order.settings.items():
            self.spark.conf.set(key, value)

    def _prepare(self, order: QueryOrder) -> str:
        """Set what a query takes when it starts, and register its source; the source's name."""
        self._set(order)
        source = queue_source(order.ends)
        self.spark.dataSource.register(source)
        return source.name()

    def batch(self, order: QueryOrder) -> Json:
        """The same pipeline over all that is there, in batch and to nowhere; the seconds that it took."""
        if order.ends.kafka:
            self._set(order)
            events = kafka_events(self.spark, order.ends, KafkaEnds.read(order.ends.kafka), stream=False)
        else:
            events = self.spark.read.format(self._prepare(order)).load()
        outputs = self._outputs(order, events)
        begun = time.monotonic()
        outputs.write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - begun}

    def _outputs(self, order: QueryOrder, events: DataFrame) -> DataFrame:
        if not order.pipeline:
            return PIPELINES[order.workload, order.variant](events, order.params)
        try:
            function = load(order.pipeline)
            self._open_to_workers(order.pipeline)
            outputs = function(events)
        # The user's code may fail in any way, also by sys.exit, and must be shown as theirs.
        except (Exception, SystemExit) as error:
            raise BlamedError(blame(error, traceback.format_exc(), order.pipeline)) from error
        if not isinstance(outputs, DataFrame):
            sentence = f"{order.pipeline} returned {type(outputs).__name__}; it must return a streaming DataFrame"
            raise BlamedError(Blame(sentence, (), users=True))
        if problem := unfit(outputs.schema):
            raise BlamedError(Blame(f"your function {order.pipeline} {problem}", (), users=True))
        return outputs

    def _open_to_workers(self, pipeline: str) -> None:
        """Let Spark's Python workers have what the user's file has: itself by value, modules beside it by import."""
        module = module_of(pipeline)
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        self.spark.sparkContext.environment["PYTHONPATH"] = str(Path(str(module.__file__)).parent)

    def _await_consuming(self, query: StreamingQuery) -> None:
        """Until it has looked into the queue: the load must not begin before."""
        ends = time.monotonic() + _READY
        while time.monotonic() < ends:
            failure = query.exception()
            if failure is not None:
                raise failure
            # the first micro-batch, an empty one, is done: everything is planned and compiled
            if query.lastProgress or str(query.status["message"]).startswith("Waiting"):
                return
            if self.real_time and self._reads():
                return
            time.sleep(_GLANCE)
        raise BlamedError(Blame(f"the query did not begin to read within {_READY:g} s", (), users=False))

    def _reads(self) -> bool:
        """Whether all tasks of a real-time query run: they read until the end of their batch."""
        tracker = self.spark.sparkContext.statusTracker()
        stages = [s for job in tracker.getActiveJobsIds() if (j := tracker.getJobInfo(job)) for s in j.stageIds]
        known = [stage for number in stages if (stage := tracker.getStageInfo(number))]
        return bool(known) and all(stage.numActiveTasks == stage.numTasks for stage in known)

    def _await_end(self, query: StreamingQuery, number: str) -> None:
        """Tell of a query that ends by itself, and whose fault it was."""
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            found = blame(error, str(error), self.pipeline)
        except GONE as error:
            found = Blame(f"Spark's JVM has ended: {error}", (), users=False)
        else:
            found = Blame("the query ended unexpectedly", (), users=False)
        if self.query is query:
            told = {"ended": found.sentence, "trace": list(found.trace), "users": found.users}
            self.line.tell({"query": number, **told})

    def end(self) -> Json:
        """Stop the query of the trial and leave the session as clean as it was. What was not clean is said."""
        query, self.query = self.query, None
        left = list[str]()
        if query is not None:
            try:
                self._stop(query)
            except PySparkException as error:
                left.append(f"the query did not stop: {error}")
            except GONE:
                left.append("its JVM has ended")
        self._hang_up()
        self.sampler.stop()
        try:
            self.recorder.close()
            left += self._leftovers()
        except GONE:
            left.append("its JVM has ended")
        if self.checkpoint is not None:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        return {"left": [*dict.fromkeys(left)]}  # a JVM that is gone is found gone twice

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


class BlamedError(Exception):
    """Somebody is to blame: the user's code, or ours."""

    def __init__(self, found: Blame) -> None:
        super().__init__(found.sentence)
        self.blame = found


def _read_order() -> SessionOrder:
    text = b""
    while got := os.read(0, 1 << 16):
        text += got
    return SessionOrder.model_validate_json(text)


def main() -> None:
    """The process's table of contents."""
    order = _read_order()
    session = Session(order)
    os.write(1, b"ready\n")  # the launcher waits for this line
    session.line.serve(session.answer)
    session.end()
    session.spark.stop()
    shutil.rmtree(temporary(order.folder), ignore_errors=True)


if __name__ == "__main__":
    main()
