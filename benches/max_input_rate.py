"""Events per second from the generator through the queue to a null consumer, per core of the load driver."""

import argparse
import statistics
import tempfile
from pathlib import Path

from streamgauge.model.units import format_rate
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import assign_cores
from streamgauge.run.calibrate.max_load import LoadSetup, max_input_rate
from streamgauge.transports.queue.transport import OpenQueue


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    where = assign_cores(1)
    with tempfile.TemporaryDirectory() as folder, Launcher() as launcher:
        site = LoadSetup(launcher, OpenQueue(launcher.runtime), "queue", where)
        rates = [max_input_rate(site, Path(folder) / f"q{i}", arguments.seconds) for i in range(arguments.repeats)]
    print(f"generator and queue on core {where.driver}, consumer on core {where.sut}, rows of 20 bytes")
    print(f"  median of {len(rates)}    {format_rate(statistics.median(rates))}   (expected 20M/s or more)")
    print(f"  all            {', '.join(format_rate(rate) for rate in sorted(rates))}")


if __name__ == "__main__":
    main()
