"""Output rows per second that the collector stamps, counts and writes to the disk."""

import argparse
import statistics
import tempfile
from pathlib import Path

from streamgauge.model.units import format_rate
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import assign_cores
from streamgauge.run.calibrate.max_load import LoadSetup, max_output_rate
from streamgauge.transports.queue.transport import OpenQueue


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    where = assign_cores(1)
    for rows in (100, 16_384):
        rates = []
        for _ in range(arguments.repeats):
            with tempfile.TemporaryDirectory() as folder, Launcher() as launcher:
                site = LoadSetup(launcher, OpenQueue(launcher.runtime), "queue", where)
                rates.append(max_output_rate(site, Path(folder) / "c", arguments.seconds, rows))
        print(f"collector on core {where.driver}, sender on core {where.sut}, {rows} rows of 32 bytes to a batch")
        print(f"  median of {len(rates)}    {format_rate(statistics.median(rates))}")
        print(f"  all            {', '.join(format_rate(rate) for rate in sorted(rates))}")


if __name__ == "__main__":
    main()
