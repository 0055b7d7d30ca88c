"""What the operating system refuses is one sentence per cause, with what to do."""

import errno
import os

import pytest

from streamgauge.cli.errors import explain, os_error_code
from streamgauge.run.result import ExitCode


def refused(number: int, path: str | bytes | None = "some/file") -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "No space is left on the disk of some/file. Free some space"),
        (errno.EACCES, "You have no permission to use some/file. Change its permissions"),
        (errno.EROFS, "some/file is on a file system that is read-only."),
        (errno.ENOENT, "some/file does not exist. Check the path"),
        (errno.ENOTDIR, "A part of some/file is a file, not a folder."),
        (errno.EMFILE, "too many open files"),
        (errno.ENOTCONN, "some/file: Transport endpoint is not connected."),
    ],
)
def test_each_cause_has_its_sentence(number: int, words: str) -> None:
    assert words.lower() in explain(refused(number)).lower()


def test_only_a_full_disk_is_advised_to_be_freed() -> None:
    full = {number for number in errno.errorcode if "Free some space" in explain(refused(number))}
    assert full == {errno.ENOSPC, errno.EDQUOT}


def test_every_error_is_a_sentence_even_without_a_path() -> None:
    for number in errno.errorcode:
        for path in ("some/file", b"some/\xff", None):
            said = explain(refused(number, path))
            assert said[0].isupper() or said.startswith(("some/", "a file"))
            assert "None" not in said


def test_a_full_disk_spoils_the_measurement_and_a_wrong_path_is_the_users() -> None:
    assert os_error_code(refused(errno.ENOSPC)) == ExitCode.INVALID
    assert os_error_code(refused(errno.ENOENT)) == ExitCode.USAGE
