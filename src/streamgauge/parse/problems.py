"""Problems of an experiment file: the location, the key, the allowed values, and the most similar one."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

_MAX_PROBLEMS = 100  # more are not useful; this also bounds the work for hostile files
_MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a file, counted from 1, or an override (line 0)."""

    source: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, with its location and what to write instead."""

    source: str
    line: int
    column: int
    key: str
    message: str
    allowed: tuple[str, ...] = ()
    nearest: str = ""

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        parts = [f"{self.key}: {self.message}" if self.key else self.message]
        if self.allowed:
            parts.append(f"allowed: {', '.join(self.allowed)}")
        if self.nearest:
            parts.append(f"did you mean {self.nearest}?")
        return f"{place}: {'; '.join(parts)}"


class ExperimentError(ValueError):
    """An experiment cannot be run; ``problems`` contains all problems of its file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def printable(name: object) -> str:
    """A name from the file, shortened and with all characters printable, for a message."""
    text = str(name)
    short = text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}…"
    return short if short.isprintable() and short.strip() == short and short else repr(short)


class Problems:
    """Collects problems, so that all of them are reported together."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._omitted = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found) + self._omitted

    def add(self, location: Location, key: str, message: str, allowed: Iterable[str] = (), written: str = "") -> None:
        """Add a problem. ``written`` is the text that should be one of ``allowed``."""
        if len(self._found) >= _MAX_PROBLEMS:
            self._omitted += 1
            return
        options = tuple(allowed)
        near = difflib.get_close_matches(written[:_MAX_NAME], options, n=1, cutoff=0.55) if written else []
        problem = Problem(
            location.source, location.line, location.column, key, message, options, near[0] if near else ""
        )
        if problem not in self._found:
            self._found.append(problem)

    def error(self) -> ExperimentError:
        """All problems in the order of the file, those of overrides last."""
        found = sorted(self._found, key=lambda p: (p.line == 0, p.line, p.column))
        if self._omitted:
            more = f"and {self._omitted} more problems"
            found.append(Problem(found[0].source, 0, 0, "", more))
        return ExperimentError(found)

    def raise_if_any(self) -> None:
        """Raise all problems, if there are any."""
        if self._found:
            raise self.error()
