"""Spark as the rest sees it: it describes itself and its process. Imports nothing of pyspark."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from streamgauge.engines.contract import (
    Conditions,
    Deployment,
    Endpoints,
    Failure,
    Ground,
    Promise,
    Standing,
    Warming,
    Watermark,
)
from streamgauge.engines.spark import constraints, user_code
from streamgauge.engines.spark.error_source import out_of_memory
from streamgauge.engines.spark.explain import BATCH_LOG, explain, micro_batches, watermark
from streamgauge.engines.spark.options import QueryOrder, SessionOrder, SparkOptions
from streamgauge.engines.spark.session import CONNECTOR, connector, query_order, session_child
from streamgauge.engines.spark.settings import session_settings, shuffle_partitions, slots
from streamgauge.install.jars import Wanted
from streamgauge.install.java import java_problem
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.options import Options
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.control import Line, LineError
from streamgauge.processes.spec import LaunchError, Running, Starts

_RUN, _END = 180.0, 60.0
_LOG, _SAID, _TRACE = 40, 3, "Traceback (most recent call last)"
"""Lines of the log that are kept of a session which is lost, and those before a trace that are part of the reason."""
_ERROR = re.compile(r"(Error|Exception|Caused by|Unrecognized|Invalid|java\.\S+(Error|Exception))\b", re.IGNORECASE)
"""How a line begins with which Java or spark-submit says why it ends; hundreds of lines on its usage may follow."""
_TRIES = 2
"""How often Spark tries a task in local mode; its own default there is once."""
_LEAST_WARM = 45 * SECOND
"""Java's compilers are busiest between the tenth and the fortieth second: what an event costs rests there, at a rate
that is little more than half of what comes after."""
_QUICK = SECOND
"""Longest micro-batch of a job that keeps up, where the trigger does not say."""


class SparkEngine:
    """The engine: options, a session that can serve many trials, and one query for each of them."""

    name = "spark"
    summary = "Apache Spark Structured Streaming through PySpark, in local mode on dedicated cores"
    options: type[Options] = SparkOptions
    workloads: frozenset[str] | None = frozenset({"windowed-aggregation", "ingest"})
    transports: frozenset[str] = frozenset({"queue", "kafka"})

    def check(self, options: dict[str, Any]) -> Sequence[str]:
        """What can be told before any minute is spent."""
        o = SparkOptions.from_resolved(options)
        problems = [user_code.problem(o.pipeline, "pipeline") if o.pipeline else ""]
        problems.append(user_code.problem(o.reference, "reference") if o.reference else "")
        if o.reference and not o.pipeline:
            problems.append(
                "reference has an effect only with pipeline; set pipeline to your function, or remove reference"
            )
        if o.keys and not (o.reference and o.output_mode == "update"):
            problems.append("keys has an effect only with reference and output_mode: update; remove it")
        if _version() is None:
            problems.append("PySpark is not installed: pip install 'streamgauge[spark]'")
        problems.append(java_problem())
        return [problem for problem in problems if problem]

    def suits(self, options: dict[str, Any], conditions: Conditions) -> Sequence[str]:
        """What it cannot do over this transport, with so many partitions."""
        return [*constraints.problems(SparkOptions.from_resolved(options), conditions)]

    def jars(self, options: dict[str, Any], transport: str) -> frozenset[Wanted]:
        """Spark's connector to Kafka, unless the user names other jars."""
        named = "spark.jars" in SparkOptions.from_resolved(options).settings
        return frozenset({CONNECTOR}) if transport == "kafka" and not named else frozenset()

    def describe(self, options: dict[str, Any]) -> EngineFacts:
        """Version and settings, for the manifest."""
        return EngineFacts(self.name, _version() or "", options=options)

    def trigger(self, options: dict[str, Any]) -> int:
        """Nanoseconds between two micro-batches at most while it keeps up."""
        return max(int(SparkOptions.from_resolved(options).trigger), _QUICK)

    def continuous(self, options: dict[str, Any]) -> bool:
        """Real-time mode takes events as they come."""
        return SparkOptions.from_resolved(options).mode == "real-time"

    def promise(self, options: dict[str, Any]) -> Promise:
        """The workload's own answer, the user's, or none."""
        o = SparkOptions.from_resolved(options)
        expected = user_code.load_reference(o.reference) if o.reference else None
        return Promise(bool(o.pipeline), expected, last_row_wins=o.output_mode == "update", keys=tuple(o.keys))

    def appends(self, options: dict[str, Any]) -> bool:
        """Whether a window of the workload is put out once."""
        o = SparkOptions.from_resolved(options)
        return o.output_mode == "append" and not o.pipeline

    def warming(self, options: dict[str, Any]) -> Warming:
        """How a new session is warmed up, and whether it then serves many trials."""
        o = SparkOptions.from_resolved(options)
        # micro-batches without a pause: the code that plans one is compiled after hundreds of them, not after minutes
        options = {"trigger": 0} if o.mode == "micro-batch" else {}
        return Warming(o.warm_load, int(o.warm_limit), o.isolation == "shared", options, least=_LEAST_WARM)

    def stand(self, options: dict[str, Any], ground: Ground, starts: Starts) -> "SparkSession":
        """Start a session in a folder of the run; it is ready when Spark is."""
        return SparkSession(SparkOptions.from_resolved(options), ground, starts)

    @contextmanager
    def deploy(self, trial: Trial, endpoints: Endpoints, starts: Starts) -> Iterator[Deployment]:
        """A session for this trial alone, cold as it is."""
        ground = Ground(endpoints.folder, endpoints.cores, cache=endpoints.cache)
        session = self.stand(trial.options, ground, starts)
        try:
            with session.serve(trial, endpoints) as deployment:
                yield deployment
        finally:
            session.stop()


class SparkSession(Standing):
    """The process of a session, seen from outside."""

    def __init__(self, options: SparkOptions, ground: Ground, starts: Starts) -> None:
        self._options, self._folder, self._runtime = options, ground.folder.absolute(), starts.runtime
        token, socket = secrets.token_urlsafe(32), starts.runtime / f"spark-{secrets.token_hex(3)}.sock"
        order = SessionOrder(
            socket=socket,
            token=token,
            folder=self._folder,
            settings=session_settings(options, self._folder, starts.runtime, connector(ground.cache)),
            master=f"local[{slots(options)},{_TRIES}]",
        )
        self.cores = ground.cores[: options.cores]
        try:
            self._running = starts.start(session_child(order, ground.boot or self.cores), self._folder)
        except LaunchError as error:
            raise _explained(error, options) from error
        try:
            self._line = Line(socket, token)
            self._said = self._line.ask("describe", _END)
        except LineError as error:
            self._running.stop()
            raise self._lost(error) from error
        self._served = 0
        self._left: tuple[str, ...] = ()

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running.alive()

    def processes(self) -> tuple[Running, ...]:
        """Its one process; the JVM and the Python workers are below it."""
        return (self._running,)

    def left(self) -> tuple[str, ...]:
        """Queries and jobs that the last trial left running."""
        return self._left

    def serve(self, trial: Trial, endpoints: Endpoints, epoch: int = 0) -> AbstractContextManager[Deployment]:
        """Run the trial's query; yields once it consumes. A query that was killed goes on with the next epoch."""
        return self._serve(query_order(trial, endpoints, self._runtime, epoch), trial.options["settings"])

    @contextmanager
    def _serve(self, order: QueryOrder, settings: Mapping[str, str]) -> Iterator[Deployment]:
        self._served += 1
        try:
            answer = self._line.ask("run", _RUN, order=order.model_dump(mode="json"))
        except LineError as error:
            raise self._lost(error) from error
        columns = tuple((str(name), str(kind)) for name, kind in answer.get("outputs") or ())
        queue = QUEUE_MEANING[order.mode] if order.ends.kafka is not None else ""
        facts = replace(self.facts(), outputs=columns or None, queue=queue)
        deployment = SparkDeployment(self, self._running, self._line, order, facts)
        deployment.query = str(answer.get("query", ""))
        if "error" in answer:
            sentence = _naming(answer["error"], settings, "")
            deployment.complain(sentence, answer["trace"], users=answer["users"])
        try:
            yield deployment
        finally:
            deployment.end()

    def _lost(self, error: LineError) -> LaunchError:
        """The session's process is gone, or does not answer."""
        code = self._running.exit_code()
        ended = "does not respond" if code is None else f"ended with exit code {code}"
        return _explained(LaunchError(f"Spark's process {ended}: {error}", self._running.tail(_LOG)), self._options)

    def end_query(self) -> None:
        """Stop the query and clean up after it."""
        with suppress(LineError):  # a session that is gone has nothing to clean up
            self._left = tuple(self._line.ask("end", _END)["left"])

    def batch(self, trial: Trial, endpoints: Endpoints) -> float:
        """Seconds that the trial's pipeline takes over all that is in the queue, in batch."""
        order = query_order(trial, endpoints, self._runtime)
        return float(self._line.ask("batch", _RUN, order=order.model_dump(mode="json"))["seconds"])

    def facts(self) -> EngineFacts:
        """What it reports about itself, for the manifest."""
        o = self._options
        how = "one session for all trials" if o.isolation == "shared" else "a session for each trial"
        settings = {name: self._said[name] for name in ("java", "python", "settings")} | {
            "cores": list(self.cores),
            "slots": slots(o),
            "profile": o.profile,
            "variant": "your own function" if o.pipeline else o.variant,
            "pipeline": o.pipeline,
            "state_store": o.state_store,
            "shuffle_partitions": shuffle_partitions(o),
            "mode": o.mode,
            "output_mode": o.output_mode,
            "trigger": format_duration(o.trigger) if o.trigger else "as soon as one has ended",
            "session": f"{how}, a separate query for each trial; this is trial {self._served} of the session",
        }
        return EngineFacts("spark", str(self._said["version"]), settings=settings)

    def stop(self) -> None:
        """End the process, and the JVM and the workers with it."""
        self._line.close()
        self._running.stop()


QUEUE_MEANING = {
    "micro-batch": "published − end offset of the running micro-batch",
    "real-time": "published − position last reported",
}
"""What a queue over Kafka is, for the report."""


class SparkDeployment:
    """The query of one trial while it runs."""

    def __init__(
        self, session: SparkSession, running: Running, line: Line, order: QueryOrder, facts: EngineFacts
    ) -> None:
        self._session, self._running, self._line = session, running, line
        self._folder, self._facts = order.folder, facts
        self._trigger = order.trigger_ns if order.mode == "micro-batch" else 0
        self.query = ""
        """Spark's own number of this start of the query."""
        self._failure: Failure | None = None
        self._over = False

    def complain(self, sentence: str, trace: Sequence[str], *, users: bool) -> None:
        """The query is over, and this is why."""
        self._failure = Failure(sentence, tuple(trace), users)

    def alive(self) -> bool:
        """Whether the process runs and the query with it."""
        if self._failure is None and self._running.alive():
            try:
                for told in self._line.told():
                    if told.get("query") == self.query:  # not of the one before, whose queue went away under it
                        self.complain(told["ended"], told["trace"], users=told["users"])
            except LineError:
                return False
        return self._failure is None and self._running.alive()

    def failure(self) -> Failure | None:
        """Why the query ended, if it did by itself."""
        if self._failure is None and not self._running.alive():
            starved = out_of_memory(self._running.tail(200))
            return Failure(starved) if starved else None
        return self._failure

    def processes(self) -> tuple[Running, ...]:
        """The session's process."""
        return (self._running,)

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """Spark's own numbers of the judged stretch: an explanation."""
        parts = explain(self._folder, since_ns, until_ns, max(1, len(self._session.cores)))
        return ProbeResult(parts, micro_batches(self._folder, since_ns, until_ns, self._trigger))

    def watermark(self) -> Watermark | None:
        """The watermark of the last finished micro-batch; None if the query has none."""
        return watermark(self._folder / BATCH_LOG)

    def describe(self) -> EngineFacts:
        """Versions and effective settings, for the manifest."""
        return self._facts

    def end(self) -> None:
        """Stop the query, once; the session stays."""
        if not self._over:
            self._over = True
            self._session.end_query()


def _explained(error: LaunchError, options: SparkOptions) -> LaunchError:
    """The same error with what Java said before the trace, and with the settings that the log names."""
    trace = next((n for n, line in enumerate(error.log) if line.startswith(_TRACE)), 0)
    said = [line.strip() for line in error.log[:trace] if line.strip() and not line.startswith("WARNING: ")]
    errors = [line for line in said if _ERROR.match(line)]
    why = out_of_memory(error.log) or (errors[0] if errors else " / ".join(said[-_SAID:]))
    sentence = f"{error.sentence}: {why}" if why else error.sentence
    return LaunchError(_naming(sentence, options.settings, "\n".join(error.log)), error.log)


def _naming(sentence: str, settings: Mapping[str, str], text: str) -> str:
    """A sentence with the user's settings that it or the text beside it names."""
    named = [key for key in settings if key in sentence or key in text]
    return f"{sentence}; correct engine.settings: {', '.join(named)}" if named else sentence


def _version() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


spark = SparkEngine()
