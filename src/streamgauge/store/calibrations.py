"""Calibrations in the results folder, one per machine, placement and transport; the newest counts."""

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from streamgauge.model.calibration import Calibration
from streamgauge.model.experiment import QUEUE
from streamgauge.store.documents import encode, read_value
from streamgauge.store.durable import replace_file

FOLDER = "calibrations"
_WORK = ".work-"
_LOCK = "lock"
_READABLE = 100
"""Characters of a file's name that show a person what is in it."""

Key = tuple[str, str, str]
"""Machine, placement and transport."""


def save(root: Path, calibration: Calibration) -> Path:
    """Write it, in place of an older one of the same machine, placement and transport."""
    key = _key_of(calibration)
    path = _path(root, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, encode("calibration", calibration))
    for older in _older_paths(root, key):
        if _read(older, key) is not None:
            older.unlink()
    return path


def load(root: Path, machine: str, placement: str, transport: str = QUEUE) -> Calibration | None:
    """The one of this machine, placement and transport, if there is one."""
    key = (machine, placement, transport)
    found = (_read(path, key) for path in (_path(root, key), *_older_paths(root, key)))
    return next((calibration for calibration in found if calibration is not None), None)


def _read(path: Path, key: Key) -> Calibration | None:
    """The calibration in a file, if it is of this key: a file can be copied, and older names are not unique."""
    found = read_value(path, "calibration", Calibration) if path.exists() else None
    return found if found is not None and _key_of(found) == key else None


@contextmanager
def workspace(root: Path, token: str) -> Iterator[Path]:
    """A folder for the trials of a calibration. It is removed at its end; what a crash left is removed first."""
    for left in stale_workspaces(root):
        shutil.rmtree(left, ignore_errors=True)
    path = root / FOLDER / f"{_WORK}{token}"
    path.mkdir(parents=True)
    with (path / _LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def stale_workspaces(root: Path) -> list[Path]:
    """Folders of calibrations that were killed: no process holds their lock."""
    return [folder for folder in sorted((root / FOLDER).glob(f"{_WORK}*")) if not _held(folder / _LOCK)]


def _held(lock: Path) -> bool:
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _key_of(calibration: Calibration) -> Key:
    return calibration.machine, calibration.placement, calibration.transport


def _path(root: Path, key: Key) -> Path:
    """A name that a person recognizes, made unique by a digest of the whole key."""
    machine, placement, transport = key
    return root / FOLDER / _unique_name(key, transport, machine, placement)


def _unique_name(key: Key, *parts: str) -> str:
    digest = blake2b(repr(key).encode(), digest_size=8).hexdigest()
    return f"{_slug(*parts)[:_READABLE]}-{digest}.json"


def _older_paths(root: Path, key: Key) -> list[Path]:
    """The names that the same calibration can have from earlier versions.

    Names did not always begin with the transport. Before they had a digest, they were cut off, so that several keys
    share one.
    """
    machine, placement, transport = key
    names = [_unique_name(key, machine, placement)]
    names += [f"{_slug(*parts)[:120]}.json" for parts in (key[:2], (transport, machine, placement))]
    return [root / FOLDER / name for name in names]


def _slug(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-").lower()
