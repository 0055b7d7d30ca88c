"""Where the benches run: the driver on the first core that we may use, the other side on the next."""

import os

from streamgauge.run.place import Placement


def here() -> Placement:
    """One core each; the bench itself stays with the driver's, where the controller is too."""
    if not hasattr(os, "sched_getaffinity"):
        return Placement()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return Placement(tuple(cores), tuple(cores))
    os.sched_setaffinity(0, cores[:1])
    return Placement((cores[0],), (cores[1],))
