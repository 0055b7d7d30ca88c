"""Broken experiment files, each beside the exact message that a user gets.

After a deliberate change: ``STREAMGAUGE_REWRITE_GOLDEN=1 pytest tests/golden/test_broken_experiments.py``,
then read the difference as the user would.
"""

import os
from pathlib import Path

import pytest

from streamgauge.parse import ExperimentError, read

FILES = sorted((Path(__file__).parent / "experiments").glob("*.yaml"))


def message(path: Path) -> str:
    with pytest.raises(ExperimentError) as caught:
        read(path.read_bytes(), path.name)
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_broken_file_gets_exactly_this_message(path: Path) -> None:
    expected = path.with_suffix(".txt")
    said = message(path)
    if os.environ.get("STREAMGAUGE_REWRITE_GOLDEN"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")


def test_there_are_at_least_thirty_of_them() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_problem_names_the_file(path: Path) -> None:
    for line in message(path).splitlines():
        assert line.startswith(f"{path.name}:")
