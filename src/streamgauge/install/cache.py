"""The user's cache: folders of files that were fetched once. One is there whole and as it should be, or it is not."""

import fcntl
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streamgauge.store.durable import StoreError, as_store_error, digest_file, make_folder, sync_folder

_SHOWN = 3


class WrongFiles(StoreError):
    """What was fetched is not what it should be; the sentence names the files."""


def faults(folder: Path, checksums: Mapping[str, str]) -> list[str]:
    """What is wrong with a folder that should hold these files, by their SHA-256, and no others."""
    if not folder.is_dir():
        return [f"{folder} is not there"]
    strangers = sorted({path.name for path in folder.iterdir()} - {*checksums})
    found = [f"{name} does not belong there" for name in strangers]
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            found.append(f"{name} is missing")
        elif (digest := digest_file(folder / name).sha256) != expected:
            found.append(f"{name} has the checksum {digest}, and should have {expected}")
    return found


def furnish(folder: Path, checksums: Mapping[str, str], fill: Callable[[Path], None]) -> bool:
    """See that a folder holds these files; if it does not, have another one filled and put it in its place.

    Whoever is killed meanwhile leaves what was there before. Of several processes one fills, the others wait.
    True if it was filled now.
    """
    if not faults(folder, checksums):
        return False
    make_folder(folder.parent)
    with _turn(folder):
        if not faults(folder, checksums):
            return False
        draft = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        try:
            fill(draft)
            _refuse(draft, checksums)
            _put(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return True


def _put(draft: Path, folder: Path) -> None:
    """Give the draft its name, in place of what had it."""
    old = folder.with_name(f".{folder.name}.old")
    with as_store_error("write", folder):
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        sync_folder(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def _refuse(folder: Path, checksums: Mapping[str, str]) -> None:
    wrong = faults(folder, checksums)
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        told_of = "; ".join(wrong[:_SHOWN])
        raise WrongFiles(
            f"the downloaded files do not match their pinned checksums, so they are not used: {told_of}{more}"
        )


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """One process at a time. The lock goes with the process, however it ends."""
    with as_store_error("write", folder), folder.with_name(f".{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
