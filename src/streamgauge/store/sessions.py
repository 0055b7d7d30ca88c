"""Folders of systems that stay up for several trials: ``sessions/NNN``, each with its log and its warm-up."""

import shutil
from pathlib import Path

from streamgauge.store.durable import size_below

SESSIONS = "sessions"
TEMPORARY = "tmp"
"""Where such a system puts what nobody needs after it."""


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
