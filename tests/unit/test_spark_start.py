"""A Spark that did not start: what Java said, and which setting it is about."""

from streamgauge.engines.spark.engine import _explained
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.processes.spec import LaunchError

ENDED = "spark (process 7) ended with exit code 1 before it was ready"
TRACE = ("Traceback (most recent call last):", '  File "work.py", line 1', "PySparkRuntimeError: [JAVA_GATEWAY_EXITED]")


def explained(*log: str, settings: dict[str, str] | None = None) -> LaunchError:
    return _explained(LaunchError(ENDED, log), SparkOptions(settings=settings or {}))


def test_the_lines_of_java_before_the_trace_are_part_of_the_message() -> None:
    error = explained("WARNING: Using incubator modules", "Unrecognized VM option 'No'", "Could not create it.", *TRACE)
    assert error.sentence == f"{ENDED}: Unrecognized VM option 'No'"
    assert error.log[-1] == TRACE[-1]
    other = explained("one", "The cluster does not answer.", "", "Giving up.", *TRACE)
    assert other.sentence == f"{ENDED}: one / The cluster does not answer. / Giving up."


def test_an_error_is_found_above_the_usage_that_follows_it() -> None:
    usage = ("Usage: spark-submit [options]", *[f"  --option-{n} NAME" for n in range(90)])
    error = explained("Error: Not allowed to specify max heap(Xmx) memory settings", "", *usage, *TRACE)
    assert error.sentence == f"{ENDED}: Error: Not allowed to specify max heap(Xmx) memory settings"


def test_a_setting_that_the_log_names_is_named() -> None:
    settings = {"spark.executor.memory": "much", "spark.ui.enabled": "false"}
    error = explained("Invalid value of spark.executor.memory", settings=settings)
    assert error.sentence == f"{ENDED}; correct engine.settings: spark.executor.memory"


def test_too_little_memory_is_reported() -> None:
    error = explained("java.lang.OutOfMemoryError: Java heap space", *TRACE)
    assert error.sentence == (
        f"{ENDED}: Spark ran out of memory (Java heap space); increase engine.memory, or reduce the state of the job"
    )


def test_a_log_without_a_reason_changes_nothing() -> None:
    assert explained().sentence == ENDED
    assert explained(*TRACE).sentence == ENDED
