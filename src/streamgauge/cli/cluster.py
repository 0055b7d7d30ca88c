"""The user's own Kafka cluster: its secrets are fetched here, from the environment or from files."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from streamgauge.cli.trouble import Trouble

if TYPE_CHECKING:
    from streamgauge.model.transport import TransportChoice
    from streamgauge.run.clock import Limits
    from streamgauge.transport.kafka.cluster import Cluster
    from streamgauge.transport.kafka.options import ClusterOptions

_LONGEST = 1 << 16
"""Bytes of a file that holds a secret, and nothing else."""
_PATIENCE = 8.0
"""Seconds that a cluster may take for its first answer."""
_taken: dict[str, SecretStr] = {}
"""Secrets that stood in the environment. They are taken out of it, so that no process of ours inherits them."""


def with_kafka(limits: "Limits", choice: "TransportChoice", say: Callable[[str], object]) -> "Limits":
    """What a run on Kafka needs beside its limits: the user's cluster, or the jars of brokers of ours."""
    from streamgauge.cli.kafka import client_or_trouble, ready_for_kafka
    from streamgauge.transport.kafka.options import kafka_options

    options = kafka_options(choice)
    if options is None:
        return limits
    if options.cluster is None:
        return replace(limits, cache=ready_for_kafka(say))
    client_or_trouble()
    cluster = open_cluster(options.cluster)
    _is_there(cluster, options.replication)
    return replace(limits, cluster=cluster)


def _is_there(cluster: "Cluster", replication: int) -> None:
    """Trouble where nobody answers, or there are too few brokers: before a minute is spent."""
    from streamgauge.run.brokers import until
    from streamgauge.transport.kafka.administer import Administration
    from streamgauge.transport.kafka.protocol import KafkaFailure

    try:
        brokers = Administration(cluster, until).brokers(_PATIENCE)
    except KafkaFailure as error:
        raise Trouble(f"{error}.") from None
    if len(brokers) < replication:
        raise Trouble(
            f"the cluster at {cluster.bootstrap} has {len(brokers)} broker{'' if len(brokers) == 1 else 's'}, and "
            f"transport.replication: {replication} wants a copy of every partition on as many; lower it."
        )


def open_cluster(options: "ClusterOptions") -> "Cluster":
    """The cluster that an experiment names, with its secrets; or what is missing, as a sentence."""
    from streamgauge.transport.kafka.protocol import KafkaFailure
    from streamgauge.transport.kafka.resolve import resolve, variables

    for name in variables(options):
        if name in os.environ:
            _taken[name] = SecretStr(os.environ.pop(name))
    known = {name: secret.get_secret_value() for name, secret in _taken.items()}
    try:
        return resolve(options, known, read_secret)
    except KafkaFailure as error:
        raise Trouble(f"{error}.") from None


def read_secret(path: Path) -> str:
    """The text of a file with a secret. One that everybody may read is refused: the secret is none."""
    from streamgauge.transport.kafka.resolve import SecretError

    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & stat.S_IROTH:
            raise SecretError(f"everybody on this machine may read the secret in {path}; type: chmod o-rwx {path}")
        return file.read(_LONGEST).decode("utf-8")
