"""The folder of downloaded files that this user keeps between runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """STREAMGAUGE_CACHE, else streamgauge in XDG_CACHE_HOME, else in ``.cache`` of the user's home."""
    named = os.environ.get("STREAMGAUGE_CACHE", "")
    if named:
        return Path(named).absolute()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(caches) if Path(caches).is_absolute() else Path.home() / ".cache") / "streamgauge"
