"""Random experiments through the command line, in this process: planned, run, and compared with what must be."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli_session import CommandResult, streamgauge, write
from random_expected import broken_bounds, contradictions
from random_experiments import FINDS, STRATEGIES, draw

CODES = (0, 1, 2, 3, 4, 5, 6)
"""Everything but a bug of streamgauge and an interruption."""
EXPECTED = (*FINDS, *STRATEGIES, "ramp", "spikes", "fluctuating", "replay", "steps", "noise", "crash_at", "engines")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (a separate folder is created there)


@dataclass(frozen=True)
class Played:
    """How a random experiment ended; ``report`` says what is wrong about it."""

    seed: int
    code: int
    trials: int
    report: str


def play(seed: int, budget: str = "10m") -> Played:
    """Plan and run the experiment of a seed, with so much time for its trials."""
    drawn = draw(seed)
    folder = Path(tempfile.mkdtemp(prefix="random-", dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None))
    try:
        file = write(folder, drawn.text)
        planned = streamgauge("plan", file, "--json", "--budget", budget)
        ran = streamgauge("run", file, "--out", folder / "runs", "--json", "--budget", budget)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = [_ended(command, said) for command, said in (("plan", planned), ("run", ran))]
    trials = 0
    if not any(wrong) and ran.code != 2:
        trials = len(ran.document["trials"])
        wrong += contradictions(drawn, ran.document) + broken_bounds(planned.document, ran.document)
    if (planned.code == 2) != (ran.code == 2):
        wrong.append(f"plan ended with {planned.code} and run with {ran.code}")
    said = "; ".join(sentence for sentence in wrong if sentence)
    return Played(seed, ran.code, trials, f"seed {seed}: {said}" if said else "")


def _ended(command: str, said: CommandResult) -> str:
    return "" if said.code in CODES else f"{command} ended with {said.code}: {said.err[-300:]}"


def summary(played: Sequence[Played]) -> str:
    """How many ended with which exit code."""
    codes = sorted(Counter(int(p.code) for p in played).items())
    shown = ", ".join(f"{count} with exit code {code}" for code, count in codes)
    return f"{len(played)} random experiments, {sum(p.trials for p in played)} trials: {shown}"
