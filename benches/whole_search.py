"""One whole search on real processes: do the bounds at 2 % precision contain the capacity that is known?"""

import sys
import tempfile
from pathlib import Path

from streamgauge.model.units import format_rate
from streamgauge.parse import read
from streamgauge.processes.clock import now
from streamgauge.run.environment import capture
from streamgauge.run.explore import explore
from streamgauge.store import Store

CAPACITY = 400_000.0
THETA = 0.01
EXPERIMENT = f"""
name: known-capacity
workload: {{name: windowed-aggregation, window: 2s, slide: 1s}}
engine: {{name: reference, capacity: {CAPACITY:.0f}/s}}
find: sustainable-throughput
load: {{between: [100k/s, 1M/s]}}
objective: [lag-trend <= {THETA:.0%}, lost == 0]
search: {{precision: 2%}}
trial: {{duration: 15s, warmup: 3s, limit: 45s, invalid_retries: 5}}
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sg") as folder:
        experiment = read(EXPERIMENT)
        run = Store(Path(folder)).create(experiment, EXPERIMENT, capture(), now(), "0000", sys.argv)
        result = explore(experiment, run)
        (finding,) = result.findings
        truth = CAPACITY / (1 - THETA)
        held = finding.holds and finding.fails and finding.holds.value <= truth <= finding.fails.value
        invalid = sum(t.verdict.kind == "INVALID" for t in run.trials())
        print(f"whole search, reference engine of {format_rate(CAPACITY)}, precision 2 %: {finding.sentence}")
        print(f"  the true boundary {format_rate(truth)} is {'between' if held else 'NOT between'} the bounds")
        trials = f"{run.trial_count()} trials, {invalid} of them INVALID and repeated"
        print(f"  {trials}, {result.trial_time_ns / 1e9:.0f} s of trial time")


if __name__ == "__main__":
    main()
