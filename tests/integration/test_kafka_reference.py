"""The reference engine over Kafka: real trials whose events and outputs travel through topics."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import real_trial
from kafka_broker import administration, needs_kafka, shared
from real_trial import MILLI, Played, trial

from streamgauge.engines.reference.ground_truth import truth
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import Placement
from streamgauge.run.calibrate.max_load import queue_ceiling, schedule_lag
from streamgauge.store.journal import read_parts
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.transports.kafka.transport import Ground, Kafka, kafka_of

pytestmark = needs_kafka


def over_kafka(form: FormatName = "binary") -> TransportChoice:
    """The shared broker, as a user's own cluster would be named."""
    cluster = ClusterOptions(bootstrap=shared().cluster.bootstrap)
    return TransportChoice("kafka", KafkaOptions(format=form, cluster=cluster).dumped())


@contextmanager
def standing(folder: Path, choice: TransportChoice) -> Iterator[Kafka]:
    run = f"test-{secrets.token_hex(4)}"
    kafka = kafka_of(choice, run, folder, Ground(cluster=shared().cluster))
    assert kafka is not None
    with kafka:
        yield kafka
    assert run not in administration().runs(), "topics go with their trial"


def play(asked: Trial, folder: Path, form: FormatName = "binary") -> Played:
    """Perform a trial over Kafka and judge it."""
    choice = over_kafka(form)
    asked = replace(asked, transport=choice)
    with standing(folder, choice) as kafka:
        return real_trial.play(asked, folder, kafka=kafka)


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_a_trial_over_kafka_holds_and_its_outputs_are_the_reference_answer(form: FormatName, tmp_path: Path) -> None:
    load = 50_000.0 if form == "json" else 100_000.0
    played = play(trial(load, partitions=2), tmp_path, form)
    account = played.recording.outcome.account
    assert account.expected > 0, played
    assert (account.observed, account.checked) == (account.expected - account.not_reached, True), played
    assert (account.lost, account.wrong, account.duplicate) == (0, 0, 0), played
    assert played.verdict.kind is not VerdictKind.FAILED, "late ticks and a short trial are no fault of the engine"


def test_latencies_over_kafka_are_those_of_the_engines_log_on_the_brokers_clock(tmp_path: Path) -> None:
    played = play(trial(50_000.0, {"delay": "100ms"}), tmp_path)
    start_ns, wall_ns = played.recording.facts.start_ns, played.recording.facts.wall_ns
    assert start_ns is not None
    assert wall_ns is not None
    true = np.median(truth(tmp_path).latencies(start_ns, wall_ns)) / 1000
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


def test_ceilings_over_kafka_are_measured_with_producer_and_consumer_at_once(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="sg") as short,
        Launcher(Path(short)) as launcher,
        standing(tmp_path, over_kafka()) as kafka,
    ):
        assert queue_ceiling(launcher, tmp_path / "queue", Placement(), seconds=0.5, kafka=kafka) > 20_000
        lag = schedule_lag(launcher, tmp_path / "lag", Placement(), 20_000.0, seconds=0.5, kafka=kafka)
    assert lag.achieved > 10_000
    assert 0 < lag.p50 < 500 * MILLI
