"""Whole trials over a real broker: what was sent, acknowledged and stored, what came out, and a broker that dies."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from kafka_broker import needs_kafka
from real_trial import Played, play, trial

from streamgauge.cli.cache import cache_folder
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import BROKER
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.producer import Part, open_producer
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.topics import Topic, topic_name
from streamgauge.transports.kafka.transport import OUTPUTS, Ground, Kafka

pytestmark = needs_kafka
RUN = "test-trials"
LOAD = 50_000.0


@contextmanager
def kafka(warm: bool = False) -> Iterator[Kafka]:
    """A Kafka of a run's own."""
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        place = Path(short)
        with Kafka(KafkaOptions(), RUN, place / "sessions", Ground(cache_folder(), place), warm=warm) as found:
            yield found


@pytest.fixture(scope="module")
def one() -> Iterator[Kafka]:
    with kafka(warm=True) as found:
        yield found


def on(ground: Kafka, number: int = 1, **changes: Any) -> tuple[Trial, Kafka]:  # noqa: ANN401
    """A short trial, and the Kafka that it is played on."""
    choice = TransportChoice("kafka", ground.options.dumped())
    return trial(LOAD, number=number, transport=choice, **changes), ground


def outputs(played: Played) -> list[dict[str, object]]:
    (query,) = (played.folder / "outputs").iterdir()
    return [row for part in sorted(query.glob("*.parquet")) for row in pq.read_table(part).to_pylist()]


def is_sound(played: Played) -> None:
    """Nothing went wrong on the way, and nothing is missing. How the load is judged is shown elsewhere: trials of two
    seconds on a broker that has just begun are too short for that."""
    outcome, account = played.recording.outcome, played.recording.outcome.account
    assert (outcome.ending, outcome.disturbances) == ("completed", ()), played
    assert played.verdict.kind is not VerdictKind.FAILED, played
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert account.observed == account.expected - account.not_reached > 0, played


def test_a_trial_over_kafka_keeps_the_books_of_one_over_the_queue(tmp_path: Path, one: Kafka) -> None:
    asked, ground = on(one)
    played = play(asked, tmp_path / "trial", kafka=ground)
    is_sound(played)
    transport = played.recording.facts.transport
    assert transport is not None
    assert transport.clock is not None
    assert abs(transport.clock.offset_ms) <= transport.clock.within_ms < 5  # one machine, one clock
    rounds = transport.settings["warm"]
    assert max(rounds) > rounds[0], "a broker becomes faster while it is warmed up"
    assert played.measured.latencies["event-time"].percentiles["p50"] < SECOND
    rows = outputs(played)
    assert len(rows) == played.recording.outcome.account.observed
    assert {int(str(row["emitted_us"])) % 1000 for row in rows} == {0}  # the broker's clock: whole milliseconds
    use = played.recording.facts.roles[BROKER]
    assert 0 < use.cores < 2
    assert use.written_per_s >= 0  # none where the folder is in memory
    assert ground.administration().runs() == {}  # its topics are gone


def test_several_drivers_send_to_partitions_of_their_own(tmp_path: Path, one: Kafka) -> None:
    asked, ground = on(one, 4, partitions=3, drivers=2)
    is_sound(play(asked, tmp_path / "trial", kafka=ground))


def test_a_topic_that_is_there_already_makes_the_trial_invalid(tmp_path: Path, one: Kafka) -> None:
    left = topic_name(RUN, 5, "purchases")
    one.stand(())
    one.administration().create([Topic(left, 1)])
    asked, ground = on(one, 5)
    played = play(asked, tmp_path / "trial", kafka=ground)
    played.is_(VerdictKind.INVALID, left, "already exists")
    ground.administration().delete([left])


def test_a_queue_bound_counts_what_waits_in_the_topic(tmp_path: Path, one: Kafka) -> None:
    asked, ground = on(one, 6)
    slow = replace(asked, options=asked.options | {"capacity": LOAD / 4}, queue_bound=int(LOAD / 2))
    played = play(slow, tmp_path / "trial", kafka=ground)
    assert played.recording.outcome.ending == "queue-full"
    assert played.recording.outcome.disturbances == ()


def test_outputs_that_are_not_of_their_format_are_the_systems_own_fault(tmp_path: Path, one: Kafka) -> None:
    asked, ground = on(one, 7)

    def spoil() -> None:
        producer = open_producer(ground.administration().cluster, topic_name(RUN, 7, OUTPUTS), time.monotonic_ns)
        producer.publish({0: Part(None, np.zeros((1, 3), np.uint8), np.zeros(1, np.int64))})
        producer.flush(20)
        producer.close()

    played = play(asked, tmp_path / "trial", {1: spoil}, kafka=ground)
    outcome = played.recording.outcome
    assert outcome.ending == "crashed", played
    assert "its outputs cannot be read as binary: a value is" in outcome.detail
    assert played.verdict.kind in (VerdictKind.FAILED, VerdictKind.INVALID), "INVALID: the host made ticks late, too"


@pytest.mark.soak
def test_a_broker_that_is_killed_makes_the_trial_invalid_and_the_next_one_gets_a_new_broker(tmp_path: Path) -> None:
    with kafka() as ground:
        asked, _ = on(ground)
        sabotage: dict[int, Callable[[], object]] = {1: lambda: os.kill(ground.processes[0].pid, signal.SIGKILL)}
        played = play(asked, tmp_path / "trial", sabotage, kafka=ground)
        played.is_(VerdictKind.INVALID, "broker 1 at 127.0.0.1:", "ended with signal 9")
        assert played.recording.outcome.ending == "driver-failed"
        is_sound(play(on(ground, 2)[0], tmp_path / "again", kafka=ground))
