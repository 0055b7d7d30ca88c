"""Summaries of runs, with a cache that can be deleted at any time."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from streamgauge.model.finding import titles
from streamgauge.store import runs as files
from streamgauge.store.documents import encode, read_value
from streamgauge.store.durable import StoreError, replace_file
from streamgauge.store.runs import Run

INDEX = "index.json"
State = Literal["finished", "unfinished", "unreadable"]
_STAMPED = (files.HEADER, files.TEXT, files.EXPERIMENT, files.ENVIRONMENT, files.FINDINGS, files.TRIALS)
_TIME = re.compile(r"[0-9]{8}-[0-9]{6}")
Fingerprint = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line of a list. ``reason`` is why it cannot be read."""

    id: str
    path: Path
    state: State
    experiment: str = ""
    created: datetime | None = None
    engines: tuple[str, ...] = ()
    trials: int = 0
    ended: str = ""
    exit_code: int | None = None
    sentences: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    """What each sentence is about, if there are several engines or series."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A concluded run in the index, with what its files looked like when it was read."""

    stamp: Fingerprint
    experiment: str
    created: datetime
    engines: tuple[str, ...]
    trials: int
    ended: str
    exit_code: int
    sentences: tuple[str, ...]
    titles: tuple[str, ...]


def _named_moment(name: str) -> datetime:
    found = _TIME.match(name)
    try:
        return datetime.strptime(found[0] if found else "", "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _fingerprint(path: Path) -> Fingerprint:
    """Inode, size and time of change of everything that a summary is made of."""
    marks = []
    for name in _STAMPED:
        try:
            seen = (path / name).stat()
            marks.append((seen.st_ino, seen.st_size, seen.st_mtime_ns))
        except OSError:
            marks.append((0, 0, 0))
    return tuple(marks)


def _summary(path: Path) -> RunSummary:
    """Read a run as far as a list needs it."""
    try:
        run = Run.open(path)
        conclusion = run.conclusion()
        trials = run.trial_count()
    except StoreError as error:
        return RunSummary(path.name, path, "unreadable", reason=str(error))
    engines = tuple(choice.label for choice in run.experiment.engines)
    unfinished = RunSummary(path.name, path, "unfinished", run.experiment.name, run.created, engines, trials)
    if conclusion is None:
        return unfinished
    return RunSummary(
        unfinished.id,
        path,
        "finished",
        unfinished.experiment,
        unfinished.created,
        engines,
        trials,
        conclusion.ended,
        conclusion.exit_code,
        tuple(finding.sentence for finding in conclusion.findings),
        titles(conclusion.findings),
    )


class Index:
    """``index.json``. Only concluded runs are in it: the others still change, and are read each time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / INDEX

    def summaries(self, folders: list[Path]) -> list[RunSummary]:
        """A summary of each folder, newest last."""
        known = self._read()
        entries: dict[str, IndexEntry] = {}
        found: list[tuple[tuple[datetime, int, str], RunSummary]] = []
        for path in folders:
            stamp = _fingerprint(path)
            entry = known.get(path.name)
            if entry is not None and entry.stamp == stamp:
                summary = _from_entry(path, entry)
            else:
                summary = _summary(path)
                entry = _to_entry(stamp, summary)
            if entry is not None:
                entries[path.name] = entry
            found.append((_order(summary, stamp), summary))
        if entries != known:
            self._write(entries)
        return [summary for _, summary in sorted(found, key=lambda pair: pair[0])]

    def _read(self) -> dict[str, IndexEntry]:
        try:
            return read_value(self._path, "index", dict[str, IndexEntry])
        except StoreError:
            return {}  # missing, damaged or of another version: it is created again

    def _write(self, entries: dict[str, IndexEntry]) -> None:
        try:
            replace_file(self._path, encode("index", entries), durable=False)
        except StoreError:
            return  # a results folder that we may only read has no index, and needs none


def _order(summary: RunSummary, stamp: Fingerprint) -> tuple[datetime, int, str]:
    if summary.created is None:
        return _named_moment(summary.id), 0, summary.id
    return summary.created, stamp[0][2], summary.id


def _to_entry(stamp: Fingerprint, s: RunSummary) -> IndexEntry | None:
    if s.created is None or s.exit_code is None:
        return None
    return IndexEntry(stamp, s.experiment, s.created, s.engines, s.trials, s.ended, s.exit_code, s.sentences, s.titles)


def _from_entry(path: Path, n: IndexEntry) -> RunSummary:
    return RunSummary(
        id=path.name,
        path=path,
        state="finished",
        experiment=n.experiment,
        created=n.created.astimezone(UTC),
        engines=n.engines,
        trials=n.trials,
        ended=n.ended,
        exit_code=n.exit_code,
        sentences=n.sentences,
        titles=n.titles,
    )
