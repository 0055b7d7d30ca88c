"""Errors as messages for the user: the cause, and what to do. Pure."""

import errno
from collections.abc import Sequence
from typing import Any

from streamgauge.run.result import ExitCode


class UserError(Exception):
    """Ends a command with a message on stderr and an exit code, never with a traceback."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE, problems: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.problems = list(problems)
        """The problems one by one, for ``--json``."""


_MESSAGES = {
    errno.ENOSPC: "No space is left on the disk of {path}. Free some space, or set --out to a folder on another disk.",
    errno.EDQUOT: "Your disk quota is used up for {path}. Free some space, or set --out to a folder on another disk.",
    errno.EIO: "The disk of {path} reported an input/output error. Check the disk, or set --out to another one.",
    errno.EACCES: "You have no permission to use {path}. Change its permissions, or set --out to another folder.",
    errno.EPERM: "You have no permission to use {path}. Change its permissions, or set --out to another folder.",
    errno.EROFS: "{path} is on a file system that is read-only. Set --out to a folder on another one.",
    errno.ENOENT: "{path} does not exist. Check the path, or create it first.",
    errno.ENOTDIR: "A part of {path} is a file, not a folder. Check the path.",
    errno.EISDIR: "{path} is a folder, not a file. Check the path.",
    errno.EEXIST: "{path} exists already. Choose another name.",
    errno.ENAMETOOLONG: "The name of {path} is too long. Choose a shorter one.",
    errno.ELOOP: "{path} is a symbolic link that leads to itself. Check the link.",
    errno.EMFILE: "This process has too many open files. Raise the limit, for example with: ulimit -n 4096",
    errno.ENFILE: "This machine has too many open files. Close other programs.",
    errno.ENOMEM: "This machine has no memory left. Close other programs.",
}
_MACHINE_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM)


def explain(error: OSError) -> str:
    """What happened to which file, and what to do next."""
    if error.filename is None and error.errno == errno.ENOENT:
        return "The current folder does not exist any more. Change to another folder and run the command again."
    path = "a file" if error.filename is None else _named(error.filename)
    known = _MESSAGES.get(error.errno or 0)
    if known is None:
        return f"{path}: {error.strerror}. Check the path."
    message = known.format(path=path)
    return f"{message[:1].upper()}{message[1:]}"


def _named(path: object) -> str:
    return path.decode("utf-8", "replace") if isinstance(path, bytes) else str(path)


def os_error_code(error: OSError) -> ExitCode:
    """INVALID if the machine has no space or memory left; USAGE for every other error."""
    return ExitCode.INVALID if error.errno in _MACHINE_FULL else ExitCode.USAGE
