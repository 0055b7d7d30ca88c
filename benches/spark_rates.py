"""What Spark holds on one core, side by side in one run: naive and panes, sustained and in batch, and the stamp.

A sustained rate is the answer of a whole search of the quickstart's question. Batch runs the same pipeline through
the same source over events that wait in the queue, in one warm session; its figures are medians of repeats.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from streamgauge.engines.contract import Ground
from streamgauge.engines.spark import spark
from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding
from streamgauge.model.trial import Ask
from streamgauge.model.units import SECOND, format_rate
from streamgauge.parse import read
from streamgauge.parse.shipped import shipped_text
from streamgauge.processes.clock import now
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import bind, place, usable_cores
from streamgauge.run.environment import capture
from streamgauge.run.explore import explore, trial_of
from streamgauge.run.limits import Limits
from streamgauge.run.trial.processes import pinned, staged, start
from streamgauge.store import Run, Store

VARIANTS = ("naive", "panes")
RATE, SECONDS = 1_500_000.0, 6
WARM = 3
"""Batches of each pipeline before any is timed."""


def asked(variant: str, *more: str) -> Experiment:
    """The quickstart's question of one variant, without its measurement at 90 %."""
    text = shipped_text("quickstart").replace("variant: naive", f"variant: {variant}")
    for line in more:
        text = text.replace("  cores: 1 ", f"  {line}\n  cores: 1 ")
    return read(text.replace(", also: [90%]", ""))


def searched(question: Experiment, folder: Path, limits: Limits = Limits()) -> tuple[Finding, Run]:  # noqa: B008
    """A whole search; what it found, and its run."""
    run = Store(folder).create(question, question.name, capture(), now(), "0000", sys.argv)
    (finding,) = explore(question, run, limits).findings
    return finding, run


def sustained(variant: str, folder: Path) -> tuple[Finding, str]:
    """What a search found, and how busy Spark was at the failing end."""
    finding, run = searched(asked(variant), folder)
    end = finding.fails or finding.holds
    said = run.recording(end.trials[-1]).facts.explanation if end else ()
    return finding, said[0].sentence if said else ""


def batch(folder: Path, repeats: int) -> dict[str, float]:
    """Events per second in batch, by pipeline, all over the same events in the queue."""
    jobs = {v: asked(v) for v in VARIANTS} | {"naive, not stamped": asked("naive", "stamp: false")}
    trials = {
        name: trial_of(question, question.engines[0], Ask("load", RATE, "measure"), 1)
        for name, question in jobs.items()
    }
    first, placement = trials["naive"], place({})
    with (
        Launcher() as launcher,
        pinned(placement.driver),
        staged(first, folder, placement, launcher, 0, rewrite=lambda order: order) as (stage, endpoints),
    ):
        (folder / "session").mkdir()
        session = spark.stand(first.options, Ground(folder / "session", placement.sut, usable_cores()), launcher)
        start(stage, None)
        for line in stage.lines:
            line.end(SECONDS * SECOND)
        while not stage.status()["done"]:
            time.sleep(0.1)
        events = stage.status()["published"]
        for trial in [*trials.values()] * WARM:
            session.batch(trial, endpoints)
        bind([process.guard for process in session.processes()], placement.sut)
        took = [{name: session.batch(trial, endpoints) for name, trial in trials.items()} for _ in range(repeats)]
        session.stop()
    return {name: events / statistics.median(each[name] for each in took) for name in trials}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sg") as name:
        root = Path(name)
        (root / "batch").mkdir()
        rates = batch(root / "batch", arguments.repeats)
        held = {}
        for variant in VARIANTS:
            finding, busy = sustained(variant, root / variant)
            held[variant] = finding.holds.value if finding.holds else 0.0
            print(f"{variant:6} {finding.sentence}\n       {busy}")
        for variant in VARIANTS:
            ratio = held[variant] / rates[variant]
            print(f"{variant:6} in batch {format_rate(rates[variant])}; sustained is {ratio:.2f} of it")
        print(f"panes hold {held['panes'] / max(1.0, held['naive']):.2f} × naive")
        bare = rates["naive, not stamped"]
        cost = 1e9 / rates["naive"] - 1e9 / bare
        print(f"naive in batch, not stamped {format_rate(bare)}: the stamp costs {cost:.0f} ns an event")


if __name__ == "__main__":
    main()
