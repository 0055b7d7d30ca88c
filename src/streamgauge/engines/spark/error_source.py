"""The source of an error: an exception of Spark → the user's code or not, one sentence, and the trace that helps."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from streamgauge.engines.spark.user_code import parse_name

_PYTHON = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Warning|Interrupt|Exit)\b.*)$")
_FILE = re.compile(r'File "([^"]+)", line (\d+)')
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*(.+)")
_MEMORY = re.compile(r"OutOfMemoryError(?::\s*([^\n]*))?|(Java heap space|GC overhead limit exceeded)")
_LONGEST = 400
_LINES = 30


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """Why a query failed."""

    message: str
    trace: tuple[str, ...]
    user_error: bool


def explain_failure(error: BaseException, trace: str, pipeline: str = "") -> QueryFailure:
    """What failed, in one sentence; the user's if a frame of the trace is in the folder of the user's file."""
    text = f"{trace}\n{error}"
    starved = out_of_memory(text.splitlines())
    if starved:
        return QueryFailure(starved, tuple(text.splitlines()[:_LINES]), user_error=False)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    found = _message(lines) or f"{type(error).__name__}: {error}".splitlines()[0]
    short = found if len(found) <= _LONGEST else found[: _LONGEST - 1] + "…"
    if not pipeline:
        return QueryFailure(short, tuple(lines[:_LINES]), user_error=False)
    file, function = parse_name(pipeline)
    own = [
        (name, number) for name, number in _FILE.findall(text) if Path(name).resolve().parent == file.resolve().parent
    ]
    if own:
        name, number = own[-1]
        return QueryFailure(f"your function failed at {name}:{number}: {short}", tuple(lines[:_LINES]), user_error=True)
    # Spark rejects a plan that only the user's function can have made; anything else may be Spark's own
    rejected = "AnalysisException" in {kind.__name__ for kind in type(error).__mro__}
    sentence = f"Spark rejected your function {function}: {short}" if rejected else short
    return QueryFailure(sentence, tuple(lines[:_LINES]), user_error=rejected)


def out_of_memory(lines: Iterable[str]) -> str:
    """The sentence for a JVM whose heap was too small, if one of these lines shows it."""
    for line in lines:
        found = _MEMORY.search(line)
        if found:
            why = found.group(1) or found.group(2) or "no details"
            return f"Spark ran out of memory ({why.strip()}); increase engine.memory, or reduce the state of the job"
    return ""


def _message(lines: list[str]) -> str:
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
