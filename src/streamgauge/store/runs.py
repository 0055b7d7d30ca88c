"""One run in the results folder: experiment, environment, trials and results."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.model.trial import Recording, Trial
from streamgauge.store.documents import encode, read_value
from streamgauge.store.durable import (
    FileDigest,
    RunLocked,
    StoreError,
    as_store_error,
    digest,
    remove_tree,
    replace_file,
    size_below,
)
from streamgauge.store.trials import (
    PartialRecording,
    PartialTrial,
    StoredTrial,
    read_partial,
    read_recording,
    read_trial,
    start_trial,
)

SESSIONS = "sessions"
TEMPORARY = "tmp"
"""Where such a system puts what is not needed after it."""


def newest_session(sessions: Path) -> int:
    """The highest number that is taken, also by a run that was killed; 0 if none is."""
    return max((int(path.name) for path in sessions.glob("[0-9]*") if path.name.isdigit()), default=0)


def temporaries(sessions: Path) -> list[Path]:
    """Temporary folders that are there now: of systems that run, or that could not remove them."""
    return sorted(sessions.glob(f"*/{TEMPORARY}"))


def sweep_sessions(sessions: Path) -> int:
    """Remove the temporary folders. Bytes freed. Call it when none of the systems is needed."""
    freed = 0
    for path in temporaries(sessions):
        freed += size_below(path)
        # a system whose run was killed may take some seconds to die, and write meanwhile: the next sweep has the rest
        if path.is_symlink():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
    return freed


HEADER = "run.json"
TEXT = "experiment.yaml"
EXPERIMENT = "experiment.json"
ENVIRONMENT = "environment.json"
FINDINGS = "findings.json"
REPORT = "report.html"
TRIALS = "trials"
LOCK = "lock"

_WHOLE = re.compile(r"[0-9]{3,}")
_PARTIAL = re.compile(r"[0-9]{3,}\.partial(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Header:
    """The content of run.json."""

    id: str
    experiment: str
    created: datetime
    command: tuple[str, ...]
    streamgauge: str
    text: FileDigest
    """Of experiment.yaml, which is kept as the user wrote it."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a run ended: its findings, the reason it ended, the exit code, the time spent in nanoseconds."""

    findings: tuple[Finding, ...]
    ended: str
    exit_code: int
    spent_ns: int


@dataclass(frozen=True, eq=False)
class Run:
    """All trials of one experiment. The folder's name is the id: rename the folder and the run is renamed."""

    path: Path
    experiment: Experiment
    environment: dict[str, Any]
    created: datetime
    command: tuple[str, ...] = ()
    streamgauge: str = ""
    text: str = field(default="", repr=False)
    _seen: dict[str, StoredTrial] = field(default_factory=dict, repr=False)
    """Whole trials that were read once. They never change after, so they need not be read again."""

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Read a run of any known format."""
        header = read_value(path / HEADER, "run", Header)
        experiment = read_value(path / EXPERIMENT, "experiment", Experiment)
        environment: dict[str, Any] = read_value(path / ENVIRONMENT, "environment", dict)
        with as_store_error("read", path / TEXT):
            text = (path / TEXT).read_bytes()
        if digest(text) != header.text:
            raise StoreError(
                f"{path / TEXT} is not the file that was run; restore the original, or run the experiment again"
            )
        created = header.created.astimezone(UTC)
        return cls(path, experiment, environment, created, header.command, header.streamgauge, text.decode("utf-8"))

    def begin(self, trial: Trial) -> PartialTrial:
        """Make the folder of a trial that starts now; what a crash left of it is moved aside."""
        return start_trial(self.path / TRIALS, trial)

    def trials(self) -> list[StoredTrial]:
        """The whole trials, in order."""
        return [self._read(path) for path in self._folders(_WHOLE)]

    def trial_count(self) -> int:
        """How many trials are whole, without reading them."""
        return len(self._folders(_WHOLE))

    def trial(self, number: int) -> StoredTrial:
        """One whole trial."""
        return self._read(self._whole(number))

    def recording(self, number: int) -> Recording:
        """One whole trial with its seconds."""
        return read_recording(self._whole(number))

    def partials(self) -> list[Path]:
        """Folders of trials that are not whole: the one that grows, and what crashes have left."""
        return self._folders(_PARTIAL)

    def growing(self) -> PartialRecording | None:
        """The trial that grows now, as far as it is there; None between two trials."""
        now = [path for path in self.partials() if path.name.endswith(".partial")]
        return read_partial(now[-1]) if now else None

    @property
    def sessions(self) -> Path:
        """Where the systems that stay up for several trials have their folders."""
        return self.path / SESSIONS

    def temporary_folders(self) -> list[Path]:
        """Temporary folders of systems that stayed up: of those that run now, or left by a crash."""
        return temporaries(self.sessions)

    def discard_leftovers(self) -> int:
        """Remove what crashes have left, logs of trials and all. Bytes freed. Call it with the lock held."""
        freed = sweep_sessions(self.sessions)
        for path in self.partials():
            freed += size_below(path)
            remove_tree(path)
        return freed

    def trial_results(self, engine: str | None = None) -> list[TrialResult]:
        """The results of the trials so far, of one engine's label or of all of them."""
        whole = self.trials()
        of_engine = [t for t in whole if engine in (None, t.trial.engine)]
        return [TrialResult(t.trial.ask, t.verdict, t.trial.number, t.measurement.load) for t in of_engine]

    def write_conclusion(self, findings: Sequence[Finding], ended: str, exit_code: int, spent_ns: int) -> None:
        """Write the results. A run that is resumed writes it again, in one step."""
        replace_file(self.path / FINDINGS, encode("findings", Conclusion(tuple(findings), ended, exit_code, spent_ns)))

    def save_report(self, page: bytes) -> Path:
        """Put the report into the folder. It can be made again at any time, so a power cut may take it."""
        replace_file(self.report, page, durable=False)
        return self.report

    @property
    def report(self) -> Path:
        """Where the report is, once there is one."""
        return self.path / REPORT

    def conclusion(self) -> Conclusion | None:
        """How the run ended; None if it has not, or was killed before it could write that."""
        with as_store_error("read", self.path / FINDINGS):
            if not (self.path / FINDINGS).exists():
                return None
        return read_value(self.path / FINDINGS, "findings", Conclusion)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run, so that no other process writes it. The lock ends with the process in any case."""
        path = self.path / LOCK
        with as_store_error("lock", path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
                raise RunLocked(f"run {self.id} is being written by another process (pid {holder})") from error
            os.truncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
            yield
        finally:
            os.close(handle)

    def _read(self, path: Path) -> StoredTrial:
        if path.name not in self._seen:
            self._seen[path.name] = read_trial(path)
        return self._seen[path.name]

    def _whole(self, number: int) -> Path:
        path = self.path / TRIALS / f"{number:03d}"
        if not path.is_dir():
            raise StoreError(f"run {self.id} has no finished trial {number}")
        return path

    def _folders(self, pattern: re.Pattern[str]) -> list[Path]:
        with as_store_error("read", self.path / TRIALS):
            found = [path for path in (self.path / TRIALS).iterdir() if pattern.fullmatch(path.name)]
        return sorted(found, key=lambda path: _by_number(path.name))


def _by_number(name: str) -> tuple[int, int]:
    """001.partial.2, then 001.partial: what is newer comes later."""
    number, _, rest = name.partition(".partial")
    return int(number), int(rest[1:]) if rest else 1 << 62
