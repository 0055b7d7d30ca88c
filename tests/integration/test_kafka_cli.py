"""What the command line prints if Kafka cannot be used. `make soak` has a whole run as a user types it."""

import os
import socket
from pathlib import Path

from cli_session import CommandResult, start, streamgauge, write
from kafka_broker import needs_kafka, shared

pytestmark = needs_kafka
MEASURE = """\
name: over-kafka
workload: {name: windowed-aggregation, window: 200ms, slide: 200ms}
transport: {name: kafka}
engine: {name: reference, capacity: 200k/s}
find: nothing
load: {rate: 20k/s}
objective: [lost == 0]
trial: {duration: 3s, warmup: 1s}
"""


def on_cluster(bootstrap: str, more: str = "") -> str:
    return MEASURE.replace("{name: kafka}", f"{{name: kafka, cluster: {{bootstrap: '{bootstrap}'}}{more}}}")


def typed(folder: Path, text: str, **environment: str) -> CommandResult:
    """``streamgauge run`` in a separate process, with nothing but the experiment's name."""
    process = start("run", write(folder, text).name, "--json", cwd=folder, env={**os.environ, **environment})
    out, err = process.communicate(timeout=240)
    return CommandResult(process.returncode, out, err)


def test_a_broker_that_does_not_start_is_reported_with_its_log_and_is_no_error_of_the_user(tmp_path: Path) -> None:
    said = typed(tmp_path, MEASURE, JDK_JAVA_OPTIONS="-XX:+NoSuchOption")
    assert said.code == 3, said.err
    assert "kafka broker 1 storage ended with exit code 1" in said.document["error"]
    assert "Unrecognized VM option 'NoSuchOption'" in said.err


def test_a_cluster_that_does_not_respond_is_reported_before_the_first_trial(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = streamgauge("run", write(tmp_path, on_cluster(address)), "--out", tmp_path / "runs")
    assert said.code == 2
    assert f"the cluster at {address} cannot be reached: " in said.err
    assert "refused" in said.err
    assert not any((tmp_path / "runs").glob("*over-kafka*")), "nothing was begun"


def test_a_cluster_with_too_few_brokers_is_reported_before_the_first_trial(tmp_path: Path) -> None:
    text = on_cluster(shared().cluster.bootstrap, ", replication: 3")
    said = streamgauge("run", write(tmp_path, text), "--out", tmp_path / "runs")
    assert said.code == 2
    assert "has 1 broker, but transport.replication is 3. Set it to 1 or less." in said.err
