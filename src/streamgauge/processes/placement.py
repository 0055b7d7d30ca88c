"""Where the roles of a trial run: the driver and the system under test never share a core if that can be."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil


@dataclass(frozen=True, slots=True)
class Placement:
    """Cores of the driver (collector and controller with it) and of the system under test. Empty: unpinned."""

    driver: tuple[int, ...] = ()
    sut: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """For the report."""
        if not self.sut:
            return "nothing is pinned: the driver and the system under test share all cores"
        return f"the driver on core {_list(self.driver)}, the system under test on core {_list(self.sut)}"


class NotEnoughCores(ValueError):
    """More cores were asked for than this machine can give beside the driver."""


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may use; none where the system cannot pin."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def place(options: dict[str, Any], cores: tuple[int, ...] | None = None) -> Placement:
    """The SUT gets the last cores, as many as its options say (default one), the driver the others."""
    have = usable_cores() if cores is None else cores
    wanted = int(options.get("cores", 1))
    most = max(len(have) - 1, 1)
    if have and wanted > most:
        raise NotEnoughCores(
            f"the system under test needs {wanted} cores, but this machine has {len(have)} and the load driver "
            f"needs one; set engine.cores to {most} or less"
        )
    if len(have) < 2:
        return Placement()
    return Placement(have[:-wanted], have[-wanted:])


def bind(roots: Sequence[int], cores: tuple[int, ...]) -> None:
    """Bind these processes and all below them to cores, thread by thread. What they start later inherits it.

    Twice, for a thread that is born meanwhile has the cores of its parent.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    for _ in range(2):
        for root in roots:
            for process in _family(root):
                for thread in process.threads():
                    with suppress(OSError):  # it has ended
                        os.sched_setaffinity(thread.id, cores)


def _family(root: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(root)
        return [p for p in (first, *first.children(recursive=True)) if p.is_running()]
    except psutil.NoSuchProcess:
        return []


def _list(cores: tuple[int, ...]) -> str:
    return ", ".join(map(str, cores))
