"""Whole trials over a real broker: what was sent, acknowledged and stored, what came out, and a broker that dies."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from kafka_broker import needs_kafka
from kafka_trial import choice_of, local_kafka
from real_trial import Played, play, trial

from streamgauge.model.facts import BROKER
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.producer import RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.open_kafka import OUTPUTS, OpenKafka
from streamgauge.transports.kafka.topics import Topic, topic_name

pytestmark = needs_kafka
RUN = "test-trials"
LOAD = 50_000.0


@pytest.fixture(scope="module")
def one() -> Iterator[OpenKafka]:
    with local_kafka(RUN) as found:
        yield found


def on(kafka: OpenKafka, number: int = 1, **changes: Any) -> Trial:  # noqa: ANN401
    """A short trial over this Kafka."""
    return trial(LOAD, number=number, transport=choice_of(kafka.options), **changes)


def broker_of(kafka: OpenKafka) -> int:
    """The process id of its broker."""
    return kafka.processes()[BROKER][0].pid


def outputs(played: Played) -> list[dict[str, object]]:
    (query,) = (played.folder / "outputs").iterdir()
    return [row for part in sorted(query.glob("*.parquet")) for row in pq.read_table(part).to_pylist()]


def is_sound(played: Played) -> None:
    """Nothing failed in the transport, and nothing is missing.

    How the load is judged is tested elsewhere: trials of two seconds on a broker that has just started are too short.
    """
    outcome, account = played.recording.outcome, played.recording.outcome.account
    assert (outcome.ending, outcome.disturbances) == ("completed", ()), played
    assert played.verdict.kind is not VerdictKind.FAILED, played
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert account.observed == account.expected - account.not_reached > 0, played


def test_a_trial_over_kafka_has_all_counts_of_one_over_the_queue(tmp_path: Path, one: OpenKafka) -> None:
    played = play(on(one), tmp_path / "trial", transport=one)
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
    assert one.admin().topics_by_run() == {}  # its topics are gone


def test_several_load_drivers_send_to_different_partitions(tmp_path: Path, one: OpenKafka) -> None:
    is_sound(play(on(one, 4, partitions=3, drivers=2), tmp_path / "trial", transport=one))


def test_a_topic_that_exists_already_makes_the_trial_invalid(tmp_path: Path, one: OpenKafka) -> None:
    left = topic_name(RUN, 5, "purchases")
    one.admin().create([Topic(left, 1)])
    played = play(on(one, 5), tmp_path / "trial", transport=one)
    played.is_(VerdictKind.INVALID, left, "already exists")
    one.admin().delete([left])


def test_a_queue_bound_counts_what_waits_in_the_topic(tmp_path: Path, one: OpenKafka) -> None:
    asked = on(one, 6)
    slow = replace(asked, options=asked.options | {"capacity": LOAD / 4}, queue_bound=int(LOAD / 2))
    played = play(slow, tmp_path / "trial", transport=one)
    assert played.recording.outcome.ending == "queue-full"
    assert played.recording.outcome.disturbances == ()


def test_outputs_that_are_not_in_the_format_are_a_fault_of_the_system(tmp_path: Path, one: OpenKafka) -> None:
    def spoil() -> None:
        topic = topic_name(RUN, 7, OUTPUTS)
        producer = open_producer(one.admin().cluster, [topic], time.monotonic_ns)
        producer.publish(
            {TopicPartition(topic, 0): RecordColumns(None, np.zeros((1, 3), np.uint8), np.zeros(1, np.int64))}
        )
        producer.flush(20)
        producer.close()

    played = play(on(one, 7), tmp_path / "trial", {1: spoil}, transport=one)
    outcome = played.recording.outcome
    assert outcome.ending == "crashed", played
    assert "its outputs cannot be read as binary: a value is" in outcome.detail
    assert played.verdict.kind in (VerdictKind.FAILED, VerdictKind.INVALID), "INVALID: the host also delayed sends"


@pytest.mark.soak
def test_a_broker_that_is_killed_makes_the_trial_invalid_and_the_next_one_gets_a_new_broker(tmp_path: Path) -> None:
    with local_kafka(RUN, warm=False) as kafka:
        sabotage: dict[int, Callable[[], object]] = {1: lambda: os.kill(broker_of(kafka), signal.SIGKILL)}
        played = play(on(kafka), tmp_path / "trial", sabotage, transport=kafka)
        played.is_(VerdictKind.INVALID, "broker 1 at 127.0.0.1:", "ended with signal 9")
        assert played.recording.outcome.ending == "driver-failed"
        is_sound(play(on(kafka, 2), tmp_path / "again", transport=kafka))
