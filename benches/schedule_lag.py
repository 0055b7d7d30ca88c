"""How late the generator's ticks are: at 1 M events/s, at 80 % of its flat-out rate, and where it is believed up to."""

import argparse
import statistics
import tempfile
from pathlib import Path

from streamgauge.model.calibration import CLIP
from streamgauge.model.units import format_duration, format_rate
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import place
from streamgauge.run.calibrate.max_load import CONFIRM, PROBE, SAFE_LAG, queue_ceiling, schedule_lag, timely_rates


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    where = place({})
    with tempfile.TemporaryDirectory() as name, Launcher() as launcher:
        folder = Path(name)
        ceiling = statistics.median(queue_ceiling(launcher, folder / f"q{i}", where) for i in range(3))
        probes = timely_rates(
            ceiling, lambda rate, long: schedule_lag(launcher, folder / f"{rate:.0f}-{long:.0f}", where, rate, long)
        )
        print(f"flat out {format_rate(ceiling)}; medians of {arguments.repeats} runs of {arguments.seconds:g} s")
        print(f"  accepted: p99 at most {format_duration(SAFE_LAG)} over {PROBE:g} s and then {CONFIRM:g} s")
        believed = probes[-1].rate
        rates = (("1M/s", 1e6), ("80 % of flat out", CLIP * ceiling), (f"believed, {believed / ceiling:.0%}", believed))
        for label, rate in rates:
            lags = [
                schedule_lag(launcher, folder / f"l{rate:.0f}-{i}", where, rate, arguments.seconds)
                for i in range(arguments.repeats)
            ]
            shown = {
                "p50": [lag.p50 for lag in lags],
                "p99": [lag.p99 for lag in lags],
                "worst second": [lag.worst for lag in lags],
                "max": [lag.most for lag in lags],
                "longest hiccup": [lag.hiccup for lag in lags],
            }
            text = "  ".join(f"{k} {format_duration(statistics.median(v))}" for k, v in shown.items())
            print(f"  {label:20} achieved {format_rate(statistics.median(lag.achieved for lag in lags))}  {text}")


if __name__ == "__main__":
    main()
