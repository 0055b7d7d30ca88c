"""The engine Spark for the rest of streamgauge. Imports nothing of pyspark."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from streamgauge.engines.contract import (
    CustomJob,
    Deployment,
    DoesNotScale,
    Failure,
    JobRun,
    Layout,
    Options,
    Requirement,
    Situation,
    System,
    Traits,
    Watermark,
)
from streamgauge.engines.spark import constraints, requirements, user_code
from streamgauge.engines.spark.error_source import out_of_memory
from streamgauge.engines.spark.explain import BATCH_LOG, explain, micro_batches, watermark
from streamgauge.engines.spark.jobs.table import JOBS, emits_early
from streamgauge.engines.spark.options import QuerySpec, SessionSpec, SparkOptions
from streamgauge.engines.spark.session import query_spec, session_process
from streamgauge.engines.spark.settings import session_settings, shuffle_partitions, slots
from streamgauge.engines.toolkit import PositionLog
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.streams import Position
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.control import ControlClient, ControlError, ControlRefused, Json, new_token
from streamgauge.processes.spec import Host, LaunchError, RunningProcess

_RUN_TIMEOUT, _END_TIMEOUT = 180.0, 60.0
_LOG_LINES, _REASON_LINES, _TRACE = 40, 3, "Traceback (most recent call last)"
"""Lines of the log that are kept of a session which is lost, and those before a trace that are part of the reason."""
_ERROR = re.compile(r"(Error|Exception|Caused by|Unrecognized|Invalid|java\.\S+(Error|Exception))\b", re.IGNORECASE)
"""How a line begins with which Java or spark-submit gives its error; hundreds of lines on its usage may follow."""
_TRIES = 2
"""How often Spark tries a task in local mode; its own default there is once."""
_MIN_WARM_UP = 45 * SECOND
"""Java's compilers are busiest between the tenth and the fortieth second: what an event costs rests there, at a rate
that is little more than half of what comes after."""
_QUICK = SECOND
"""Longest micro-batch of a job that keeps up, if the trigger is 0."""


class SparkEngine:
    """The engine: options, a session that can serve many trials, and one query for each of them."""

    name = "spark"
    summary = "Apache Spark Structured Streaming through PySpark, in local mode on dedicated cores"
    options: type[Options] = SparkOptions
    jobs = JOBS

    def check(self, situation: Situation[SparkOptions]) -> Sequence[str]:
        """What can be found before the first trial."""
        o = situation.options
        problems = [user_code.find_problem(o.pipeline, "pipeline") if o.pipeline else ""]
        problems.append(user_code.find_problem(o.reference, "reference") if o.reference else "")
        if o.reference and not o.pipeline:
            problems.append(
                "reference has an effect only with pipeline; set pipeline to your function, or remove reference"
            )
        if o.keys and not (o.reference and o.output_mode == "update"):
            problems.append("keys has an effect only with reference and output_mode: update; remove it")
        return [*(problem for problem in problems if problem), *constraints.problems(o, situation)]

    def requirements(self, options: SparkOptions, transport: str) -> Sequence[Requirement]:
        """PySpark and Java, and the connector that a transport needs unless the user names other jars."""
        return requirements.of(options, transport)

    def layout(self, options: SparkOptions, instances: int) -> Layout:
        """One application in local mode."""
        if instances > 1:
            raise DoesNotScale("engine spark always runs as one instance in local mode; remove instances")
        return Layout(1, options.cores, options.memory)

    def traits(self, options: SparkOptions) -> Traits:
        """How it runs with this trigger, mode and isolation."""
        micro_batch = options.mode == "micro-batch"
        return Traits(
            batch_interval_ns=max(int(options.trigger), _QUICK),
            continuous=not micro_batch,
            updates=options.output_mode == "update",
            closes_windows=options.output_mode == "append" and not options.pipeline,
            emits_early=not options.pipeline and emits_early(options.variant),
            shared=options.isolation == "shared",
            warm_load=options.warm_load,
            warm_limit_ns=int(options.warm_limit),
            warm_min_ns=_MIN_WARM_UP,
            # micro-batches without a pause: the code that plans one is compiled after hundreds of them, not minutes
            warm_options={"trigger": 0} if micro_batch else {},
            custom=_custom(options),
            restarts=True,
        )

    @contextmanager
    def start(self, layout: Layout, options: SparkOptions, host: Host) -> Iterator[System]:
        """Start a session in the folder of the host; it is ready when Spark is."""
        session = SparkSystem(options, host)
        try:
            yield session
        finally:
            session.stop()


def _custom(options: SparkOptions) -> CustomJob | None:
    """The user's own function and its reference."""
    if not options.pipeline:
        return None
    reference = options.reference
    load = (lambda: user_code.load_reference(reference)) if reference else None
    return CustomJob(load, tuple(options.keys))


class SparkSystem:
    """The process of a session, seen from outside."""

    def __init__(self, options: SparkOptions, host: Host) -> None:
        self._options, self._runtime = options, host.runtime
        token, control = new_token(), host.runtime / f"spark-{secrets.token_hex(3)}.sock"
        folder = host.logs.absolute()
        spec = SessionSpec(
            control=control,
            token=token,
            folder=folder,
            settings=session_settings(
                options,
                folder,
                host.runtime,
                requirements.connector_jars(options, host.transport, host.cache),
            ),
            master=f"local[{slots(options)},{_TRIES}]",
        )
        self.cores = host.cores[: options.cores]
        try:
            self._running = host.start(session_process(spec, host.boot_cores or self.cores))
        except LaunchError as error:
            raise _explained(error, options) from error
        try:
            self._control = ControlClient(control, token)
            self._described = self._control.request("describe", _END_TIMEOUT)
        except (ControlError, ControlRefused) as error:
            self._running.stop()
            raise self._lost(error) from error
        self._served = 0
        self._left: tuple[str, ...] = ()

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running.alive()

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """Its one process; the JVM and the Python workers are below it."""
        return {"session": (self._running,)}

    def leftovers(self) -> Sequence[str]:
        """Queries and jobs that the last trial left running."""
        return self._left

    def deploy(self, run: JobRun[SparkOptions]) -> AbstractContextManager[Deployment]:
        """Run the query of a trial; yields once it consumes. A restart resumes from the checkpoint."""
        return self._deploy(query_spec(run, run.options, self._runtime), run.options.settings)

    @contextmanager
    def _deploy(self, spec: QuerySpec, settings: Mapping[str, str]) -> Iterator[Deployment]:
        self._served += 1
        try:
            self._control.notifications()  # positions of the query before must not count for this one
            response = self._control.request("run", _RUN_TIMEOUT, query=spec.model_dump(mode="json"))
        except (ControlError, ControlRefused) as error:
            raise self._lost(error) from error
        facts = self._facts(spec, response)
        deployment = SparkDeployment(self, self._running, self._control, spec, facts)
        deployment.query = str(response.get("query", ""))
        if "error" in response:
            sentence = _naming(response["error"], settings, "")
            deployment.fail(sentence, response["trace"], user_error=response["user_error"])
        try:
            yield deployment
        finally:
            deployment.end()

    def _lost(self, error: Exception) -> LaunchError:
        """The process of the session has ended, or does not respond."""
        code = self._running.exit_code()
        ended = "does not respond" if code is None else f"ended with exit code {code}"
        log = self._running.tail(_LOG_LINES)
        return _explained(LaunchError(f"Spark's process {ended}: {error}", log), self._options)

    def end_query(self) -> None:
        """Stop the query and clean up after it."""
        with suppress(ControlError):  # a session that has ended has nothing to clean up
            self._left = tuple(self._control.request("end", _END_TIMEOUT)["left"])

    def batch(self, run: JobRun[SparkOptions]) -> float:
        """Seconds that the pipeline of the trial takes over all events that are there, in batch."""
        spec = query_spec(run, run.options, self._runtime)
        return float(self._control.request("batch", _RUN_TIMEOUT, query=spec.model_dump(mode="json"))["seconds"])

    def _facts(self, spec: QuerySpec, response: Json) -> EngineFacts:
        """What Spark reports about itself."""
        o = self._options
        how = "one session for all trials" if o.isolation == "shared" else "a session for each trial"
        settings = {
            "java": self._described["java"],
            "python": self._described["python"],
            "settings": self._described["settings"],
            "cores": list(self.cores),
            "slots": slots(o),
            "profile": o.profile,
            "variant": "your own function" if o.pipeline else spec.variant,
            "pipeline": o.pipeline,
            "state_store": o.state_store,
            "shuffle_partitions": shuffle_partitions(o),
            "mode": o.mode,
            "output_mode": o.output_mode,
            "trigger": format_duration(o.trigger) if o.trigger else "as soon as one has ended",
            "session": f"{how}, a separate query for each trial; this is trial {self._served} of the session",
        }
        outputs = response.get("outputs")
        return EngineFacts(
            name=SparkEngine.name,
            version=str(self._described["version"]),
            settings=settings,
            outputs=tuple((str(n), str(k)) for n, k in outputs) if outputs else None,
            queue=QUEUE_IS[spec.mode] if outputs else "",
            unchecked_job=bool(o.pipeline) and not o.reference,
            emits_early=not o.pipeline and emits_early(spec.variant),
        )

    def stop(self) -> None:
        """End the process, and the JVM and the workers with it."""
        self._control.close()
        self._running.stop()


QUEUE_IS = {
    "micro-batch": "published − end offset of the running micro-batch",
    "real-time": "published − position last reported",
}
"""What the queue is in the report, where Spark reports its position."""


class SparkDeployment:
    """The query of one trial while it runs."""

    def __init__(
        self, system: SparkSystem, running: RunningProcess, control: ControlClient, spec: QuerySpec, facts: EngineFacts
    ) -> None:
        self._system, self._running, self._control = system, running, control
        self._folder, self._facts = spec.folder, facts
        self._trigger = spec.trigger_ns if spec.mode == "micro-batch" else 0
        self.query = ""
        """Spark's own number of this start of the query."""
        self._failure: Failure | None = None
        self._ended = False
        self._positions = PositionLog()

    def fail(self, message: str, trace: Sequence[str], *, user_error: bool) -> None:
        """The query is over, and this is why."""
        self._failure = Failure(message, tuple(trace), user_error)

    def _take_notifications(self) -> None:
        """What the session has reported since the last call. Raises ControlError if it has ended."""
        notifications = self._control.notifications()
        self._positions.take(notifications)
        for each in notifications:
            if "ended" in each and each.get("query") == self.query:  # not of the one before
                self.fail(each["ended"], each["trace"], user_error=each["user_error"])

    def alive(self) -> bool:
        """Whether the process runs and the query in it."""
        if self._failure is None and self._running.alive():
            try:
                self._take_notifications()
            except ControlError:
                return False
        return self._failure is None and self._running.alive()

    def failure(self) -> Failure | None:
        """Why the query ended, if it did by itself."""
        if self._failure is None and not self._running.alive():
            exhausted = out_of_memory(self._running.tail(200))
            return Failure(exhausted) if exhausted else None
        return self._failure

    def position(self) -> Position | None:
        """How far Spark has reported to be; None over the queue, which it acknowledges itself."""
        with suppress(ControlError):  # ``alive`` notices that it has ended
            self._take_notifications()
        return self._positions.newest()

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """Spark's own numbers of the measurement phase: an explanation."""
        explained = explain(self._folder, since_ns, until_ns, max(1, len(self._system.cores)))
        return ProbeResult(tuple(explained), micro_batches(self._folder, since_ns, until_ns, self._trigger))

    def watermark(self) -> Watermark | None:
        """The watermark of the last finished micro-batch; None if the query has none."""
        return watermark(self._folder / BATCH_LOG)

    def describe(self) -> EngineFacts:
        """Versions and effective settings."""
        return self._facts

    def end(self) -> None:
        """Stop the query, once; the session stays."""
        if not self._ended:
            self._ended = True
            self._system.end_query()


def _explained(error: LaunchError, options: SparkOptions) -> LaunchError:
    """The same error with the lines of Java before the trace, and with the settings that the log names."""
    trace = next((n for n, line in enumerate(error.log) if line.startswith(_TRACE)), 0)
    lines = [line.strip() for line in error.log[:trace] if line.strip() and not line.startswith("WARNING: ")]
    errors = [line for line in lines if _ERROR.match(line)]
    why = out_of_memory(error.log) or (errors[0] if errors else " / ".join(lines[-_REASON_LINES:]))
    sentence = f"{error.sentence}: {why}" if why else error.sentence
    return LaunchError(_naming(sentence, options.settings, "\n".join(error.log)), error.log)


def _naming(sentence: str, settings: Mapping[str, str], text: str) -> str:
    """A sentence with the user's settings that it or the text beside it names."""
    named = [key for key in settings if key in sentence or key in text]
    return f"{sentence}; correct engine.settings: {', '.join(named)}" if named else sentence


spark = SparkEngine()
