"""What it costs to keep a trial of two minutes, and to describe the machine at the start of a run."""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from streamgauge.run.environment import capture

sys.path.append(str(Path(__file__).parent.parent / "tests" / "unit"))
import store_samples as sample

_REPEATS = 9


def save(folder: Path) -> list[float]:
    """CPU seconds for each of some trials: the disk's own time is not counted."""
    run = sample.new_run(folder)
    long = replace(sample.recording(), seconds=sample.seconds(count=120, per_second=40))
    spent = []
    for number in range(1, _REPEATS + 1):
        partial, kept = run.begin(sample.trial(number)), replace(long, trial=sample.trial(number))
        begun = time.process_time()
        partial.append(kept.seconds)
        partial.finish(kept, sample.MEASUREMENT, sample.VERDICT)
        spent.append(time.process_time() - begun)
    return spent


def describe(folder: Path) -> list[float]:
    """Seconds for each of some descriptions of the machine."""
    spent = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        capture(folder)
        spent.append(time.perf_counter() - begun)
    return spent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        saved, described = save(Path(folder)), describe(Path(folder))
    print(f"keep a trial of 120 s: median {median(saved) * 1e3:.1f} ms of CPU, least {min(saved) * 1e3:.1f} ms")
    print(f"describe the machine:  median {median(described):.2f} s, least {min(described):.2f} s")


if __name__ == "__main__":
    main()
