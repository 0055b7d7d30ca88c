"""Trouble: an error that the user can fix, with a message for the user."""

from collections.abc import Sequence
from typing import Any

from streamgauge.run.exits import ExitCode


class Trouble(Exception):
    """Ends a command with a sentence on stderr and an exit code, never with a traceback."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.USAGE, problems: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.problems = list(problems)
        """The problems one by one, for ``--json``."""
