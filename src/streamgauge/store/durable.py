"""Files that are complete or absent: temporary, fsync, rename, fsync of the folder."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class StoreError(Exception):
    """The results folder cannot be read or written as requested."""


class NewerFormat(StoreError):
    """Written by a later streamgauge than this one."""


class UnknownRun(StoreError):
    """No run has this name."""


class AmbiguousRun(StoreError):
    """More than one run has this name."""


class RunLocked(StoreError):
    """Another process writes this run."""


@contextmanager
def as_store_error(doing: str, path: Path) -> Iterator[None]:
    """Raise an error of the operating system as a StoreError with the file in it."""
    try:
        yield
    except FileNotFoundError as error:
        missing = error.filename or path
        raise StoreError(f"cannot {doing} {path}: {missing} is missing") from error
    except OSError as error:
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}") from error


_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileDigest:
    """Size and SHA-256 of a file, to recognize it."""

    bytes: int
    sha256: str


def digest(data: bytes) -> FileDigest:
    """The size and the digest of bytes in memory."""
    return FileDigest(len(data), hashlib.sha256(data).hexdigest())


def write_synced(path: Path, data: bytes) -> FileDigest:
    """Write a file of a folder that is not visible yet, and wait until it is on the disk."""
    with as_store_error("write", path), path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return digest(data)


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put ``data`` at ``path`` so that a reader sees the old file or the new one, never a part.

    A cache need not be durable: without fsync a power cut may lose it, and it is rebuilt.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with as_store_error("write", path):
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each durable in the one above."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_file(path: Path) -> FileDigest:
    """Wait until a file that another process wrote is on the disk; its size and digest."""
    with as_store_error("read", path), path.open("rb") as file:
        os.fsync(file.fileno())
    return digest_file(path)


def digest_file(path: Path) -> FileDigest:
    """The size and the digest of a file on the disk, of any size."""
    sha, size = hashlib.sha256(), 0
    with as_store_error("read", path), path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            sha.update(chunk)
            size += len(chunk)
    return FileDigest(size, sha.hexdigest())


def remove_tree(path: Path) -> None:
    """Remove a folder and all that is in it. Of a link only the link: what it leads to may be anywhere."""
    with as_store_error("remove", path):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def files_below(path: Path) -> list[Path]:
    """Every plain file in a folder and the folders below it, in order of name. Links are not followed."""
    found = []
    for folder, _, names in os.walk(path):
        found += [Path(folder, name) for name in names]
    return sorted(f for f in found if f.is_file() and not f.is_symlink())


def size_below(path: Path) -> int:
    """Bytes of every file in a folder; one that vanishes meanwhile counts nothing, nor does what a link leads to."""
    if path.is_symlink():
        return 0
    total = 0
    for file in files_below(path):
        try:
            total += file.lstat().st_size
        except FileNotFoundError:
            continue
    return total
