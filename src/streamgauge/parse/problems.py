"""What is wrong with an experiment file: where, which key, what is allowed, and what was perhaps meant."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

_MOST = 100  # nobody reads more; keeps hostile files cheap
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file, counted from 1, or an override (line 0)."""

    source: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with its place and a way out."""

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
    """An experiment that cannot be run; ``problems`` has everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shown(name: object) -> str:
    """A name from the file, short and printable, for a message."""
    text = str(name)
    short = text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
    return short if short.isprintable() and short.strip() == short and short else repr(short)


class Problems:
    """Collects problems, so that all of them come at once."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found) + self._left_out

    def add(self, mark: Mark, key: str, message: str, allowed: Iterable[str] = (), written: str = "") -> None:
        """Note a problem. ``written`` is what the user wrote where one of ``allowed`` should be."""
        if len(self._found) >= _MOST:
            self._left_out += 1
            return
        options = tuple(allowed)
        near = difflib.get_close_matches(written[:_LONGEST_NAME], options, n=1, cutoff=0.55) if written else []
        problem = Problem(mark.source, mark.line, mark.column, key, message, options, near[0] if near else "")
        if problem not in self._found:
            self._found.append(problem)

    def error(self) -> ExperimentError:
        """All of them, in the order of the file, overrides last."""
        found = sorted(self._found, key=lambda p: (p.line == 0, p.line, p.column))
        if self._left_out:
            more = f"and {self._left_out} more problems"
            found.append(Problem(found[0].source, 0, 0, "", more))
        return ExperimentError(found)

    def raise_if_any(self) -> None:
        """End the reading if anything was wrong."""
        if self._found:
            raise self.error()
