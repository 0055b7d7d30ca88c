"""What is said of a pair of function and reference, against what is true of it."""

from pathlib import Path
from typing import NamedTuple

from pair_trial import EVENTS, ORIGIN, Ask, check_of, events_of, pair_file, pair_trial, plan_of, play_pair
from random_pairs import Pair, differs


class Judged(NamedTuple):
    """How a pair is counted, and the sentence on a mistake; nothing if it was judged as it is."""

    label: str
    sentence: str = ""


def judged(pair: Pair, ask: Ask, folder: Path, runtime: Path) -> Judged:
    """Play a pair and compare what is said of it with what is true."""
    here = folder / str(pair.number)
    found = play_pair(pair, ask, here, runtime)
    account = found.account
    faults = account.lost + account.duplicate + account.wrong
    shown = f"pair {pair.number} ({pair.about}) is {pair.kind}: {found} in {here}"
    if found.crashed or pair.kind == "users-fault" or found.fault:
        said = bool(found.fault) and not found.crashed and pair.kind == "users-fault"
        return Judged(pair.kind, "" if said else f"{shown}: the wrong error, or the wrong one to blame")
    if pair.kind == "right":
        required = account.expected - account.not_reached
        if not required and not account.observed and pair.stops_early:
            return Judged("nothing to tell")
        right = account.checked and not faults and account.observed > 0
        return Judged("overloaded" if pair.stops_early else "right", "" if right else f"{shown}: it is right")
    if not _matters(pair, here):
        return Judged("nothing to tell")
    return Judged("wrong", "" if faults else f"{shown}: it is wrong")


def _matters(pair: Pair, folder: Path) -> bool:
    """Whether what a wrong function does changes a row that must be out a second before the end."""
    trial = pair_trial(pair, folder)
    check = check_of(trial)
    closed = ORIGIN // 1_000 + (EVENTS - 1_000) * 1_000
    return differs(pair_file(pair, folder), events_of(trial, plan_of(check)), closed)
