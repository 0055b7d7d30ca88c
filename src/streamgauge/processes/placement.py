"""The cores of a trial: the load driver and the system under test share none if the machine has two or more."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil

from streamgauge.model.layout import Placement


class NotEnoughCores(ValueError):
    """The system under test needs more cores than this machine has beside the load driver."""


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may use; none where the system cannot pin."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def assign_cores(wanted: int, cores: tuple[int, ...] | None = None) -> Placement:
    """The system under test gets the last ``wanted`` cores, the load driver the others."""
    have = usable_cores() if cores is None else cores
    most = max(len(have) - 1, 1)
    if have and wanted > most:
        raise NotEnoughCores(
            f"the system under test needs {wanted} cores, but this machine has {len(have)} and the load driver "
            f"needs one; set engine.cores to {most} or less"
        )
    if len(have) < 2:
        return Placement()
    return Placement(have[:-wanted], have[-wanted:])


@contextmanager
def controller_pinned(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep this process on the cores of the load driver for a while."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pin(roots: Sequence[int], cores: tuple[int, ...]) -> None:
    """Bind these processes and all below them to cores, thread by thread. What they start later inherits it.

    Twice, because a thread that starts meanwhile has the cores of its parent.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    for _ in range(2):
        for root in roots:
            for process in _process_tree(root):
                for thread in process.threads():
                    with suppress(OSError):  # it has ended
                        os.sched_setaffinity(thread.id, cores)


def _process_tree(root: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(root)
        return [p for p in (first, *first.children(recursive=True)) if p.is_running()]
    except psutil.NoSuchProcess:
        return []
