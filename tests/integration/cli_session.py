"""Runs commands for the tests: in this process, or in a separate one that can be killed."""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.cli.main import main

EXPERIMENT = """\
name: small
workload: {name: windowed-aggregation, window: 8s, slide: 8s}
engine: {name: simulated, capacity: 100k/s, noise: 2%}
find: sustainable-throughput
load: {between: [10k/s, 1M/s]}
objective: [lag-trend <= 1%]
search: {precision: 5%}
trial: {duration: 30s, warmup: 5s}
seed: 3
"""
MEASURE = (
    EXPERIMENT.replace("find: sustainable-throughput", "find: nothing")
    .replace("between: [10k/s, 1M/s]", "rate: 50k/s")
    .replace("search: {precision: 5%}\n", "")
)


@dataclass(frozen=True)
class CommandResult:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def streamgauge(*arguments: str | Path) -> CommandResult:
    """Run a command in this process, with its streams captured."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(a) for a in arguments])
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else -1
    return CommandResult(code, out.getvalue(), err.getvalue())


def start(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, group: int | None = None
) -> subprocess.Popen[str]:
    """Start a command in a separate process; with ``group`` 0 also as the head of a group, as a shell does."""
    words = [sys.executable, "-m", "streamgauge", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=env, cwd=cwd, process_group=group)


def write(folder: Path, text: str = EXPERIMENT, name: str = "experiment.yaml") -> Path:
    """An experiment file in this folder."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
