"""Where a system under test runs: how many instances on how many cores, and which cores of this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """What a system under test gets. Two trials can share a system only if their layouts are equal."""

    instances: int = 1
    cores: float = 1
    """CPU cores of all instances together."""
    memory: int = 0
    """Bytes of memory of each instance; 0: not limited here."""
    kind: str = "local"
    """How it is deployed, such as local or a cluster."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Cores of the load driver (with collector and controller) and of the system under test. Empty: unpinned."""

    driver: tuple[int, ...] = ()
    sut: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """As it is stored in trials and calibrations; ``placement_text`` is what users read."""
        if not self.sut:
            return "nothing is pinned: the driver and the system under test share all cores"
        return f"the driver on core {_list(self.driver)}, the system under test on core {_list(self.sut)}"


def placement_text(sentence: str) -> str:
    """A stored placement as it is shown."""
    return sentence.replace("the driver", "load driver").replace("the system under test", "system under test")


def _list(cores: tuple[int, ...]) -> str:
    return ", ".join(map(str, cores))
