"""The reference engine over Kafka: real trials whose events and outputs are in topics."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import real_trial
from kafka_broker import needs_kafka
from kafka_trial import open_cluster, over_shared_broker
from real_trial import MILLI, Played, trial

from streamgauge.engines.reference.ground_truth import read_ground_truth
from streamgauge.model.layout import Placement
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.processes.launch import Launcher
from streamgauge.run.calibrate.max_load import LoadSetup, max_input_rate, send_delay
from streamgauge.store.journal import read_parts
from streamgauge.transports.kafka.formats.columns import FormatName

pytestmark = needs_kafka


def play(asked: Trial, folder: Path, form: FormatName = "binary") -> Played:
    """Perform a trial over Kafka and judge it."""
    asked = replace(asked, transport=over_shared_broker(form))
    with open_cluster(folder, asked.transport) as kafka:
        return real_trial.play(asked, folder, transport=kafka)


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_a_trial_over_kafka_passes_and_its_outputs_are_the_reference_result(form: FormatName, tmp_path: Path) -> None:
    load = 50_000.0 if form == "json" else 100_000.0
    played = play(trial(load, partitions=2), tmp_path, form)
    account = played.recording.outcome.account
    assert account.expected > 0, played
    assert (account.observed, account.checked) == (account.expected - account.not_reached, True), played
    assert (account.lost, account.wrong, account.duplicate) == (0, 0, 0), played
    assert played.verdict.kind is not VerdictKind.FAILED, "late sends and a short trial are no fault of the engine"


def test_latencies_over_kafka_are_those_of_the_engines_log_on_the_brokers_clock(tmp_path: Path) -> None:
    played = play(trial(50_000.0, {"delay": "100ms"}), tmp_path)
    start_ns, wall_ns = played.recording.facts.start_ns, played.recording.facts.wall_ns
    assert start_ns is not None
    assert wall_ns is not None
    true = np.median(read_ground_truth(tmp_path).latencies(start_ns, wall_ns)) / 1000
    outputs = read_parts(tmp_path / "outputs" / "outputs")
    assert outputs is not None
    emitted = outputs.column("emitted_us").to_numpy()
    due, ingested = (outputs.column(n).cast("int64").to_numpy() for n in ("max_due", "max_ingested"))
    assert np.all(emitted % 1000 == 0), "the broker's clock has whole milliseconds"
    assert np.all(ingested % 1000 == 0)
    assert np.all(ingested >= due // 1000 * 1000), "an event is appended when it is due, never before"
    assert np.all(emitted - ingested >= 100_000 - 1000), "the delay is between the two stamps of the broker"
    measured = float(np.median(emitted - due)) / 1000
    assert true - 1 <= measured <= true + 25, (true, measured)


def test_outputs_that_are_lost_doubled_or_altered_are_counted_over_kafka(tmp_path: Path) -> None:
    played = play(trial(50_000.0, {"lose": 3, "duplicate": 2, "alter": 1}), tmp_path)
    account = played.recording.outcome.account
    assert (account.lost, account.duplicate, account.wrong) == (3, 2, 1), played


def test_maximum_rates_over_kafka_are_measured_with_producer_and_consumer_together(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="sg") as short,
        Launcher(Path(short)) as launcher,
        open_cluster(tmp_path, over_shared_broker()) as kafka,
    ):
        site = LoadSetup(launcher, kafka, "kafka", Placement())
        assert max_input_rate(site, tmp_path / "input", seconds=0.5) > 20_000
        delay = send_delay(site, tmp_path / "delay", 20_000.0, seconds=0.5)
    assert delay.achieved > 10_000
    assert 0 < delay.p50 < 500 * MILLI
