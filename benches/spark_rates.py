"""What Spark sustains on one core, side by side in one run: naive and panes, sustained and in batch, and the stamp.

A sustained rate is the result of a whole search of the quickstart. Batch runs the same pipeline through
the same source over events that wait in the queue, in one warm session; its figures are medians of repeats.
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.judge import EarlyStopRule
from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import SECOND, format_rate
from streamgauge.parse import read
from streamgauge.parse.shipped import shipped_text
from streamgauge.processes.clock import now
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.processes.placement import controller_pinned, usable_cores
from streamgauge.run.environment import capture
from streamgauge.run.explore import explore, setup_of, trial_of
from streamgauge.run.trial.processes import open_processes
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext, RunLimits
from streamgauge.store import Run, Store
from streamgauge.transports.queue.transport import OpenQueue

VARIANTS = ("naive", "panes")
RATE, SECONDS = 1_500_000.0, 6
WARM = 3
"""Batches of each pipeline before any is timed."""


def experiment_of(variant: str, *more: str) -> Experiment:
    """The quickstart with one variant, without its measurement at 90 %."""
    text = shipped_text("quickstart").replace("variant: naive", f"variant: {variant}")
    for line in more:
        text = text.replace("  cores: 1 ", f"  {line}\n  cores: 1 ")
    return read(text.replace(", also: [90%]", ""))


def searched(question: Experiment, folder: Path, limits: RunLimits = RunLimits()) -> tuple[Finding, Run]:  # noqa: B008
    """A whole search; what it found, and its run."""
    run = Store(folder).create(question, question.name, capture(), now(), "0000", sys.argv)
    (finding,) = explore(question, run, limits).findings
    return finding, run


def sustained(variant: str, folder: Path) -> tuple[Finding, str]:
    """What a search found, and how busy Spark was at the failing end."""
    finding, run = searched(experiment_of(variant), folder)
    end = finding.fails or finding.holds
    reasons = run.recording(end.trials[-1]).facts.explanation if end else ()
    return finding, reasons[0].sentence if reasons else ""


def batch(folder: Path, repeats: int) -> dict[str, float]:
    """Events per second in batch, by pipeline, all over the same events in the queue."""
    jobs = {v: experiment_of(v) for v in VARIANTS} | {"naive, not stamped": experiment_of("naive", "stamp: false")}
    trials = {
        name: trial_of(question, question.engines[0], TrialRequest("load", RATE, "measure"), 1)
        for name, question in jobs.items()
    }
    with Launcher() as launcher:
        context = RunContext(transport=OpenQueue(launcher.runtime))
        setups = {
            name: setup_of(trial, spark, DiscardingRecorder(folder), context, EarlyStopRule(trial, ()))
            for name, trial in trials.items()
        }
        first = setups["naive"]
        assert isinstance(first.options, SparkOptions)
        host = LocalHost(launcher, folder / "session", cache_folder(), first.placement.sut, usable_cores())
        with (
            controller_pinned(first.placement.driver),
            open_processes(first, launcher, 0) as processes,
            spark.start(first.layout, first.options, host) as session,
        ):
            assert isinstance(session, SparkSystem)
            processes.start(None)
            for control in processes.driver_controls:
                control.end(SECONDS * SECOND)
            while not processes.status().done:
                time.sleep(0.1)
            events = processes.status().published
            run = processes.job_run()
            runs = {name: replace(run, trial=each.trial, options=each.options) for name, each in setups.items()}
            for job in [*runs.values()] * WARM:
                session.batch(job)
            host.pin([process for group in session.processes().values() for process in group])
            took = [{name: session.batch(job) for name, job in runs.items()} for _ in range(repeats)]
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
        print(f"panes sustain {held['panes'] / max(1.0, held['naive']):.2f} × naive")
        bare = rates["naive, not stamped"]
        cost = 1e9 / rates["naive"] - 1e9 / bare
        print(f"naive in batch, not stamped {format_rate(bare)}: the stamp costs {cost:.0f} ns an event")


if __name__ == "__main__":
    main()
