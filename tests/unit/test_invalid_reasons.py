"""The page on the load driver has a row for every reason of an INVALID trial, in the words of the output."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judge_samples import CHECKED, LAG, LOAD, latencies, objective, recording, trial, walk

from streamgauge.judge import decide, measure
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.seconds import Account, Kind, Latencies
from streamgauge.model.trial import Recording
from streamgauge.model.units import SECOND

ROOT = Path(__file__).resolve().parents[2]
KAFKA = replace(trial(), transport=TransportChoice("kafka", {}, broker=True, exact_offsets=False))
LATENCY = objective("event-time", "<", SECOND, statistic="p50")
ON_TIME: dict[Kind, Latencies] = {"send-delay": latencies([(s, 1_000_000, int(LOAD)) for s in range(60)])}
APPENDED_LATE = ON_TIME | {"append-delay": latencies([(s, SECOND // 5, int(LOAD)) for s in range(60)])}
SLOW: dict[Kind, Latencies] = {
    kind: latencies([(s, SECOND * 6 // 5, 10) for s in range(60)]) for kind in ("event-time", "event-time-windows")
}


def with_burst() -> Recording:
    """Five seconds of other work, after which the lag does not fall again."""
    found = recording(np.concatenate([np.zeros(20), np.full(40, LOAD)]))
    column = np.zeros(60, np.int64)
    column[20:25] = 400_000
    columns = {**found.seconds.columns, "foreign": column}
    return replace(found, seconds=replace(found.seconds, columns=columns))


JUDGED = {
    "too few events": recording(published=0.98 * LOAD),
    "late events": recording(send_delay=180e6),
    "a pause": recording(schedule_lag=300e6),
    "too few confirmed events": recording(of=KAFKA, kinds=ON_TIME, published=0.98 * LOAD),
    "a late broker": recording(of=KAFKA, kinds=APPENDED_LATE),
    "a load driver that waits": recording(walk(0.5), run_delay=0.2 * SECOND),
    "a hiccup": recording(kinds=SLOW, firings=10, hiccup=240e6),
    "a hiccup of the collector": recording(kinds=SLOW, firings=10, collector_hiccup=240e6),
    "other processes": recording(walk(0.012, noise=0.05), foreign=80_000),
    "other processes in a stall": recording(ending="stalled", foreign=200_000),
    "steal time": recording(walk(0.012, noise=0.05), foreign=80_000, steal=80_000),
    "a burst": with_burst(),
    "a clock step": recording(clock_step=2 * SECOND),
    "an ended load driver": recording(account=Account(), ending="driver-failed", detail="driver-0 ended"),
    "partitions that are apart": recording(of=KAFKA, account=replace(CHECKED, lost=3), skew=500e6),
}
OF_THE_TRIAL = (
    "run/trial/drain.py: the collector was behind schedule for",
    "run/trial/drain.py: the collector recorded nothing",
    "run/trial/drain.py: the monitor stopped",
    "run/trial/drain.py: the monitor recorded nothing for",
    "run/trial/drain.py: the number of events on the broker is unknown:",
    "transports/kafka/open_kafka.py: events were sent, the broker acknowledged",
)
"""Reasons that are not computed from numbers: the file and the words of each."""


def patterns() -> list[re.Pattern[str]]:
    """The reasons in the table of the page; … is a value."""
    text = (ROOT / "docs/concepts/driver.md").read_text(encoding="utf-8").partition("## What makes a trial INVALID")[2]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    reasons = [reason for cell in cells for reason in re.findall(r"`([^`]+)`", cell)]
    return [re.compile(".+".join(map(re.escape, re.split(r" ?… ?", reason)))) for reason in reasons]


@pytest.mark.parametrize("cause", JUDGED)
def test_the_page_has_the_reason_of_every_cause(cause: str) -> None:
    happened = JUDGED[cause]
    verdict = decide(happened, measure(happened), (LATENCY,) if "hiccup" in cause else (LAG,))
    assert verdict.kind is VerdictKind.INVALID
    assert [each.pattern for each in patterns() if each.match(verdict.reasons[0])], verdict.reasons[0]


@pytest.mark.parametrize("reason", OF_THE_TRIAL)
def test_the_page_has_the_reasons_that_a_trial_reports(reason: str) -> None:
    file, _, words = reason.partition(": ")
    assert words in (ROOT / "src/streamgauge" / file).read_text(encoding="utf-8")
    assert [each.pattern for each in patterns() if each.search(f"1 {words} 2, and its log contains 3")]


def test_every_reason_on_the_page_is_one_of_these() -> None:
    judged = [decide(r, measure(r), (LATENCY,) if "hiccup" in c else (LAG,)).reasons[0] for c, r in JUDGED.items()]
    known = [*judged, *(f"1 {reason.partition(': ')[2]} 2, and its log contains 3" for reason in OF_THE_TRIAL)]
    assert [each.pattern for each in patterns() if not any(map(each.search, known))] == []
