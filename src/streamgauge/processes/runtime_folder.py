"""The one folder outside the run's own: sockets and shared memory, named after the process that owns it.

Its name carries the owner's process id and start time, so that a folder whose owner is dead is known as
such, and swept when the next one is made. The launcher removes it, or the guards after kill -9.
"""

import os
import secrets
import shutil
from pathlib import Path

from streamgauge.processes.procfs import parse_stat

_SHARED = Path("/dev/shm")  # noqa: S108 - the folder in it belongs to one user, mode 0700
_FALLBACK = Path("/tmp")  # noqa: S108
MAX_SOCKET_PATH = 100


class RuntimeFolderError(OSError):
    """The runtime folder cannot be made; the message gives the reason."""


def _start_time(pid: int) -> int | None:
    """When the process started, in ticks since boot; None if there is none. 0 where /proc is not there."""
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return 0
        return 0
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text()).started
    except (OSError, ValueError):
        return None


def _user_folder(preferred: Path | None) -> Path:
    """The user's own folder, made with mode 0700. One that another user could have prepared is refused."""
    base = preferred or (_SHARED if _SHARED.is_dir() else _FALLBACK)
    home = base / f"streamgauge-{os.getuid()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = home.lstat()
    if home.is_symlink() or seen.st_uid != os.getuid() or seen.st_mode & 0o077:
        raise RuntimeFolderError(
            f"{home} belongs to another user or is accessible to others (mode {seen.st_mode & 0o777:o}); "
            "remove it, or set XDG_RUNTIME_DIR to another folder"
        )
    return home


def remove_stale(preferred: Path | None = None) -> tuple[Path, ...]:
    """Remove the folders of owners that are dead. What was removed."""
    gone = []
    for folder in _user_folder(preferred).iterdir():
        pid, _, rest = folder.name.partition("-")
        started = rest.partition("-")[0]
        if pid.isdigit() and started.isdigit() and _start_time(int(pid)) != int(started):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
    return tuple(gone)


def create(preferred: Path | None = None) -> Path:
    """A new runtime folder of this process. ``preferred`` is $XDG_RUNTIME_DIR, read by the command line."""
    remove_stale(preferred)
    pid = os.getpid()
    folder = _user_folder(preferred) / f"{pid}-{_start_time(pid)}-{secrets.token_hex(3)}"
    if len(str(folder)) > MAX_SOCKET_PATH - 20:
        raise RuntimeFolderError(
            f"{folder} is too long for the path of a socket ({MAX_SOCKET_PATH} characters); "
            "set XDG_RUNTIME_DIR to a shorter folder"
        )
    folder.mkdir(mode=0o700)
    return folder


def remove(folder: Path) -> None:
    """Remove a runtime folder, and the user's folder above it when it was the last."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.rmdir()
    except OSError:
        return  # another run still has its folder there
