"""What Spark sustains on one core over Kafka, per format, and over the queue, and its CPU time per event on each.

Every figure is the result of a whole search of one experiment, one after the other in one run. The rate per CPU second
is that of the trial at the highest load that passed: it shows what the transport costs Spark, whatever the generator
and the broker on the other core can send.
"""

import argparse
import tempfile
from pathlib import Path

from benches.spark_rates import searched
from streamgauge.cli.environment import cache_folder
from streamgauge.judge import measure
from streamgauge.model.experiment import Experiment
from streamgauge.model.units import format_rate
from streamgauge.parse import read
from streamgauge.parse.shipped import shipped_text
from streamgauge.run.trial.setup import RunLimits

FORMATS = ("binary", "json", "avro")


_TRANSPORT = "transport: {name: kafka, format: binary}"


def experiment_over(transport: str) -> Experiment:
    """The experiment quickstart-kafka over a transport, with less precision and without its measurement at 90 %."""
    text = shipped_text("quickstart-kafka")
    for words, others in ((_TRANSPORT, transport), ("precision: 5%, also: [90%]", "precision: 10%"), ("60s}", "40s}")):
        assert words in text, words
        text = text.replace(words, others)
    return read(text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, help="a folder for the runs, which are thrown away otherwise")
    kept: Path | None = parser.parse_args().keep
    kafka = {f"kafka, {form}": experiment_over(_TRANSPORT.replace("binary", form)) for form in FORMATS}
    questions = {"queue": experiment_over("transport: queue"), **kafka}
    with tempfile.TemporaryDirectory(prefix="sg") as name:
        first = 0.0
        for way, question in questions.items():
            folder = (kept or Path(name)) / way.replace(", ", "-")
            finding, run = searched(question, folder, RunLimits(cache=cache_folder()))
            print(f"{way:14} {finding.sentence}")
            if finding.holds is None:
                continue
            found = measure(run.recording(finding.holds.trials[-1]))
            events = found.served_rate * found.judged_seconds
            rate = events / found.sut_cpu_seconds if found.sut_cpu_seconds else 0.0
            first = first or rate
            print(f"{'':14} {format_rate(rate)} per CPU second of Spark, {rate / max(first, 1.0):.2f} × the queue's")


if __name__ == "__main__":
    main()
