"""Exit codes: what every verb says to the shell."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The codes of every verb, the same everywhere."""

    FINE = 0
    MISSED = 1
    """The objective is missed, or there is a regression."""
    USAGE = 2
    INVALID = 3
    """The driver or the machine failed: nothing is said of the system under test."""
    SUT_FAILED = 4
    NOTHING_MEASURED = 5
    NO_ANSWER = 6
    """Trials were measured, but the question is not answered: it stayed undecided, or the run ended too early."""
    BUG = 70
    INTERRUPTED = 130
