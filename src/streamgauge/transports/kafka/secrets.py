"""From what an experiment says of the user's cluster to the cluster itself: secrets are fetched from where they are.

Nothing is read here: whoever calls hands in the environment and the way to read a file.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import SecretStr

from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.options import ClusterOptions, SecretFrom

Read = Callable[[Path], str]
"""Reads a file that holds a secret; it raises OSError or SecretError."""


class SecretError(KafkaFailure):
    """A secret is not where the experiment says, or not safe there. The sentence never holds the secret."""


def resolve(options: ClusterOptions, environment: Mapping[str, str], read: Read) -> Cluster:
    """The user's cluster, with the secrets and files that it needs, or what is missing."""
    for name in ("authority", "certificate", "key"):
        if (path := getattr(options, name)) and not Path(path).expanduser().is_file():
            raise SecretError(f"transport.cluster.{name}: file {path} does not exist")

    def reveal(place: SecretFrom) -> SecretStr:
        return SecretStr(_fetched(place, environment, read))

    return options.open(reveal)


def variables(options: ClusterOptions) -> tuple[str, ...]:
    """The variables of the environment that hold secrets of the cluster."""
    places = (options.password, options.key_password)
    return tuple(place.env for place in places if place is not None and place.env is not None)


def _fetched(place: SecretFrom, environment: Mapping[str, str], read: Read) -> str:
    if place.env is not None:
        found = environment.get(place.env)
        if not found:
            state = "is not set" if found is None else "is empty"
            raise SecretError(
                f"the environment variable {place.env}, which must contain a secret of your cluster, {state}; "
                f"set it with: read -rs {place.env} && export {place.env}"
            )
        return found
    path = Path(str(place.file)).expanduser()
    try:
        found = read(path).rstrip("\r\n")
    except OSError as error:
        raise SecretError(
            f"the file {path}, which must contain a secret of your cluster, cannot be read: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise SecretError(f"the file {path}, which must contain a secret of your cluster, is not a text file") from None
    if not found or "\n" in found:
        raise SecretError(f"the file {path} must contain a secret of your cluster in one line, and nothing else")
    return found
