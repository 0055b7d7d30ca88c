"""Transports by name: what each needs, how calibrations name it, and what an experiment may set."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

from streamgauge.install.requirements import JavaRuntime, PythonPackage
from streamgauge.model.discovery import discover
from streamgauge.model.experiment import TransportChoice
from streamgauge.parse.schema import schema
from streamgauge.transports.contract import Transport
from streamgauge.transports.kafka.brokers.config import pinned_jars
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.transports.queue.transport import QueueOptions
from streamgauge.transports.registry import (
    BUILT_IN,
    GROUP,
    choice_of,
    identity_of,
    load_problems,
    transport_names,
    transport_of,
    transports,
)

GOLDEN = Path(__file__).parents[1] / "golden"
CLIENT = PythonPackage("confluent-kafka", extra="kafka", field="client")
CLUSTER = ClusterOptions.model_validate(
    {"bootstrap": "kafka:9092", "mechanism": "PLAIN", "user": "ann", "password": {"env": "PASSWORD"}}
)


def over_kafka(**options: object) -> TransportChoice:
    return choice_of(transports()["kafka"], KafkaOptions.model_validate(options))


def test_both_transports_are_built_in() -> None:
    assert [*transports()] == ["queue", "kafka"]
    assert {"queue", "kafka"} <= {*transport_names()}
    assert load_problems() == ()


def test_a_plug_in_that_is_no_transport_is_a_sentence() -> None:
    found = discover("transport", Transport, [EntryPoint("mine", "json:dumps", GROUP), *BUILT_IN])
    assert [*found.found] == ["queue", "kafka"]
    (problem,) = found.problems
    assert problem == (
        "transport mine of streamgauge does not implement the interface Transport of transports/contract.py"
    )


def test_the_registry_imports_neither_a_client_of_kafka_nor_arrow_flight() -> None:
    script = (
        "import sys; from streamgauge.transports.registry import transports; transports(); "
        "print([name for name in ('confluent_kafka', 'pyarrow.flight') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_queue_needs_nothing() -> None:
    queue, options = transport_of(TransportChoice())
    assert (queue.requirements(options), queue.secret_variables(options), queue.check(options, {})) == ((), (), ())
    assert (queue.formats, queue.allowance_ns, queue.external(options)) == ((), 0, False)
    assert queue.leftovers(options, {}) is None


def test_a_choice_has_the_traits_that_the_judge_needs() -> None:
    assert choice_of(transports()["queue"], QueueOptions()) == TransportChoice()
    kafka = over_kafka(format="json")
    assert (kafka.broker, kafka.exact_offsets, kafka.options["format"]) == (True, False, "json")


def test_local_brokers_need_java_and_jars_and_an_external_cluster_only_the_client() -> None:
    kafka, local = transport_of(over_kafka())
    assert [*kafka.requirements(local)] == [CLIENT, JavaRuntime(), pinned_jars("kafka")]
    assert (kafka.external(local), kafka.secret_variables(local), kafka.leftovers(local, {})) == (False, (), None)
    kafka, external = transport_of(over_kafka(cluster=CLUSTER))
    assert [*kafka.requirements(external)] == [CLIENT]
    assert (kafka.external(external), kafka.secret_variables(external)) == (True, ("PASSWORD",))


def test_windows_over_kafka_wait_200_ms_because_partitions_are_not_in_step() -> None:
    assert transports()["kafka"].allowance_ns == 200_000_000


def test_the_identity_has_every_option_that_changes_a_rate() -> None:
    assert identity_of(TransportChoice()) == "queue"
    assert identity_of(over_kafka()) == "kafka, binary records"
    assert identity_of(over_kafka(commit_group=True)) == "kafka, binary records"
    assert identity_of(over_kafka(format="json", brokers=3, acks="1")) == "kafka, json records, brokers 3, acks 1"
    assert identity_of(over_kafka(cluster=CLUSTER)) == "kafka, binary records, the cluster at kafka:9092"


def test_the_schema_of_the_transport_is_the_published_one() -> None:
    expected = json.loads((GOLDEN / "schema-of-transport.json").read_text(encoding="utf-8"))
    assert schema()["properties"]["transport"] == expected
