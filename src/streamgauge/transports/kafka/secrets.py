"""The external cluster of an experiment, with its secrets: from environment variables, or read here from files."""

import os
import stat
from pathlib import Path

from pydantic import SecretStr

from streamgauge.transports.contract import Secrets, TransportError
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.options import ClusterOptions, SecretFrom

_MAX_BYTES = 1 << 16
"""Of a file that contains a secret and nothing else."""


class SecretError(TransportError):
    """A secret is missing, or its file is not safe. The message never contains the secret."""


def open_user_cluster(options: ClusterOptions, secrets: Secrets) -> Cluster:
    """The external cluster with its secrets. Raises SecretError for a secret or a certificate that is missing."""
    for name in ("authority", "certificate", "key"):
        if (path := getattr(options, name)) and not Path(path).expanduser().is_file():
            raise SecretError(f"transport.cluster.{name}: file {path} does not exist")
    return options.open(lambda place: SecretStr(fetch_secret(place, secrets)))


def secret_variables(options: ClusterOptions) -> tuple[str, ...]:
    """The environment variables that contain secrets of the cluster."""
    places = (options.password, options.key_password)
    return tuple(place.env for place in places if place is not None and place.env is not None)


def fetch_secret(place: SecretFrom, secrets: Secrets) -> str:
    """The secret of this environment variable or file."""
    if place.env is not None:
        found = secrets[place.env].get_secret_value() if place.env in secrets else None
        if not found:
            state = "is not set" if found is None else "is empty"
            raise SecretError(
                f"the environment variable {place.env}, which must contain a secret of your cluster, {state}; "
                f"set it with: read -rs {place.env} && export {place.env}"
            )
        return found
    path = Path(str(place.file)).expanduser()
    try:
        found = _read(path).rstrip("\r\n")
    except OSError as error:
        raise SecretError(
            f"the file {path}, which must contain a secret of your cluster, cannot be read: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise SecretError(f"the file {path}, which must contain a secret of your cluster, is not a text file") from None
    if not found or "\n" in found:
        raise SecretError(f"the file {path} must contain a secret of your cluster in one line, and nothing else")
    return found


def _read(path: Path) -> str:
    """The text of a file with a secret. A file that every user can read is rejected."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & stat.S_IROTH:
            raise SecretError(f"every user of this machine can read the secret in {path}. Run `chmod o-rwx {path}`")
        return file.read(_MAX_BYTES).decode("utf-8")
