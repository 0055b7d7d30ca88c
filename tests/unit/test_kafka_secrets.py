"""The user's own cluster: secrets come from the environment or from files, and what is wrong never repeats them."""

import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from streamgauge.cli.environment import take_secrets
from streamgauge.parse import ExperimentError, read
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.transports.kafka.secrets import SecretError, open_user_cluster, secret_variables
from streamgauge.transports.kafka.transport import kafka

CANARY = "canary-5d1f0c"
PLACE = "{env: A}"
EXPERIMENT = """\
name: mine
workload: {{name: windowed-aggregation, window: 8s, slide: 4s}}
engine: {{name: reference, capacity: 730k/s}}
find: sustainable-throughput
load: {{between: [10k/s, 5M/s]}}
transport:
  name: kafka
  cluster:
    bootstrap: "kafka:9092"
    tls: true
    mechanism: SCRAM-SHA-512
    user: ann
    password: {password}
"""


def options(**more: object) -> ClusterOptions:
    said: dict[str, object] = {"bootstrap": "kafka:9092", "tls": True, "mechanism": "SCRAM-SHA-512", "user": "ann"}
    return ClusterOptions.model_validate(said | {"password": {"env": "KAFKA_PASSWORD"}} | more)


def resolve(options: ClusterOptions, environment: dict[str, str]) -> Cluster:
    """The cluster with the secrets of these environment variables."""
    return open_user_cluster(options, {name: SecretStr(value) for name, value in environment.items()})


def test_a_password_comes_from_the_environment() -> None:
    cluster = resolve(options(), {"KAFKA_PASSWORD": CANARY})
    assert cluster.client_settings()["sasl.password"] == CANARY
    assert CANARY not in f"{cluster} {cluster!r}"
    assert secret_variables(options()) == ("KAFKA_PASSWORD",)


def test_or_from_a_file_whose_last_line_end_is_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{CANARY}\n")
    file.chmod(0o600)
    key = tmp_path / "client.pem"
    key.write_text("")
    given = options(
        password={"file": str(file)},
        key_password={"env": "KEY"},
        certificate=str(key),
        key=str(key),
        authority=str(key),
    )
    held = resolve(given, {"KEY": "k-word"}).client_settings()
    assert (held["sasl.password"], held["ssl.key.password"]) == (CANARY, "k-word")
    assert secret_variables(given) == ("KEY",)


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, r"variable KAFKA_PASSWORD, .*, is not set; set it with: read -rs KAFKA_PASSWORD && export KAFKA_PASSWORD"),
        ({"KAFKA_PASSWORD": ""}, "a secret of your cluster, is empty"),
    ],
)
def test_a_variable_without_a_secret_is_named_with_the_line_to_type(environment: dict[str, str], why: str) -> None:
    with pytest.raises(SecretError, match=why):
        resolve(options(), environment)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (None, 0o600, "No such file or directory"),
        (f"{CANARY}\n{CANARY}\n".encode(), 0o600, "in one line, and nothing else"),
        (b"\n", 0o600, "in one line, and nothing else"),
        (b"\xff\xfe" + CANARY.encode(), 0o600, "is not a text file"),
        (CANARY.encode(), 0o644, r"every user of this machine can read the secret in .*Run `chmod o-rwx "),
    ],
)
def test_a_file_that_does_not_do_is_named_and_its_content_is_not(
    content: bytes | None, mode: int, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    with pytest.raises(SecretError, match=why) as wrong:
        resolve(options(password={"file": str(file)}), {})
    assert str(file) in str(wrong.value)
    assert CANARY not in str(wrong.value)


def test_paths_of_certificates_are_whole_because_children_have_other_working_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("ca.pem", "./ca.pem", "~/ca.pem"):
        held = resolve(options(authority=named), {"KAFKA_PASSWORD": CANARY}).client_settings()
        assert held["ssl.ca.location"] == str(tmp_path / "ca.pem")


def test_a_missing_certificate_is_reported_before_anything_is_tried() -> None:
    with pytest.raises(SecretError, match=r"transport\.cluster\.authority: file /nowhere/ca\.pem does not exist"):
        resolve(options(authority="/nowhere/ca.pem"), {"KAFKA_PASSWORD": CANARY})


@pytest.mark.parametrize(
    "said", [CANARY, f"[{CANARY}]", f"{{value: {CANARY}}}", f"{{env: {CANARY}}}", f"{{env: A, file: {CANARY}}}"]
)
def test_a_password_in_the_experiment_is_refused_and_not_repeated(said: str) -> None:
    with pytest.raises(ExperimentError) as wrong:
        read(EXPERIMENT.format(password=said), source="ours.yaml")
    assert "transport.cluster.password" in str(wrong.value)
    assert CANARY not in str(wrong.value) + repr(wrong.value.problems)
    with pytest.raises(ExperimentError) as wrong:
        read(EXPERIMENT.format(password=PLACE), "ours.yaml", [f"transport.cluster.password={said}"])
    assert CANARY not in str(wrong.value) + repr(wrong.value.problems)


def test_the_sentence_states_how_to_do_it() -> None:
    with pytest.raises(
        ExperimentError, match=r"a password is not allowed in the experiment file; use \{env: NAME\} or \{file: path"
    ):
        read(EXPERIMENT.format(password=CANARY), source="ours.yaml")


def test_what_was_in_the_environment_is_inherited_by_no_child_and_is_there_for_a_second_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD_OF_A_TEST", CANARY)
    given = options(password={"env": "KAFKA_PASSWORD_OF_A_TEST"})
    for _ in range(2):
        cluster = open_user_cluster(given, take_secrets(secret_variables(given)))
        assert cluster.client_settings()["sasl.password"] == CANARY
        assert "KAFKA_PASSWORD_OF_A_TEST" not in os.environ
    unset = options(password={"env": "KAFKA_PASSWORD_OF_NOBODY"})
    (problem,) = kafka.check(KafkaOptions(cluster=unset), take_secrets(secret_variables(unset)))
    assert re.search(r"KAFKA_PASSWORD_OF_NOBODY, .*, is not set.*\.$", problem)


def test_a_password_in_the_address_of_the_cluster_is_refused_and_not_repeated() -> None:
    text = EXPERIMENT.format(password=PLACE).replace('"kafka:9092"', f'"ann:{CANARY}@kafka:9092"')
    with pytest.raises(
        ExperimentError, match=r"transport\.cluster\.bootstrap: must be host:port, without a user"
    ) as no:
        read(text, source="ours.yaml")
    assert CANARY not in str(no.value) + repr(no.value.problems)
