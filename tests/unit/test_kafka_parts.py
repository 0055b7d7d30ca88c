"""Kafka without a broker: settings, names, assignments, pins, secrets."""

import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from streamgauge.install.jars import fetched_count, maven_command, project_file
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.brokers.config import (
    BROKER,
    CONNECTOR,
    BrokerConfig,
    BrokerPorts,
    BrokerRuntime,
    TlsKeys,
    broker_process,
    keytool_commands,
    pinned_jars,
    properties,
    settings,
    storage_arguments,
    storage_process,
)
from streamgauge.transports.kafka.client import protocol
from streamgauge.transports.kafka.client.producer import ProducerSettings, throttle_note
from streamgauge.transports.kafka.client.protocol import BrokerError, Response, parse_produce, throttled
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints, Security
from streamgauge.transports.kafka.topics import Topic, assignment, by_run, run_of, topic_name
from streamgauge.transports.kafka.try_cluster import advised

NAMES = (BROKER, CONNECTOR)
RUN = "20261116-062300-quickstart-kafka-3f9a"
CANARY = SecretStr("canary-in-a-coal-mine")
NODE = BrokerConfig(1, BrokerPorts(1001, 1002, 1003), 1003, Path("/data/kafka-broker-1"))
KEYS = TlsKeys(Path("/run/broker.p12"), SecretStr("keystore-canary"), Path("/run/authority.pem"), "ann", CANARY)
SCRAM = Security(tls=True, authority=Path("/ca.pem"), mechanism="SCRAM-SHA-512", user="ann", password=CANARY)


def test_every_jar_is_pinned_by_coordinates_and_checksum() -> None:
    assert [(name, len(pinned_jars(name).jars)) for name in NAMES] == [("kafka", 92), ("spark-kafka", 5)]
    for name in NAMES:
        for jar in pinned_jars(name).jars:
            assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
            assert all(re.fullmatch(r"[A-Za-z0-9._-]+", part) for part in (jar.group, jar.artifact, jar.version)), jar
    assert len({jar.sha256 for name in NAMES for jar in pinned_jars(name).jars}) == 97, "a checksum was copied"


def test_the_broker_has_its_tools_and_a_log() -> None:
    names = pinned_jars("kafka").checksums
    assert {"kafka_2.13-4.3.0.jar", "kafka-tools-4.3.0.jar", "slf4j-simple-1.7.36.jar"} <= {*names}
    assert pinned_jars("kafka").folder(Path("/cache")) == Path("/cache/kafka/4.3.0")


@pytest.mark.parametrize("name", NAMES)
def test_maven_gets_every_jar_and_no_address(name: str) -> None:
    jars = pinned_jars(name)
    text = project_file(jars, Path("/cache/<odd> & new"))
    assert text.count("<artifactItem>") == len(jars.jars)
    assert "<outputDirectory>/cache/&lt;odd&gt; &amp; new</outputDirectory>" in text
    assert re.findall(r"https?://[^\"<]*", text) == ["http://maven.apache.org/POM/4.0.0"], "the schema's name alone"
    assert maven_command(Path("pom.xml")) == ("mvn", "--batch-mode", "--file", "pom.xml", "dependency:copy")


def test_progress_is_read_from_the_output_of_maven() -> None:
    jars, line = pinned_jars("spark-kafka"), "[INFO] Configured Artifact: a:b:1:jar\n"
    assert [fetched_count(jars, line * n) for n in (0, 1, 2, 4, 9)] == [0, 0, 1, 3, 5]


def test_the_name_of_a_topic_contains_the_run_the_trial_and_the_stream() -> None:
    name = topic_name(RUN, 7, "purchases")
    assert name == f"streamgauge.{RUN}.007.purchases"
    assert run_of(name) == RUN


@pytest.mark.parametrize(
    "name", ["orders", "streamgauge", f"streamgauge.{RUN}", "streamgauge.a.b.c", f"x.streamgauge.{RUN}.001.in", ""]
)
def test_a_topic_of_another_program_is_never_treated_as_one_of_streamgauge(name: str) -> None:
    assert run_of(name) is None


def test_topics_are_listed_by_run_and_a_run_is_not_its_prefix() -> None:
    names = [topic_name("a-1", 1, "in"), topic_name("a", 1, "out"), topic_name("a", 1, "in"), "orders"]
    assert by_run(names) == {
        "a": ("streamgauge.a.001.in", "streamgauge.a.001.out"),
        "a-1": ("streamgauge.a-1.001.in",),
    }


@pytest.mark.parametrize(("run", "stream"), [("a.b", "in"), ("a", "in.put"), ("", "in"), ("a", "in put"), ("ü", "in")])
def test_a_name_that_could_be_misread_is_refused(run: str, stream: str) -> None:
    with pytest.raises(ValueError, match="letters, digits and dashes"):
        topic_name(run, 1, stream)
    with pytest.raises(ValueError, match="too long"):
        topic_name("x" * 250, 1, "in")


def test_a_topic_is_stamped_by_the_broker_by_default() -> None:
    assert Topic("t", 1).effective["message.timestamp.type"] == "LogAppendTime"
    assert Topic("t", 1, settings={"segment.bytes": "1"}).effective["segment.bytes"] == "1"


def test_one_broker_leads_every_partition_and_the_copies_go_round() -> None:
    assert assignment(3, 1, [1], 1) == [[1], [1], [1]]
    assert assignment(4, 2, [3, 1, 2], 2) == [[2, 1], [2, 3], [2, 1], [2, 3]]
    assert assignment(2, 3, [1, 2, 3], 1) == [[1, 2, 3], [1, 3, 2]]
    assert assignment(9, 5, [1, 2, 3, 4, 5], 5)[8] == [5, 1, 2, 3, 4]


@pytest.mark.parametrize(("replication", "leader"), [(3, 1), (0, 1), (1, 3)])
def test_an_assignment_that_cannot_be_is_refused(replication: int, leader: int) -> None:
    with pytest.raises(ValueError, match="there are 1, 2"):
        assignment(1, replication, [2, 1], leader)


def test_the_first_broker_is_the_controller_and_all_keep_to_this_machine() -> None:
    first, second = settings(replace(NODE, brokers=3)), settings(replace(NODE, number=2, brokers=3))
    assert (first["process.roles"], second["process.roles"]) == ("broker,controller", "broker")
    assert first["listeners"] == "CLIENT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002,CONTROLLER://127.0.0.1:1003"
    assert second["listeners"] == second["advertised.listeners"] == "CLIENT://127.0.0.1:1001,INTERNAL://127.0.0.1:1002"
    assert first["controller.quorum.bootstrap.servers"] == second["controller.quorum.bootstrap.servers"]
    assert first["log.dirs"] == "/data/kafka-broker-1/data"
    assert first["log.message.timestamp.type"] == "LogAppendTime"


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (2, "2"), (3, "3"), (5, "3")])
def test_the_topics_of_kafka_itself_have_as_many_copies_as_there_can_be(brokers: int, copies: str) -> None:
    held = settings(replace(NODE, brokers=brokers))
    factors = {value for key, value in held.items() if key.endswith("replication.factor")}
    assert factors == {copies}


def test_settings_are_written_as_java_reads_them() -> None:
    assert properties({"a.b": "c", "d": "e\\f"}) == "a.b=c\nd=e\\\\f\n"


def test_a_secured_broker_rejects_clients_without_tls_and_a_login() -> None:
    held = settings(replace(NODE, keys=KEYS))
    assert held["listener.security.protocol.map"] == "CLIENT:SASL_SSL,INTERNAL:SSL,CONTROLLER:SSL"
    assert held["listener.name.client.sasl.enabled.mechanisms"] == "SCRAM-SHA-512"
    assert (
        held["listener.name.internal.ssl.client.auth"] == held["listener.name.controller.ssl.client.auth"] == "required"
    )
    assert "CLIENT:PLAINTEXT" in settings(NODE)["listener.security.protocol.map"]


def test_no_password_is_an_argument_of_any_program() -> None:
    node, runtime = replace(NODE, keys=KEYS), BrokerRuntime(Path("/jvm/bin/java"), Path("/jars"))
    lines = [
        broker_process(runtime, node, Path("/run/p")).argv,
        storage_process(runtime, node, Path("/run/p"), Path("/run/w")).argv,
    ]
    lines += keytool_commands(Path("/jvm/bin/keytool"), KEYS.keystore, Path("/run/password"), KEYS.authority)
    assert all("canary" not in word for line in lines for word in line)
    assert "password=canary-in-a-coal-mine]" in storage_arguments(node, "id"), "the tool reads it from a file"
    assert "password" not in storage_arguments(NODE, "id")


def test_a_broker_is_small_and_leaves_nothing_behind() -> None:
    child = broker_process(BrokerRuntime(Path("/jvm/bin/java"), Path("/jars"), (0,), "512m"), NODE, Path("/run/p"))
    assert {"-Xmx512m", "-XX:ActiveProcessorCount=1", "-XX:-UsePerfData", "-Djava.io.tmpdir=/data/kafka-broker-1"} <= {
        *child.argv
    }
    assert not any("TieredStopAtLevel" in word for word in child.argv)
    assert child.temporary == NODE.folder


def test_a_secret_is_shown_nowhere() -> None:
    cluster = Cluster("broker:9093", SCRAM)
    assert "canary" not in f"{cluster} {cluster!r} {SCRAM!r} {KEYS!r}"
    assert "ann" in repr(cluster)


def test_a_plain_cluster_needs_only_its_address() -> None:
    assert (
        Cluster("a:1,b:2").client_settings() == Cluster("a:1,b:2").java_settings() == {"bootstrap.servers": "a:1,b:2"}
    )
    assert Cluster("a:1").plaintext
    assert Cluster("a:1", Security()).plaintext
    assert not Cluster("a:1", SCRAM).plaintext


def test_a_client_gets_what_it_needs_to_log_in() -> None:
    assert Cluster("b:1", SCRAM).client_settings() == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "canary-in-a-coal-mine",
    }
    assert Cluster("b:1", SCRAM).java_settings() == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="canary-in-a-coal-mine";',
    }


@pytest.mark.parametrize(
    ("security", "protocol"),
    [
        (Security(), "PLAINTEXT"),
        (Security(tls=True), "SSL"),
        (Security(mechanism="PLAIN", user="ann", password=CANARY), "SASL_PLAINTEXT"),
        (SCRAM, "SASL_SSL"),
    ],
)
def test_security_has_the_name_that_kafka_gives_it(security: Security, protocol: str) -> None:
    assert security.protocol == protocol
    assert security.client_settings()["security.protocol"] == security.java_settings()["security.protocol"] == protocol


def test_a_password_with_quotes_stays_one_word() -> None:
    odd = Security(mechanism="PLAIN", user="ann", password=SecretStr('a"b\\c'))
    assert odd.java_settings()["sasl.jaas.config"].endswith('password="a\\"b\\\\c";')


def test_half_a_login_is_refused() -> None:
    with pytest.raises(ValueError, match="needs user and password"):
        Security(mechanism="PLAIN", user="ann")
    with pytest.raises(ValueError, match="certificate and key need each other"):
        Security(tls=True, certificate=Path("/cert.pem"))


@pytest.mark.parametrize(("largest", "batch"), [(0, 1_000_000), (200_000, 200_000), (5_000_000, 1_000_000)])
def test_batches_are_no_larger_than_topics_accept(largest: int, batch: int) -> None:
    assert ProducerSettings().within(largest) == ProducerSettings(batch=batch)


def test_a_child_gets_its_topics_and_what_they_accept() -> None:
    ends = KafkaEndpoints(Cluster("a:1", SCRAM), {"purchases": "in"}, "out", "avro", "group", 200_000)
    assert KafkaEndpoints.from_wire(ends.wire()) == ends


def test_a_broker_may_have_other_settings() -> None:
    held = settings(replace(NODE, more={"message.max.bytes": "200000", "log.retention.ms": "1000"}))
    assert (held["message.max.bytes"], held["log.retention.ms"]) == ("200000", "1000")


def test_the_end_of_a_response_contains_how_long_a_quota_delays_the_client() -> None:
    batch = struct.pack(">ihqqq", 0, 0, 7, -1, 0) + struct.pack(">i", 0) + struct.pack(">h", -1)
    topic = protocol.text("t") + protocol.array([batch])
    answer = Response(memoryview(protocol.array([topic]) + struct.pack(">i", 1_500)))
    assert [one.offset for one in parse_produce(answer, "a:1")] == [7]
    assert throttled(answer) == 1_500
    assert throttle_note(1_500) == "; a quota of the cluster delayed this client by 1500 ms"
    assert throttle_note(0) == ""


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (10, "Set transport.batch to the largest batch that the cluster accepts"),
        (19, "Set transport.replication to min.insync.replicas of the cluster or more"),
        (29, "rights Create, Describe, DescribeConfigs, Write, Read and Delete on topics whose names begin with"),
    ],
)
def test_what_a_cluster_refuses_is_reported_with_what_to_do(code: int, advice: str) -> None:
    assert advice in advised(BrokerError("a:1 did not take records", code, "t"))
    assert advised(TransportError("the cluster is gone")) == "the cluster is gone"
