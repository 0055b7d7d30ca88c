"""A real broker from jars: topics as a trial needs them, TLS and SCRAM, and nothing left of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from cli_session import streamgauge, write
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import CORES, administration, fresh_topic, launched, needs_kafka, shared
from marked_processes import MARK, marked, within
from pydantic import SecretStr

from streamgauge.transports.kafka.brokers.admin import ClusterError, KafkaAdmin, LeadershipError, TopicNotEmpty
from streamgauge.transports.kafka.brokers.start import BrokerCluster, start_brokers, wait_until
from streamgauge.transports.kafka.client.confluent_reader import TopicOffsets
from streamgauge.transports.kafka.client.producer import RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.cluster import Cluster, Security
from streamgauge.transports.kafka.topics import Topic, run_of, topic_name

pytestmark = needs_kafka


def impatient(cluster: Cluster) -> KafkaAdmin:
    """An administration that does not wait long."""
    return KafkaAdmin(cluster, lambda holds: wait_until(holds, 0.3))


def produce(cluster: Cluster, topic: str, count: int) -> None:
    """Put records into a topic, each with the timestamp 1."""
    producer = Producer(cluster.client_settings())
    for number in range(count):
        producer.produce(topic, str(number).encode(), timestamp=1)
    assert producer.flush(20) == 0


def test_a_fresh_topic_is_empty_and_led_by_one_broker() -> None:
    topic = fresh_topic(partitions=5)
    assert administration().end_offsets([topic]) == {topic: (0,) * 5}
    administration().check_leaders([Topic(topic, 5)], leader=1)


def test_every_record_is_stamped_by_the_broker() -> None:
    topic, cluster = fresh_topic(), shared().cluster
    produce(cluster, topic, 10)
    assert administration().end_offsets([topic]) == {topic: (10,)}
    consumer = Consumer({**cluster.client_settings(), "group.id": "test"})
    consumer.assign([Place(topic, 0, 0)])
    read = [message for message in consumer.consume(10, timeout=20) if not message.error()]
    consumer.close()
    kinds, stamps = zip(*(message.timestamp() for message in read), strict=True)
    assert len(read) == 10
    assert {*kinds} == {TIMESTAMP_LOG_APPEND_TIME}
    assert min(stamps) > 1_700_000_000_000, "not the producer's own, which is 1"


def test_leftovers_and_wrong_leaders_are_noticed() -> None:
    topic, admin = fresh_topic(), impatient(shared().cluster)
    with pytest.raises(LeadershipError, match=rf"broker 2 should lead every .*; partition 0 of {topic} is led by 1"):
        admin.check_leaders([Topic(topic, 1)], leader=2)
    with pytest.raises(LeadershipError, match="has 1 partitions, not 2"):
        admin.check_leaders([Topic(topic, 2)], leader=1)
    with pytest.raises(LeadershipError, match=r"streamgauge\.ghost\.001\.in does not exist"):
        admin.check_leaders([Topic("streamgauge.ghost.001.in", 1)], leader=1)
    produce(shared().cluster, topic, 3)
    with pytest.raises(TopicNotEmpty, match=f"{topic} was just created but has 3 records"):
        admin.require_empty([topic])


def test_topics_that_cannot_be_created_are_reported_before_any_is_created() -> None:
    admin, name = impatient(shared().cluster), topic_name("cannot", 1, "in")
    with pytest.raises(ClusterError, match=r"2 copies of a partition need as many brokers; there are 1"):
        admin.create([Topic(name, 1, replication=2)])
    with pytest.raises(ClusterError, match="no topic streamgauge"):
        admin.end_offsets([name])
    topic = fresh_topic()
    with pytest.raises(ClusterError, match=rf"cannot create the topic {topic}: .*exists"):
        admin.create([Topic(topic, 1)])


def test_a_topic_that_becomes_known_while_others_are_deleted_is_deleted_too() -> None:
    first, late = fresh_topic(), topic_name("late", 1, "in")

    def create_late(holds: Callable[[], bool]) -> bool:
        administration().create([Topic(late, 1)])
        return wait_until(holds, 20)

    assert set(KafkaAdmin(shared().cluster, create_late).delete([first, late])) <= {first, late}
    assert "late" not in administration().topics_by_run()


def test_topics_that_were_created_beside_one_that_exists_can_be_deleted() -> None:
    there, new = fresh_topic(), [topic_name("beside", 1, f"in-{number}") for number in range(3)]
    with pytest.raises(ClusterError, match=rf"cannot create the topic {there}: .*exists"):
        administration().create([Topic(name, 1) for name in (there, *new)])
    assert administration().delete(new) == tuple(new)
    assert "beside" not in administration().topics_by_run()


def test_only_topics_of_a_run_are_listed_and_removed() -> None:
    mine, raw = fresh_topic(), AdminClient({**shared().cluster.client_settings()})
    for promise in raw.create_topics([NewTopic("orders", num_partitions=1)]).values():
        promise.result(20)
    run = run_of(mine)
    assert run is not None
    assert administration().topics_by_run()[run] == (mine,)
    assert "orders" not in [name for names in administration().topics_by_run().values() for name in names]
    for wrong in (administration().delete, lambda names: administration().create([Topic(names[0], 1)])):
        with pytest.raises(
            ValueError, match="orders does not contain the id of a run, so streamgauge does not change it"
        ):
            wrong(["orders"])
    assert administration().delete([mine, topic_name("ghost", 1, "in")]) == (mine,)
    other = fresh_topic()
    assert administration().delete([other]) == (other,)
    left = raw.list_topics(timeout=20).topics
    assert "orders" in left
    assert mine not in left


def test_the_log_of_the_broker_shows_what_it_does() -> None:
    log = (shared().folder / "kafka-broker-1.log").read_text()
    assert "Kafka Server started" in log
    assert "SLF4J: " not in log
    assert [*shared().brokers.failures] == []


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerCluster, Path]]:
    folder = tmp_path_factory.mktemp("secured")
    with launched() as (launcher, runtime), start_brokers(runtime, folder, launcher, secured=True) as brokers:
        yield brokers, folder


def _security(cluster: Cluster) -> Security:
    assert cluster.security is not None
    return cluster.security


def test_a_cluster_that_demands_tls_and_scram_is_used_like_any_other(secured: tuple[BrokerCluster, Path]) -> None:
    cluster, topic = secured[0].cluster, topic_name("secured", 1, "events")
    admin = KafkaAdmin(cluster, wait_until)
    assert admin.create([Topic(topic, 2)]) == 1
    produce(cluster, topic, 50)
    assert sum(admin.end_offsets([topic])[topic]) == 50
    assert admin.delete([topic]) == (topic,)


def test_events_are_sent_to_such_a_cluster_and_read_back(secured: tuple[BrokerCluster, Path]) -> None:
    cluster, topic = secured[0].cluster, topic_name("secured", 2, "events")
    KafkaAdmin(cluster, wait_until).create([Topic(topic, 2)])
    values = np.arange(2_000).astype(np.uint8).reshape(500, 4)
    producer = open_producer(cluster, [topic], time.monotonic_ns)
    producer.publish({TopicPartition(topic, 1): RecordColumns(None, values, np.full(500, 10**15))})
    producer.flush(20)
    producer.close()
    assert [*producer.acknowledged().values()] == [0, 500]
    assert TopicOffsets(cluster, topic).end_offsets() == {0: 0, 1: 500}
    assert read_topic(cluster, topic).column("value").to_pylist() == [row.tobytes() for row in values]


OWN_CLUSTER = """\
name: own-cluster
workload: {{name: windowed-aggregation, window: 8s, slide: 4s}}
engine: {{name: reference, capacity: 730k/s}}
find: sustainable-throughput
load: {{between: [10k/s, 5M/s]}}
transport:
  name: kafka
  cluster:
    bootstrap: {bootstrap}
    tls: true
    authority: {authority}
    mechanism: {mechanism}
    user: {user}
    password: {{env: PASSWORD_OF_THE_CLUSTER}}
"""


def test_topics_on_the_users_cluster_are_listed_and_then_removed_and_no_other_is_touched(
    secured: tuple[BrokerCluster, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, known = secured[0].cluster, _security(secured[0].cluster)
    assert known.password is not None
    told = {"authority": known.authority, "mechanism": known.mechanism, "user": known.user}
    words = ("clean", "--cluster", write(tmp_path, OWN_CLUSTER.format(bootstrap=cluster.bootstrap, **told)))
    out = ("--out", tmp_path / "runs")
    missing = streamgauge(*words, *out)
    assert (
        missing.code,
        "PASSWORD_OF_THE_CLUSTER" in missing.err and "is not set" in " ".join(missing.err.split()),
    ) == (2, True)
    monkeypatch.setenv("PASSWORD_OF_THE_CLUSTER", known.password.get_secret_value())

    admin, raw = KafkaAdmin(cluster, wait_until), AdminClient({**cluster.client_settings()})
    mine = [Topic(topic_name("clean-a", trial, "in"), 2) for trial in (1, 2)] + [
        Topic(topic_name("clean-b", 1, "in"), 1)
    ]
    assert admin.create(mine) == 1, "one broker leads all of them, which was verified"
    foreign = ["orders", "streamgauge", "streamgauge.clean-a", "streamgauge.clean-a.001.in.copy"]
    for promise in raw.create_topics([NewTopic(name, num_partitions=1) for name in foreign]).values():
        promise.result(20)
    produce(cluster, mine[0].name, 7)
    produce(cluster, "orders", 5)
    names = {topic.name for topic in mine}

    listed = streamgauge(*words, *out, "--json")
    items = {item["topic"]: item["records"] for item in listed.document["items"] if item["topic"] in names}
    assert (listed.code, listed.document["deleted"], items) == (0, False, dict.fromkeys(names, 0) | {mine[0].name: 7})
    assert names <= {*raw.list_topics(timeout=20).topics}, "listing deletes nothing"
    one = streamgauge(*words, *out, "clean-b", "--yes")
    assert (one.code, "Deleted 1 topic of 1 run" in one.err) == (0, True), one
    assert streamgauge(*words, *out, "orders", "--yes").code == 2
    rest = streamgauge(*words, *out, "--yes")
    assert rest.code == 0
    left = {*raw.list_topics(timeout=20).topics}
    assert {*foreign} <= left
    assert not names & left
    assert admin.topics_by_run() == {}
    assert TopicOffsets(cluster, "orders").end_offsets() == {0: 5}
    assert "Nothing to clean" in streamgauge(*words, *out).err


def test_clients_without_the_right_login_are_rejected_with_the_reason(secured: tuple[BrokerCluster, Path]) -> None:
    cluster = secured[0].cluster
    known = _security(cluster)
    guess = SecretStr("guess")
    with pytest.raises(ClusterError, match=r"cannot be reached: .*[Aa]uthentication failed") as refused:
        impatient(replace(cluster, security=replace(known, password=guess))).brokers(seconds=2.0)
    assert "guess" not in str(refused.value)
    with pytest.raises(ClusterError, match=r"cannot be reached: .*certificate verify failed"):
        impatient(replace(cluster, security=replace(known, authority=None))).brokers(seconds=2.0)
    with pytest.raises(ClusterError, match="cannot be reached"):
        impatient(replace(cluster, security=None)).brokers(seconds=2.0)


def test_no_secret_of_a_cluster_is_in_any_log_argument_or_environment(secured: tuple[BrokerCluster, Path]) -> None:
    brokers, folder = secured
    password = _security(brokers.cluster).password
    assert password is not None
    canary = password.get_secret_value().encode()
    texts = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(texts) > 5
    (broker,) = brokers.processes
    for pid in (broker.pid, broker.guard, os.getpid()):
        texts |= {
            Path(f"/proc/{pid}/{name}"): Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")
        }
    assert [path for path, text in texts.items() if canary in text] == []
    assert b"[hidden]" in texts[folder / "kafka-broker-1.log"]


def test_a_broker_that_was_killed_is_named_and_its_data_are_removed(secured: tuple[BrokerCluster, Path]) -> None:
    brokers, folder = secured
    (broker,) = brokers.processes
    assert (folder / "kafka-broker-1" / "data").is_dir()
    os.kill(broker.pid, signal.SIGKILL)
    assert within(10, lambda: brokers.failures == (f"broker 1 at {brokers.cluster.bootstrap} ended with signal 9",))
    assert within(10, lambda: not (folder / "kafka-broker-1").exists())
    assert (folder / "kafka-broker-1.log").exists(), "its log stays"


CONTROLLER = """
import json, pathlib, sys, time
sys.path.insert(0, sys.argv[2])
from kafka_broker import launched, start_brokers
folder = pathlib.Path(sys.argv[1])
with launched() as (launcher, runtime), start_brokers(runtime, folder, launcher) as brokers:
    print(json.dumps({"runtime": str(launcher.runtime), "bootstrap": brokers.cluster.bootstrap}), flush=True)
    time.sleep(600)
"""


def test_the_folder_of_a_broker_may_be_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with launched() as (launcher, runtime), start_brokers(runtime, Path("here"), launcher) as brokers:
        assert impatient(brokers.cluster).brokers() == (1,)
    assert (tmp_path / "here").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="guards adopt orphans on Linux alone")
def test_a_killed_controller_takes_the_broker_its_data_and_its_ports_with_it(tmp_path: Path) -> None:
    before = {*Path(tempfile.gettempdir()).iterdir()}
    words = [sys.executable, "-c", CONTROLLER, str(tmp_path), str(Path(__file__).parent)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, MARK: tmp_path.name}) as controller:
        assert controller.stdout is not None
        told = json.loads(controller.stdout.readline())
        (java,) = [psutil.Process(pid) for pid, words in marked(tmp_path.name).items() if "kafka.Kafka" in words]
        assert not CORES or set(java.cpu_affinity()) == {*CORES}
        controller.kill()
        controller.wait()
    assert within(10, lambda: not marked(tmp_path.name)), marked(tmp_path.name)
    assert within(5, lambda: not Path(told["runtime"]).exists())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kafka-broker-1-storage.log", "kafka-broker-1.log"]
    host, _, port = told["bootstrap"].partition(":")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), 1)
    new = {path.name for path in {*Path(tempfile.gettempdir()).iterdir()} - before if path.name.startswith("hsperf")}
    assert new == set()
