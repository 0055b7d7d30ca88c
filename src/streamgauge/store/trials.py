"""One trial in the results folder: growing as ``NNN.partial``, whole as ``NNN``."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import PlainValidator

from streamgauge.model.facts import TrialFacts
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.seconds import KINDS, Kind, Seconds
from streamgauge.model.trial import Outcome, Recording, Trial
from streamgauge.store import columns
from streamgauge.store.documents import FORMAT, encode, read_value
from streamgauge.store.durable import (
    FileDigest,
    StoreError,
    as_store_error,
    digest,
    digest_file,
    files_below,
    sync_file,
    sync_folder,
    write_synced,
)
from streamgauge.store.facts import facts_from_json

MANIFEST = "manifest.json"
SPEC = "trial.json"


@dataclass(frozen=True, slots=True)
class Extent:
    """Which seconds a recording has, and latencies of which kinds."""

    start: int
    count: int
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a trial but its columns, and the digests of its files."""

    trial: Trial
    outcome: Outcome
    measurement: Measurement
    verdict: Verdict
    facts: Annotated[TrialFacts, PlainValidator(facts_from_json)]
    extent: Extent
    files: dict[str, FileDigest]
    format: int = FORMAT
    """The recording format: what the columns mean."""


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A whole trial: never changed after."""

    path: Path
    trial: Trial
    outcome: Outcome
    measurement: Measurement
    verdict: Verdict
    facts: TrialFacts
    extent: Extent
    files: dict[str, FileDigest]
    format: int = FORMAT
    """The recording format: what the columns mean."""

    @property
    def seconds(self) -> int:
        """How many seconds were recorded."""
        return self.extent.count


@dataclass(frozen=True, slots=True)
class PartialRecording:
    """What can be seen of a trial that is not whole: running now, or left by a crash."""

    trial: Trial
    seconds: Seconds


class PartialTrial:
    """A trial while it grows. Logs of its processes go into ``path``; they stay with it when it is whole."""

    def __init__(self, path: Path, trial: Trial, whole: Path) -> None:
        self.path = path
        self.trial = trial
        self._whole = whole
        self._live = columns.LiveSeconds(path)

    def append(self, seconds: Seconds) -> None:
        """Add the stretch of seconds that follows, for those who watch and for after a crash."""
        self._live.append(seconds)

    def close(self) -> None:
        """Let go of the files of a trial that will not be finished; the folder stays until ``clean``."""
        self._live.close()

    def finish(self, recording: Recording, measurement: Measurement, verdict: Verdict) -> StoredTrial:
        """Make the trial whole: write, fsync, rename. Once this returns, no crash can take it away."""
        if recording.trial != self.trial:
            raise ValueError(f"this folder is of trial {self.trial.number}, not of {recording.trial.number}")
        with as_store_error("finish", self.path):
            files = self._write_columns(recording.seconds)
            manifest = Manifest(
                recording.trial,
                recording.outcome,
                measurement,
                verdict,
                recording.facts,
                _extent(recording.seconds),
                files,
            )
            write_synced(self.path / MANIFEST, encode("trial", manifest))
            # From here on the manifest is complete, even if the folder was not renamed.
            self._live.discard()
            (self.path / SPEC).unlink(missing_ok=True)
            sync_folder(self.path)
            self.path.rename(self._whole)
            sync_folder(self._whole.parent)
        return _stored(self._whole, manifest)

    def _write_columns(self, seconds: Seconds) -> dict[str, FileDigest]:
        """Both Parquet files and whatever logs are there, all on the disk, with their digests."""
        passing = {self.path / name for name in (SPEC, columns.LIVE_SECONDS, columns.LIVE_LATENCIES)}
        kept = [path for path in files_below(self.path) if path not in passing]
        files = {path.relative_to(self.path).as_posix(): sync_file(path) for path in kept}
        for folder in {(self.path / name).parent for name in files} - {self.path}:
            sync_folder(folder)
        files[columns.SECONDS] = write_synced(self.path / columns.SECONDS, columns.seconds_to_bytes(seconds))
        files[columns.LATENCIES] = write_synced(self.path / columns.LATENCIES, columns.latencies_to_bytes(seconds))
        return files


def _extent(seconds: Seconds) -> Extent:
    return Extent(seconds.start, len(seconds), tuple(kind for kind in KINDS if kind in seconds.latencies))


def _stored(path: Path, m: Manifest) -> StoredTrial:
    return StoredTrial(path, m.trial, m.outcome, m.measurement, m.verdict, m.facts, m.extent, m.files, m.format)


def start_trial(trials: Path, trial: Trial) -> PartialTrial:
    """Make the folder of a trial that begins now. One left by a crash is moved aside and kept."""
    whole = trials / f"{trial.number:03d}"
    path = trials / f"{trial.number:03d}.partial"
    if whole.exists():
        raise StoreError(f"{whole} already exists; a finished trial is never overwritten")
    draft = trials / f".{trial.number:03d}.new"
    with as_store_error("begin", path):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        (draft / SPEC).write_bytes(encode("spec", trial))
        if path.exists():
            aside = 1
            while (moved := path.with_name(f"{path.name}.{aside}")).exists():
                aside += 1
            path.rename(moved)
        draft.rename(path)
    return PartialTrial(path, trial, whole)


def read_trial(path: Path) -> StoredTrial:
    """A whole trial without its columns."""
    manifest = read_value(path / MANIFEST, "trial", Manifest)
    if f"{manifest.trial.number:03d}" != path.name:
        raise StoreError(f"{path / MANIFEST} is of trial {manifest.trial.number}; the folder must have been renamed")
    return _stored(path, manifest)


def read_recording(path: Path) -> Recording:
    """A whole trial with its columns; its files must be the ones that were written."""
    return _recording(path, read_trial(path))


def _recording(path: Path, stored: StoredTrial) -> Recording:
    data = {name: _checked(path / name, stored.files) for name in (columns.SECONDS, columns.LATENCIES)}
    seconds = columns.read_seconds(path, stored.extent.start, stored.extent.kinds, data)
    if len(seconds) != stored.extent.count:
        raise StoreError(f"{path / columns.SECONDS} has {len(seconds)} seconds instead of {stored.extent.count}")
    return Recording(stored.trial, seconds, stored.outcome, stored.facts)


def _checked(path: Path, files: dict[str, FileDigest]) -> bytes:
    with as_store_error("read", path):
        data = path.read_bytes()
    if path.name not in files:
        raise StoreError(f"{path} is not listed in the {MANIFEST} beside it")
    found, expected = digest(data), files[path.name]
    if found.bytes != expected.bytes:
        raise StoreError(f"{path} is damaged: it has {found.bytes} bytes instead of {expected.bytes}")
    if found != expected:
        raise StoreError(f"{path} is damaged: its content does not match its digest")
    return data


def check_files(stored: StoredTrial) -> None:
    """Every file of a whole trial must be there as it was written, logs and journals as well."""
    for name, expected in stored.files.items():
        path = stored.path / name
        found = digest_file(path)
        if found != expected:
            what = "its content does not match its digest"
            if found.bytes != expected.bytes:
                what = f"it has {found.bytes} bytes instead of {expected.bytes}"
            raise StoreError(f"{path} is damaged: {what}")


def read_partial(path: Path) -> PartialRecording:
    """The content of a ``.partial`` folder: what was appended, or everything if the process ended in its last step."""
    if not (path / SPEC).exists() and (path / MANIFEST).exists():
        recording = _recording(path, _stored(path, read_value(path / MANIFEST, "trial", Manifest)))
        return PartialRecording(recording.trial, recording.seconds)
    return PartialRecording(read_value(path / SPEC, "spec", Trial), columns.read_live(path))
