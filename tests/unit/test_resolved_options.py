"""Resolved options and parameters become objects again without being validated, nested models included."""

from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from streamgauge.engines.registry import engines
from streamgauge.model.options import Duration, Options, Size
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.options import KafkaOptions, SecretFrom
from streamgauge.transports.registry import transports
from streamgauge.workloads.registry import workloads


class Disk(Options):
    size: Size = Field(ge=1)
    path: str = "/tmp"  # noqa: S108


class Machine(Options):
    wait: Duration = 2 * SECOND
    first: Disk | None = None
    disks: tuple[Disk, ...] = ()
    by_name: dict[str, Disk] = Field(default_factory=dict)
    pair: tuple[int, Disk | None] = (1, None)
    last: Annotated[Disk | None, Field(description="the last one")] = None
    names: list[str] = Field(default_factory=list)


DISK = Disk(size="4GiB")
MACHINE = Machine(
    wait="3s", first=DISK, disks=(DISK, DISK), by_name={"a": DISK}, pair=(2, DISK), last=DISK, names=["x"]
)


@pytest.mark.parametrize("mode", ["json", "python"])
def test_nested_models_are_rebuilt_wherever_they_are(mode: str) -> None:
    again = Machine.from_resolved(MACHINE.model_dump(mode=mode))
    assert again == MACHINE
    assert isinstance(again.disks, tuple)
    assert {type(each) for each in (again.first, *again.disks, again.by_name["a"], again.pair[1], again.last)} == {Disk}


def test_what_is_a_model_already_stays_as_it_is() -> None:
    assert Machine.from_resolved({"first": DISK}).first is DISK


def test_numbers_without_a_unit_are_refused_in_a_file_and_taken_as_resolved() -> None:
    with pytest.raises(ValidationError):
        Machine.model_validate({"wait": SECOND})
    assert Machine.from_resolved({"wait": SECOND}).wait == SECOND


def test_a_missing_value_is_the_default_and_an_unknown_one_is_omitted() -> None:
    assert Machine.from_resolved({"colour": "red"}) == Machine()


def test_they_are_frozen_and_refuse_unknown_keys() -> None:
    with pytest.raises(ValidationError):
        MACHINE.wait = 1  # type: ignore[misc]
    with pytest.raises(ValidationError, match="colour"):
        Machine.model_validate({"colour": "red"})


@pytest.mark.parametrize(
    "kind",
    [*(engine.options for engine in engines().values()), *(each.params for each in workloads().values()), KafkaOptions],
    ids=lambda kind: kind.__name__,
)
def test_the_options_and_parameters_of_streamgauge_come_back_as_they_were(kind: Any) -> None:  # noqa: ANN401
    assert kind.from_resolved(kind().model_dump(mode="json")) == kind()


def test_the_cluster_of_a_transport_comes_back_with_where_its_secrets_are() -> None:
    cluster = {
        "bootstrap": "kafka:9093",
        "tls": True,
        "mechanism": "SCRAM-SHA-512",
        "user": "me",
        "password": {"env": "SECRET"},
    }
    written = KafkaOptions.model_validate({"cluster": cluster, "linger": "5ms"})
    again = transports()["kafka"].resolve(written.to_json())
    assert again == written
    assert again.cluster is not None
    assert again.cluster.password == SecretFrom(env="SECRET")
    assert again.producer_used == "confluent"
