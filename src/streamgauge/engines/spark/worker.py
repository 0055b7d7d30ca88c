"""What our sources and sinks do to the Python workers that they run in."""

import gc
from functools import cache


@cache
def unburden() -> None:
    """Take all that is imported out of the garbage collector's sight, once in a process.

    Spark's Python daemon collects garbage after every task. With pyarrow and pandas imported that takes 50 ms and
    more, four times in a micro-batch: a fifth of a core at one micro-batch a second, which no job of the user's needs.
    """
    gc.collect()
    gc.freeze()
