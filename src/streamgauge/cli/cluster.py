"""The external Kafka cluster of an experiment: reads its secrets from the environment or from files."""

import os
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from streamgauge.cli.errors import Trouble

if TYPE_CHECKING:
    from streamgauge.install.jars import Wanted
    from streamgauge.model.experiment import EngineChoice, TransportChoice
    from streamgauge.run.limits import Limits
    from streamgauge.transports.kafka.cluster import Cluster
    from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions

_LONGEST = 1 << 16
"""Bytes of a file that holds a secret, and nothing else."""
_PATIENCE = 8.0
"""Seconds until the first response of a cluster must arrive."""
_taken: dict[str, SecretStr] = {}
"""Secrets from environment variables. They are removed from the environment, so that no child process inherits them."""


def with_kafka(
    limits: "Limits", choice: "TransportChoice", say: Callable[[str], object], engines: "Sequence[EngineChoice]" = ()
) -> "Limits":
    """The limits with what a run on Kafka needs: the external cluster, or the jars of local brokers.

    The connectors of the engines are needed on both.
    """
    from streamgauge.cli.kafka import client_or_trouble, ready_for_kafka, with_connectors
    from streamgauge.transports.kafka.options import kafka_options

    options = kafka_options(choice)
    if options is None:
        return limits
    if options.cluster is None:
        return replace(limits, cache=ready_for_kafka(say))
    client_or_trouble()
    cluster = open_cluster(options.cluster)
    _is_usable(cluster, options)
    return replace(limits, cluster=cluster, cache=with_connectors(_connectors(engines), say))


def _connectors(choices: "Sequence[EngineChoice]") -> "set[Wanted]":
    """The sets of jars that these engines need to read from Kafka."""
    from streamgauge.engines.contract import jars_of
    from streamgauge.engines.registry import engines

    known = engines()
    return {name for c in choices if c.name in known for name in jars_of(known[c.name], c.options, "kafka")}


def _is_usable(cluster: "Cluster", options: "KafkaOptions") -> None:
    """Raise Trouble if the cluster does not respond, has too few brokers, or rejects what a trial does."""
    from streamgauge.transports.kafka.brokers.admin import Administration
    from streamgauge.transports.kafka.brokers.start import until
    from streamgauge.transports.kafka.client.protocol import KafkaFailure
    from streamgauge.transports.kafka.try_cluster import try_cluster

    try:
        found = len(Administration(cluster, until).brokers(_PATIENCE))
        if found < options.replication:
            raise Trouble(
                f"The cluster at {cluster.bootstrap} has {found} broker{'' if found == 1 else 's'}, but "
                f"transport.replication is {options.replication}. Set it to {found} or less."
            )
        try_cluster(cluster, options, secrets.token_hex(3))
    except KafkaFailure as error:
        raise Trouble(f"{error}.") from None


def open_cluster(options: "ClusterOptions") -> "Cluster":
    """The cluster that an experiment names, with its secrets. Raises Trouble with what is missing."""
    from streamgauge.transports.kafka.client.protocol import KafkaFailure
    from streamgauge.transports.kafka.secrets import resolve, variables

    for name in variables(options):
        if name in os.environ:
            _taken[name] = SecretStr(os.environ.pop(name))
    known = {name: secret.get_secret_value() for name, secret in _taken.items()}
    try:
        return resolve(options, known, read_secret)
    except KafkaFailure as error:
        raise Trouble(f"{error}.") from None


def read_secret(path: Path) -> str:
    """The text of a file with a secret. A file that every user can read is rejected."""
    from streamgauge.transports.kafka.secrets import SecretError

    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & stat.S_IROTH:
            raise SecretError(f"every user of this machine can read the secret in {path}. Run `chmod o-rwx {path}`")
        return file.read(_LONGEST).decode("utf-8")
