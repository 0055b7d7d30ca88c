"""Keep pandas out of processes that are held to milliseconds."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pyarrow as pa


class _NoPandas(MetaPathFinder):
    """Finds no pandas, wherever it lies."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave anything but pandas to the finders after this one."""
        if fullname == "pandas":
            raise ModuleNotFoundError("Arrow is to do without pandas here", name=fullname)
        return None


def without_pandas() -> None:
    """Let Arrow do without pandas in this process, as it does where none is installed.

    Its first conversion from or to numpy loads pandas, only to ask whether what it was given is a series. Where
    pandas is installed (Spark wants it) that one call takes 0.4 s in which no other thread of ours can run: in the
    middle of a load, under the lock of the queue. So the first conversion is made here, where it finds no pandas;
    Arrow looks only once.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array(np.zeros(1, np.int64)).to_numpy()
    finally:
        sys.meta_path.remove(finder)
