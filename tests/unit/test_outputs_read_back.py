"""What is counted from outputs that were read back from a topic, and from the stamps of the broker."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.run.collector.counts import FIRST_ROW, KIND_NUMBER, LAST_ROW, UpdateTracker, WindowResultCounter
from streamgauge.run.trial.facts import clock_difference
from streamgauge.stats import buckets
from streamgauge.transports.kafka.clock_offset import MILLI, ClockOffset

STAMP = pa.timestamp("us", "UTC")
SECOND = 1_000_000
IDENTITY = ("window_start", "gem_pack_id")


def outputs(*rows: tuple[int, int, int, int]) -> pa.Table:
    """Rows of window (second), key, emitted and the newest due (µs), as the collector keeps them."""
    window, key, emitted, due = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return pa.table(
        {
            "window_start": pa.array(window * SECOND).cast(STAMP),
            "gem_pack_id": pa.array(key),
            "emitted_us": pa.array(emitted),
            "max_due": pa.array(due).cast(STAMP),
            "batch": pa.array(np.zeros(len(window), np.int64)),
        }
    )


def test_a_window_result_counts_once_in_the_second_in_which_its_last_event_was_due() -> None:
    results = WindowResultCounter("window_start")
    rows = (0, 1, 2_500_000, 900_000), (0, 2, 1_900_000, 1_100_000), (4, 1, 5_000_000, 4_500_000)
    results.add(outputs(*rows))
    results.add(outputs((0, 3, 2_100_000, 800_000)))  # another partition
    counted = results.counts(0)
    assert dict(zip(counted.second, counted.firings, strict=True)) == {1: 1, 4: 1}
    ((seconds, kind, bucket, count),) = counted.latencies
    assert (seconds.tolist(), kind, count.tolist()) == ([1, 4], KIND_NUMBER["event-time-windows"], [1, 1])
    assert bucket.tolist() == buckets.index([1_600_000, 500_000]).tolist()


def test_first_and_last_row_of_every_window_and_key_have_separate_latencies() -> None:
    updates = UpdateTracker(IDENTITY)
    updates.add(outputs((0, 1, 1_000, 900), (0, 2, 1_000, 500), (0, 1, 2_000, 1_000)))
    updates.add(outputs((0, 1, 9_000, 1_500)))
    found = {kind: (bucket, count) for t in updates.counts(0) for _, kind, bucket, count in t.latencies}
    assert {kind: buckets.lowest(bucket).tolist() for kind, (bucket, _) in found.items()} == {
        FIRST_ROW: [100, 500],
        LAST_ROW: [500, buckets.lowest(buckets.index(7_500)).item()],
    }


def test_of_windows_that_are_emitted_many_times_only_the_ends_stay_in_memory() -> None:
    few, all_of_them = UpdateTracker(IDENTITY, most=50), UpdateTracker(IDENTITY)
    for emitted in range(1_000, 9_000, 10):
        rows = outputs((0, 1, emitted, emitted - emitted % 700), (4, emitted % 3, emitted + 5, emitted))
        for updates in (few, all_of_them):
            updates.add(rows)
    assert few.rows <= 50 < all_of_them.rows
    told = [
        [(s.tolist(), k, b.tolist(), c.tolist()) for t in u.counts(0) for s, k, b, c in t.latencies]
        for u in (few, all_of_them)
    ]
    assert told[0] == told[1] != []


def test_the_offset_of_the_clocks_is_where_all_probes_agree() -> None:
    offset = ClockOffset()
    assert offset.bounds() is None
    now = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000
    for ahead, took in ((0.4, 3.0), (0.6, 1.2), (0.1, 2.0)):  # milliseconds: into the broker's one, and there and back
        appended = now * MILLI + int(ahead * MILLI)
        offset.add(now, appended - int(took / 2 * MILLI), appended + int(took / 2 * MILLI))
        now += 100
    bounds = offset.bounds()
    assert bounds is not None
    found = clock_difference([bounds])
    assert found is not None
    assert abs(found.offset_ms) <= found.within_ms <= (1.2 + 1) / 2
    assert found.probes == 3


def test_a_batch_without_a_stamp_does_not_bound_the_clock() -> None:
    offset = ClockOffset()
    offset.add(-1, 0, 1)
    assert offset.bounds() is None
    assert clock_difference([]) is None


def test_a_clock_that_was_set_meanwhile_leaves_a_wider_span_and_not_an_empty_one() -> None:
    offset = ClockOffset()
    offset.add(1_000, 1_000 * MILLI, 1_001 * MILLI)
    offset.add(6_000, 1_000 * MILLI, 1_001 * MILLI)  # five seconds ahead
    bounds = offset.bounds()
    assert bounds is not None
    assert bounds["low"] < bounds["high"]
    found = clock_difference([bounds])
    assert found is not None
    assert found.within_ms == pytest.approx(2_499, abs=2)
