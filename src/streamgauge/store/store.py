"""The results folder: one folder per run, found by name."""

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.model.experiment import Experiment
from streamgauge.store import runs as files
from streamgauge.store.documents import encode
from streamgauge.store.durable import (
    AmbiguousRun,
    StoreError,
    UnknownRun,
    as_store_error,
    digest,
    make_folder,
    remove_tree,
    size_below,
    sync_folder,
    write_synced,
)
from streamgauge.store.index import Index, RunSummary
from streamgauge.store.runs import Header, Run

_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-.+")
_LAST = re.compile(r"@last(?:~([0-9]{1,6}))?")
_TOKEN = re.compile(r"[0-9a-z]{1,32}")
_DRAFT = ".new-"
_REMOVED = ".removed-"
_SHOWN = 5


def slug(name: str) -> str:
    """An experiment's name as a part of a folder's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "run"


class Store:
    """Reads and writes the results folder. Nothing is made before the first run is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(  # noqa: PLR0917
        self,
        experiment: Experiment,
        text: str,
        environment: dict[str, Any],
        now: datetime,
        token: str,
        command: Sequence[str] = (),
    ) -> Run:
        """Make the folder of a new run, whole or not at all. ``token`` distinguishes runs of one second."""
        if now.tzinfo is None:
            raise ValueError("the time of a run needs a time zone")
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"a token is made of digits and small letters, not {token!r}")
        created = now.astimezone(UTC)
        path = self.root / f"{created:%Y%m%d-%H%M%S}-{slug(experiment.name)}-{token}"
        raw = text.encode("utf-8", "replace")
        argv = (command,) if isinstance(command, str) else tuple(command)
        header = Header(path.name, experiment.name, created, argv, streamgauge.__version__, digest(raw))
        draft = self.root / f"{_DRAFT}{path.name}"
        with as_store_error("create", path):
            make_folder(self.root)
            if path.exists() or draft.exists():
                raise StoreError(f"{path} already exists; a run is never overwritten")
            try:
                _fill(draft, raw, [("experiment", experiment), ("environment", environment), ("run", header)])
                draft.rename(path)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            sync_folder(self.root)
        return Run.open(path)

    def runs(self) -> list[RunSummary]:
        """Every run, newest last. One that cannot be read is listed with the reason."""
        return Index(self.root).summaries(self._folders())

    def find(self, ref: str) -> Run:
        """A run by its id, its experiment's name (the latest), a unique prefix, ``@last`` or ``@last~N``."""
        if last := _LAST.fullmatch(ref):
            return self._back(ref, int(last[1] or 0))
        if ref in [path.name for path in self._folders()]:
            return Run.open(self.root / ref)
        known = self.runs()
        named = [run for run in known if run.experiment == ref]
        if named:
            return Run.open(named[-1].path)
        matches = [run for run in known if ref and run.id.startswith(ref)]
        if len(matches) == 1:
            return Run.open(matches[0].path)
        if matches:
            raise AmbiguousRun(f"{len(matches)} runs begin with {ref!r}: {_some(matches)}; type more characters")
        raise UnknownRun(f"{self.root} has no run {ref!r}; {_have(known)}")

    def _back(self, ref: str, steps: int) -> Run:
        known = self.runs()
        if steps >= len(known):
            runs = f"{steps + 1} run{'' if steps == 0 else 's'}"
            raise UnknownRun(f"{ref} needs at least {runs}, but {self.root} has {len(known)}")
        return Run.open(known[-1 - steps].path)

    def size(self, run: Run) -> int:
        """Bytes that a run takes."""
        return size_below(run.path)

    def remove(self, run: Run) -> int:
        """Remove a run that no process writes, and return how many bytes that freed.

        The first step removes it from the list, even if this process ends after it. Of a run that is a link to a
        folder in another place, only the link is removed.
        """
        freed = self.size(run)
        gone = self.root / f"{_REMOVED}{run.id}"
        with run.lock(), as_store_error("remove", run.path):
            run.path.rename(gone)
            sync_folder(self.root)
        remove_tree(gone)
        for left in self.root.glob(f"{_REMOVED}*"):
            with suppress(StoreError):  # what an earlier process could not remove
                remove_tree(left)
        return freed

    def _folders(self) -> list[Path]:
        """Folders that are runs, or were meant to be."""
        if not self.root.exists():
            return []
        with as_store_error("read", self.root):
            return [path for path in self.root.iterdir() if _is_run(path)]


def _fill(draft: Path, text: bytes, documents: list[tuple[str, object]]) -> None:
    (draft / files.TRIALS).mkdir(parents=True)
    write_synced(draft / files.TEXT, text)
    for kind, value in documents:
        write_synced(draft / f"{kind}.json", encode(kind, value))
    sync_folder(draft)


def _is_run(path: Path) -> bool:
    """A folder with a header, or one that lost it: that is to be listed as unreadable, not passed over."""
    if path.name.startswith("."):
        return False
    try:
        return (path / files.HEADER).exists() or (bool(_RUN_ID.fullmatch(path.name)) and path.is_dir())
    except OSError:
        return bool(_RUN_ID.fullmatch(path.name))


def _some(known: list[RunSummary]) -> str:
    shown = [run.id for run in known[-_SHOWN:]]
    return ", ".join(["…", *shown] if len(known) > _SHOWN else shown)


def _have(known: list[RunSummary]) -> str:
    return f"it has {_some(known)}" if known else "it has no runs yet"
