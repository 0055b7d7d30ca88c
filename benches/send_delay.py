"""The send delay at 1M events/s, at 80 % of the maximum rate, and at the maximum reliable load."""

import argparse
import statistics
import tempfile
from pathlib import Path

from streamgauge.model.calibration import CALIBRATED_SHARE
from streamgauge.model.units import format_duration, format_rate
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import assign_cores
from streamgauge.run.calibrate.max_load import (
    CONFIRM,
    PROBE,
    SAFE_LAG,
    LoadSetup,
    max_input_rate,
    probe_rates,
    send_delay,
)
from streamgauge.transports.queue.transport import OpenQueue


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    where = assign_cores(1)
    with tempfile.TemporaryDirectory() as name, Launcher() as launcher:
        folder = Path(name)
        site = LoadSetup(launcher, OpenQueue(launcher.runtime), "queue", where)
        most = statistics.median(max_input_rate(site, folder / f"q{i}") for i in range(3))
        probes = probe_rates(most, lambda rate, long: send_delay(site, folder / f"{rate:.0f}-{long:.0f}", rate, long))
        print(f"maximum rate {format_rate(most)}; medians of {arguments.repeats} runs of {arguments.seconds:g} s")
        print(f"  accepted: p99 at most {format_duration(SAFE_LAG)} over {PROBE:g} s and then {CONFIRM:g} s")
        reliable = probes[-1].rate
        rates = (
            ("1M/s", 1e6),
            ("80 % of the maximum", CALIBRATED_SHARE * most),
            (f"reliable, {reliable / most:.0%}", reliable),
        )
        for label, rate in rates:
            delays = [
                send_delay(site, folder / f"l{rate:.0f}-{i}", rate, arguments.seconds) for i in range(arguments.repeats)
            ]
            shown = {
                "p50": [delay.p50 for delay in delays],
                "p99": [delay.p99 for delay in delays],
                "worst second": [delay.worst for delay in delays],
                "max": [delay.most for delay in delays],
                "longest hiccup": [delay.hiccup for delay in delays],
            }
            text = "  ".join(f"{k} {format_duration(statistics.median(v))}" for k, v in shown.items())
            print(f"  {label:20} achieved {format_rate(statistics.median(delay.achieved for delay in delays))}  {text}")


if __name__ == "__main__":
    main()
