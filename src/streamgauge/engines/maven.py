"""Maven, which fetches what engines and transports on the JVM are made of: where it lies, and how to get it."""

import shutil
from pathlib import Path

from streamgauge.engines.packages import Manager


def find_maven() -> Path | None:
    """The Maven on the path."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def maven_missing(known: Manager | None, root: bool) -> str:
    """A sentence for somebody who has no Maven, with the line to type."""
    how = f"Install it with: {known.line('maven', root)}" if known else "Install it so that mvn is on the PATH"
    return f"Maven is required to download jars, but none was found. {how}"
