"""A cluster that gives its users few rights, or quotas: what is missing is reported, and the guide's list is enough."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cli_session import streamgauge
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka_broker import fresh_topic, launched, needs_kafka, shared
from kafka_events import KINDS
from test_kafka_twenty_secrets import Secured, secret_file

from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.start import start_brokers, wait_until
from streamgauge.transports.kafka.client.producer import (
    Producer,
    ProducerFull,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)

pytestmark = [pytest.mark.soak, needs_kafka]
STRICT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:CN=streamgauge",
}
"""Only brokers may do everything: they have certificates, users have passwords."""
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "kafka.md"


@contextmanager
def strict(folder: Path) -> Iterator[tuple[Secured, AdminClient]]:
    """A broker whose one user has no rights, and a client that may give it some."""
    with (
        launched() as (launcher, runtime),
        start_brokers(runtime, folder, launcher, secured=True, more=STRICT) as brokers,
    ):
        (password,) = launcher.runtime.glob("kafka-keys-*/password")
        (file,) = launcher.runtime.glob("*.properties")
        internal = re.search(r"advertised\.listeners=.*INTERNAL://([^,\s]+)", file.read_text())
        assert internal is not None
        known = brokers.cluster.security
        assert known is not None
        chief = AdminClient(
            {
                "bootstrap.servers": internal[1],
                "security.protocol": "SSL",
                "ssl.ca.location": str(known.authority),
                "ssl.keystore.location": str(password.with_name("broker.p12")),
                "ssl.keystore.password": password.read_text(),
            }
        )
        yield Secured(brokers.cluster, folder, password.read_text()), chief


def allow(chief: AdminClient, *operations: str, on: ResourceType = ResourceType.TOPIC) -> None:
    """Give the user rights on the topics of streamgauge, or on its groups."""
    bindings = [
        AclBinding(
            on,
            "streamgauge.",
            ResourcePatternType.PREFIXED,
            "User:streamgauge",
            "*",
            AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for promise in chief.create_acls(bindings).values():
        promise.result(20)


def rights() -> list[str]:
    """The rights that the guide names."""
    (said,) = re.findall(r"with Kafka's own rules, (.*?) on the prefixed topic resource", GUIDE.read_text("utf-8"))
    return re.findall(r"`(\w+)`", said)


def test_missing_rights_are_reported_and_those_of_the_guide_are_enough(tmp_path: Path) -> None:
    assert {*rights()} == {"Create", "Describe", "DescribeConfigs", "Write", "Read", "Delete"}
    out = tmp_path / "runs"
    with strict(tmp_path / "broker") as (broker, chief):
        experiment = broker.experiment(tmp_path, "mine.yaml", secret_file(tmp_path, "password", broker.password))
        said = streamgauge("run", experiment, "--out", out)
        assert said.code == 2, said.err
        assert "cannot create the topic" in said.err
        assert "needs the rights Create, Describe, DescribeConfigs, Write, Read and Delete" in said.err
        allow(chief, *(right for right in rights() if right not in ("Delete", "DescribeConfigs")))
        said = streamgauge("run", experiment, "--out", out)
        assert said.code == 2, said.err
        assert "error 30, the user may not use this consumer group" in said.err
        assert "the right Read on groups whose names begin with streamgauge" in said.err
        allow(chief, "Read", on=ResourceType.GROUP)
        said = streamgauge("run", experiment, "--out", out)
        assert said.code == 2, said.err
        assert "cannot delete the topic streamgauge.check-" in said.err
        assert "needs the rights" in said.err
        allow(chief, "Delete")
        assert "Deleted 2 topics" in streamgauge("clean", "--cluster", experiment, "--out", out, "--yes").err
        allow(chief, "DescribeConfigs")
        said = streamgauge("run", experiment, "--out", out, "--json")
        assert said.code in (0, 3, 6), said.err  # 3, 6: the host disturbed trials
        experiment.write_text(experiment.read_text().replace("name: reference, capacity: 200k/s", "name: spark"))
        said = streamgauge(
            "run",
            experiment,
            "--out",
            out,
            "--json",
            "--set",
            "engine.warm_limit=30s",
            "--set",
            "engine.warm_load=2k/s",
        )
        assert said.code in (0, 3, 6), said.err
        assert any(trial["measured"]["account"]["observed"] for trial in said.document["trials"]), said.err
        assert wait_until(lambda: KafkaAdmin(broker.cluster, wait_until).topics_by_run() == {}, 20), "no topic is left"


@contextmanager
def quota(rate: int) -> Iterator[None]:
    """At most so many bytes per second of every client, for a while, set with Kafka's own tool."""
    with launched() as (_, runtime):
        tool = [str(runtime.java), "-cp", f"{runtime.jars}/*", "kafka.admin.ConfigCommand", "--alter"]
        tool += ["--bootstrap-server", shared().cluster.bootstrap, "--entity-type", "clients", "--entity-default"]
        subprocess.run([*tool, "--add-config", f"producer_byte_rate={rate}"], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run([*tool, "--delete-config", "producer_byte_rate"], check=True, capture_output=True)


def overload(producer: Producer, topic: str) -> None:
    """Publish far more than the quota allows, until the producer gives up."""
    part = RecordColumns(None, np.zeros((1_000, 100), np.uint8), np.zeros(1_000, np.int64))
    for _ in range(400):
        producer.publish({TopicPartition(topic, 0): part})
        producer.poll(0.05)


def test_a_quota_is_named_if_the_cluster_does_not_keep_up() -> None:
    name, sending = fresh_topic(), ProducerSettings(batch=10_000, backlog=1 << 20, in_flight=1)
    with quota(2_000):
        for kind in KINDS:
            producer = open_producer(shared().cluster, [name], time.monotonic_ns, sending, kind)
            with pytest.raises(ProducerFull, match=r"a quota of the cluster delayed this client by \d+ ms"):
                overload(producer, name)
            producer.close()


def test_a_request_has_no_more_bytes_than_a_broker_accepts_however_many_partitions_there_are() -> None:
    name, partitions = fresh_topic(120), 120
    part = RecordColumns(None, np.zeros((9_000, 100), np.uint8), np.zeros(9_000, np.int64))
    producer = open_producer(shared().cluster, [name], time.monotonic_ns, ProducerSettings(), "vectorised")
    places = [TopicPartition(name, p) for p in range(partitions)]
    producer.publish(dict.fromkeys(places, part))
    producer.flush(60)
    assert producer.acknowledged() == dict.fromkeys(places, 9_000)
    producer.close()
