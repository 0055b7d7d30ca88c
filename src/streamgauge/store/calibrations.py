"""Calibrations in the results folder, one per machine, placement and transport; the newest counts."""

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.model.calibration import QUEUE, Calibration
from streamgauge.store.documents import encode, read_value
from streamgauge.store.durable import replace_file

FOLDER = "calibrations"
_WORK = ".work-"
_LOCK = "lock"


def keep(root: Path, calibration: Calibration) -> Path:
    """Write it, in place of an older one of the same machine, placement and transport."""
    path = _path(root, calibration.machine, calibration.placement, calibration.transport)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, encode("calibration", calibration))
    return path


def kept(root: Path, machine: str, placement: str, transport: str = QUEUE) -> Calibration | None:
    """The one of this machine, placement and transport, if there is one."""
    path = _path(root, machine, placement, transport)
    return read_value(path, "calibration", Calibration) if path.exists() else None


@contextmanager
def workspace(root: Path, token: str) -> Iterator[Path]:
    """A folder for the trials of a calibration. It goes with the calibration; what a crash left goes before."""
    for left in abandoned(root):
        shutil.rmtree(left, ignore_errors=True)
    path = root / FOLDER / f"{_WORK}{token}"
    path.mkdir(parents=True)
    with (path / _LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def abandoned(root: Path) -> list[Path]:
    """Folders of calibrations that were killed: nobody holds their lock."""
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


def _path(root: Path, machine: str, placement: str, transport: str) -> Path:
    # the queue was the only one once, and long names are cut off at their end
    told = f"{machine}-{placement}" if transport == QUEUE else f"{transport}-{machine}-{placement}"
    slug = re.sub(r"[^A-Za-z0-9]+", "-", told).strip("-").lower()
    return root / FOLDER / f"{slug[:120]}.json"
