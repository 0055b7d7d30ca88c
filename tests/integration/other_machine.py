"""Another machine, as far as one can be another: nothing of this one's environment, another time and place."""

import subprocess
import sys
from pathlib import Path

from cli_session import CommandResult


class OtherMachine:
    """Runs commands there. ``tools`` is the path on which they find others; nothing else is known to them."""

    def __init__(self, home: Path, tools: str = "/nowhere") -> None:
        self.home, self.tools = home, tools
        home.mkdir()

    def streamgauge(self, *words: str | Path) -> CommandResult:
        """A command there."""
        there = {"HOME": str(self.home), "PATH": self.tools, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
        argv = [sys.executable, "-m", "streamgauge", *map(str, words)]
        done = subprocess.run(argv, env=there, cwd=self.home, capture_output=True, text=True, timeout=300, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr)
