"""Whose fault it was: an exception out of Spark → the user's code or not, one sentence, and the trace that helps."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException

from streamgauge.engines.spark.user_code import split

_PYTHON = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Warning|Interrupt|Exit)\b.*)$")
_FILE = re.compile(r'File "([^"]+)", line (\d+)')
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*(.+)")
_MEMORY = re.compile(r"OutOfMemoryError(?::\s*([^\n]*))?|(Java heap space|GC overhead limit exceeded)")
_LONGEST = 400
_LINES = 30


@dataclass(frozen=True, slots=True)
class Blame:
    """What is said of a failure."""

    sentence: str
    trace: tuple[str, ...]
    users: bool


def blame(error: BaseException, trace: str, pipeline: str = "") -> Blame:
    """What failed, in one sentence; the user's if a frame of the trace is neither Spark's nor ours."""
    text = f"{trace}\n{error}"
    starved = out_of_memory(text.splitlines())
    if starved:
        return Blame(starved, tuple(text.splitlines()[:_LINES]), users=False)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    said = _said(lines) or f"{type(error).__name__}: {error}".splitlines()[0]
    short = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    if not pipeline:
        return Blame(short, tuple(lines[:_LINES]), users=False)
    file, function = split(pipeline)
    own = [
        (name, number) for name, number in _FILE.findall(text) if Path(name).resolve().parent == file.resolve().parent
    ]
    if own:
        name, number = own[-1]
        return Blame(f"your function failed at {name}:{number}: {short}", tuple(lines[:_LINES]), users=True)
    # Spark refuses a plan that only the user's function can have made; anything else may be Spark's own
    users = isinstance(error, AnalysisException)
    sentence = f"Spark rejected your function {function}: {short}" if users else short
    return Blame(sentence, tuple(lines[:_LINES]), users=users)


def out_of_memory(lines: Iterable[str]) -> str:
    """The sentence for a JVM whose heap was too small, if one of these lines tells of it."""
    for line in lines:
        found = _MEMORY.search(line)
        if found:
            why = found.group(1) or found.group(2) or "no details"
            return f"Spark ran out of memory ({why.strip()}); increase engine.memory, or reduce the state of the job"
    return ""


def _said(lines: list[str]) -> str:
    """The last line of a Python trace that names an exception, else Spark's own condition."""
    found = [match.group(1) for line in lines if (match := _PYTHON.match(line.strip()))]
    python = [
        line for line in found if "Py4J" not in line and not line.startswith(("StreamingQuery", "SparkException"))
    ]
    if python:
        return python[-1].strip()
    for line in lines:
        condition = _CONDITION.search(line)
        if condition:
            return f"[{condition.group(1)}] {condition.group(2).strip()}"
    return ""
