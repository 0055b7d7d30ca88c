"""Spark on Kafka clusters that were started outside the run, as a user types it: with TLS and SCRAM, and resumed."""

import os
from pathlib import Path

import pytest
from cli_session import CommandResult, start, streamgauge, write
from host_noise import HostNoise
from kafka_broker import administration, needs_kafka, shared
from real_trial import PLACEMENT
from test_kafka_twenty_secrets import holding, secret_file, secured, watching

from streamgauge.run.monitor.monitor import available
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.start import wait_until

pytestmark = [
    pytest.mark.soak,
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]
MEASURE = """\
name: my-cluster
workload: {{name: windowed-aggregation, window: 2s, slide: 1s}}
engine: {{name: spark, warm_load: 2k/s, warm_limit: 30s}}
transport: {{name: kafka, {more}cluster: {cluster}}}
find: {find}
load: {load}
objective: [lag-trend <= 5%, lost == 0]
trial: {{duration: 20s, warmup: 5s}}
"""
COMPLETE = "{{bootstrap: '{0}', tls: true, authority: {1}, mechanism: SCRAM-SHA-512, user: {2}, password: {3}}}"
SECONDS = 900


VALID = {"SUSTAINED", "OVERLOADED", "UNDECIDED"}


def typed(*words: str | Path, cwd: Path, **environment: str) -> tuple[CommandResult, int]:
    """A command in a separate process; what it printed, and its process id."""
    with start(*words, cwd=cwd, env={**os.environ, **environment}) as process:
        out, err = process.communicate(timeout=SECONDS)
    return CommandResult(process.returncode, out, err), process.pid


def is_a_result(said: CommandResult, disturbance: str) -> None:
    """A trial is valid and every output was right; all trials may be INVALID only if the host disturbed the run."""
    assert said.code in (0, 3, 6), said.err  # 3: the host disturbed trials; 6: one was also too noisy to decide
    kinds = {trial["verdict"] for trial in said.document["trials"]}
    assert kinds & VALID or (kinds == {"INVALID"} and disturbance), said.err
    for trial in said.document["trials"]:
        account = trial["measured"]["account"]
        assert (account["lost"], account["duplicate"], account["wrong"]) == (0, 0, 0), trial
    assert any(trial["measured"]["account"]["observed"] for trial in said.document["trials"]), said.err


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_a_cluster_that_requires_tls_and_scram_gives_a_result_and_keeps_no_topic_and_no_secret(
    tmp_path: Path, form: str
) -> None:
    with watching() as watched, secured(tmp_path / "broker") as broker:
        security, out = broker.cluster.security, tmp_path / "user" / "runs"
        assert security is not None
        assert security.authority is not None
        (tmp_path / "user").mkdir()
        (tmp_path / "user" / "authority.pem").write_bytes(security.authority.read_bytes())
        password = "{env: PASSWORD}" if form == "binary" else secret_file(tmp_path, "password", broker.password)
        # the path of the certificate is relative to the folder in which the command is typed
        cluster = COMPLETE.format(broker.cluster.bootstrap, "authority.pem", security.user, password)
        text = MEASURE.format(cluster=cluster, more=f"format: {form}, ", find="nothing", load="{rate: 2k/s}")
        experiment = write(tmp_path / "user", text)
        with HostNoise() as noise:
            said, pid = typed("run", experiment.name, "--json", cwd=tmp_path / "user", PASSWORD=broker.password)
        is_a_result(said, noise.disturbance)
        admin = KafkaAdmin(broker.cluster, wait_until)
        assert admin.topics_by_run() == {}, "no topic is left behind"
        secrets = [broker.password, broker.keystore_password]
        assert holding(broker.logs, secrets) == []
    assert holding(out, ["SCRAM-SHA-512"]), "the experiment is kept"
    assert holding(out, secrets) == []
    assert not [word for word in secrets if word in said.out + said.err]
    lines = [line for seen in watched.lines.values() for line in seen]
    assert any(b"spark.jars" in line for line in lines), "Spark was looked at"
    assert not [line for line in lines if any(word.encode() in line for word in secrets)]
    known = {child for child, seen in watched.environments.items() if any(secrets[0].encode() in e for e in seen)}
    assert known <= {pid}, "the run itself has it; the processes that it starts do not"


def test_a_run_on_a_cluster_is_resumed_there(tmp_path: Path) -> None:
    cluster = f"{{bootstrap: '{shared().cluster.bootstrap}'}}"
    text = MEASURE.format(cluster=cluster, more="", find="sustainable-throughput", load="{values: [2k/s, 4k/s]}")
    experiment = write(tmp_path, text)
    said, _ = typed("run", experiment.name, "--budget", "1s", "--json", cwd=tmp_path)
    begun = len(said.document["trials"])
    assert begun >= 1, said.err
    said, _ = typed("resume", "--budget", "1h", "--json", cwd=tmp_path)
    assert len(said.document["trials"]) > begun, said.err
    assert {trial["verdict"] for trial in said.document["trials"]} <= {"SUSTAINED", "UNDECIDED", "INVALID"}
    assert said.document["run"] not in administration().topics_by_run(), "no topic is left behind"


def test_the_maximum_load_over_a_cluster_is_calibrated_and_used(tmp_path: Path) -> None:
    cluster = f"{{bootstrap: '{shared().cluster.bootstrap}'}}"
    text = MEASURE.format(cluster=cluster, more="", find="nothing", load="{rate: 1k/s}")
    experiment = write(tmp_path, text.replace("name: spark, warm_load: 2k/s, warm_limit: 30s", "name: reference"))
    out = tmp_path / "runs"
    said = streamgauge("calibrate", "--cluster", experiment, "--out", out, "--json")
    assert said.code in (0, 3, 6), said.err
    assert f"the cluster at {shared().cluster.bootstrap}" in said.document["calibration"]["transport"]
    said = streamgauge("run", experiment, "--out", out, "--json")
    assert said.code in (0, 3, 6), said.err
    assert "not calibrated" not in said.err
