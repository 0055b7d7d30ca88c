"""Run the quickstart ten times in a row, untouched, and print what a user would have seen.

    python -m benches._ten_quickstarts [--count 10] [--experiment quickstart] [--out FOLDER] [--set engine.trigger=4s]

Takes about four minutes for each run, so `make bench` leaves it out: the name begins with an underscore. The time of a
run is from its command to its bounds, without the trial at 90 %; "first" is the part of it until the load of the first
trial begins. Below a run are the reasons of its trials that were INVALID, UNDECIDED or FAILED. Wanted: a median of at
most 3.5 minutes, at least 8 of 10 at most 5 % wide, at least 9 of 10 that overlap the one whose middle is the median.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, median_low
from typing import Any

WIDE = 0.05
MINUTES = 3.5
REASON = 150
"""Characters of a reason that are printed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run. ``holds`` and ``fails`` are None where it found no such bound."""

    seconds: float
    holds: float | None
    fails: float | None
    verdicts: str
    steal: float
    foreign: float
    exit_code: int
    first: float | None = None
    """Seconds until the load of the first trial began; None if it did not."""
    reasons: tuple[str, ...] = ()
    """Why trials were neither SUSTAINED nor OVERLOADED."""

    @property
    def middle(self) -> float | None:
        return None if self.holds is None or self.fails is None else (self.holds + self.fails) / 2

    @property
    def width(self) -> float | None:
        return None if self.holds is None or self.fails is None else (self.fails - self.holds) / self.holds

    def text(self) -> str:
        """The row of the table."""
        middle = "–" if self.middle is None else f"{self.middle:,.0f}"
        width = "–" if self.width is None else f"{self.width:.1%}"
        first = "–" if self.first is None else f"{self.first:.0f}"
        others = f"{self.steal:>7.1%} {self.foreign:>8.1%}"
        found = f"{self.seconds:>9.0f} {first:>6} {width:>6} {middle:>11} {others} {self.exit_code:>5}  {self.verdicts}"
        return "\n".join([found, *(f"         {reason}" for reason in self.reasons)])


def row(document: dict[str, Any], folder: Path, begun: float, ended: float) -> Row:
    """What one run did; the bounds are known when the last trial of the search is written."""
    trials, found = document.get("trials", []), (document.get("findings") or [{}])[0]
    searched = [t["number"] for t in trials if t["purpose"] != "measure"]
    last = manifest(document, folder, max(searched, default=0))
    done = last.stat().st_mtime if searched and last.exists() else ended
    holds, fails = (end["value"] if (end := found.get(name)) else None for name in ("holds", "fails"))
    verdicts = Counter(t["verdict"] for t in trials if t["purpose"] != "measure")
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(verdicts.items()))
    steal, foreign = (
        max((t["measured"][f"{name}_share"] for t in trials), default=0.0) for name in ("steal", "foreign")
    )
    first = load_began(manifest(document, folder, min(searched, default=0)))
    until = None if first is None else first - begun
    exit_code = document.get("exit_code", -1)
    return Row(done - begun, holds, fails, shown, steal, foreign, exit_code, until, reasons(trials))


def manifest(document: dict[str, Any], folder: Path, trial: int) -> Path:
    """Where a trial of the run is described."""
    return folder / str(document.get("run", "")) / "trials" / f"{trial:03d}" / "manifest.json"


def load_began(path: Path) -> float | None:
    """When the load of a trial began, in seconds since 1970; None if it did not."""
    try:
        wall = json.loads(path.read_text("utf-8"))["facts"].get("wall_ns")
    except (OSError, ValueError, KeyError):
        return None
    return None if wall is None else wall / 1e9


def reasons(trials: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The first reason of each trial that was neither SUSTAINED nor OVERLOADED, in short."""
    found = (t for t in trials if t["verdict"] in ("INVALID", "UNDECIDED", "FAILED"))
    return tuple(
        f"trial {t['number']} at {t['load']:,.0f}/s, {t['verdict']}: {next(iter(t['reasons']), '')[:REASON]}"
        for t in found
    )


def run_once(experiment: str, folder: Path, settings: Sequence[str]) -> Row:
    """One run, in a separate process, as a user starts it."""
    changes = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "streamgauge", "run", experiment, "--json", "--out", str(folder), *changes]
    begun = time.time()
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    ended = time.time()
    try:
        document = json.loads(said.stdout)
    except ValueError:
        last = said.stderr.strip().splitlines()[-1:]
        return replace(row({"exit_code": said.returncode}, folder, begun, ended), reasons=tuple(last))
    return row(document, folder, begun, ended)


def summary(rows: Sequence[Row]) -> list[str]:
    """The three figures that are wanted."""
    bounded = [r for r in rows if r.middle is not None]
    lines = [f"median time to the bounds: {median(r.seconds for r in rows) / 60:.2f} minutes (wanted: {MINUTES})"]
    narrow = sum(r.width is not None and r.width <= WIDE * 1.0001 for r in rows)
    lines.append(f"at most {WIDE:.0%} wide: {narrow} of {len(rows)} (wanted: 8 of 10)")
    if bounded:
        central = median_low(sorted(r.middle or 0.0 for r in bounded))
        at = next(r for r in bounded if r.middle == central)
        overlap = sum((r.holds or 0) <= (at.fails or 0) and (at.holds or 0) <= (r.fails or 0) for r in bounded)
        lines.append(f"overlap the one whose middle is the median: {overlap} of {len(rows)} (wanted: 9 of 10)")
    return lines


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--experiment", default="quickstart")
    parser.add_argument("--out", type=Path, default=None, help="keep the runs in this folder")
    parser.add_argument("--set", action="append", default=[], help="change a key of the experiment, as streamgauge run")
    asked = parser.parse_args()
    print("  run  seconds  first  width      middle   steal  foreign  exit  trials of the search", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for number in range(1, asked.count + 1):
            rows.append(run_once(asked.experiment, (asked.out or Path(scratch)).absolute(), asked.set))
            print(f"{number:>5}{rows[-1].text()}", flush=True)
    print(*summary(rows), sep="\n")


if __name__ == "__main__":
    main()
