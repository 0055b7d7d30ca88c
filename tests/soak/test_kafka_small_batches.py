"""A whole run on a cluster that accepts small batches only; its parts are tested in tests/integration."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_session import streamgauge, write
from kafka_broker import launched, needs_kafka
from test_kafka_cli import on_cluster
from test_kafka_limits import SMALL

from streamgauge.transports.kafka.brokers.start import start_brokers
from streamgauge.transports.kafka.cluster import Cluster

pytestmark = [pytest.mark.soak, needs_kafka]


@contextmanager
def cluster_with(**settings: str) -> Iterator[Cluster]:
    """A cluster of one broker with these settings, whose names have dots in place of underscores."""
    more = {name.replace("_", "."): value for name, value in settings.items()}
    with (
        tempfile.TemporaryDirectory(prefix="sgk") as folder,
        launched() as (launcher, runtime),
        start_brokers(runtime, Path(folder), launcher, more=more) as brokers,
    ):
        yield brokers.cluster


def test_a_run_works_on_a_cluster_that_accepts_small_batches_only(tmp_path: Path) -> None:
    with cluster_with(message_max_bytes=str(SMALL)) as cluster:
        experiment = write(tmp_path, on_cluster(cluster.bootstrap))
        said = streamgauge("run", experiment, "--out", tmp_path / "runs", "--json")
    assert said.code in (0, 3, 6), said.err  # 3, 6: the host disturbed trials
    assert "Measuring the load generator" in said.err, "the maximum load over this cluster was checked"
    for trial in said.document["trials"]:
        assert "error 10" not in " ".join(trial["reasons"]), trial
        account = trial["measured"]["account"]
        assert (account["lost"], account["duplicate"], account["wrong"]) == (0, 0, 0), account
