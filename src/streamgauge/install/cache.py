"""The user's cache: folders with downloaded files. A folder is either complete, with the right checksums, or unused."""

import fcntl
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streamgauge.store.durable import StoreError, as_store_error, digest_file, make_folder, sync_folder

_MAX_SHOWN = 3


class ChecksumMismatch(StoreError):
    """The downloaded files are not the expected ones; the message names them."""


def differences(folder: Path, checksums: Mapping[str, str]) -> list[str]:
    """How a folder differs from these files with their SHA-256: one sentence for each difference."""
    if not folder.is_dir():
        return [f"{folder} is not there"]
    others = sorted({path.name for path in folder.iterdir()} - {*checksums})
    found = [f"{name} does not belong there" for name in others]
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            found.append(f"{name} is missing")
        elif (digest := digest_file(folder / name).sha256) != expected:
            found.append(f"{name} has the checksum {digest}, and should have {expected}")
    return found


def ensure_folder(folder: Path, checksums: Mapping[str, str], fill: Callable[[Path], None]) -> bool:
    """Make sure that a folder has exactly these files. If it has not, ``fill`` a new folder and replace the old one.

    A process that is killed meanwhile leaves the old folder as it was. If several processes need it, one fills it and
    the others wait. Returns whether this process filled it.
    """
    if not differences(folder, checksums):
        return False
    make_folder(folder.parent)
    with _exclusive(folder):
        if not differences(folder, checksums):
            return False
        draft = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        try:
            fill(draft)
            _require_checksums(draft, checksums)
            _replace(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return True


def _replace(draft: Path, folder: Path) -> None:
    """Rename the draft to its final name, and remove the folder that had this name."""
    old = folder.with_name(f".{folder.name}.old")
    with as_store_error("write", folder):
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        sync_folder(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def _require_checksums(folder: Path, checksums: Mapping[str, str]) -> None:
    wrong = differences(folder, checksums)
    if wrong:
        more = f"; and {len(wrong) - _MAX_SHOWN} more" if len(wrong) > _MAX_SHOWN else ""
        first = "; ".join(wrong[:_MAX_SHOWN])
        raise ChecksumMismatch(
            f"the downloaded files do not match their pinned checksums, so they are not used: {first}{more}"
        )


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes. The lock ends with the process, however it ends."""
    with as_store_error("write", folder), folder.with_name(f".{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
