"""The journals of a load driver: every send, every acknowledgement, what a broker confirmed, and each second in the
terms of the model."""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets
from streamgauge.store.journal import ACKS, APPENDS, DRIVER_SECONDS, LATENCIES, TICKS, Ints, Journal
from streamgauge.transports.ledger import Acknowledgement, Confirmation

DELAY_NUMBER: dict[Kind, int] = {"send-delay": 0, "append-delay": 1}
"""The numbers of the kinds in the journal of delays."""


class SendLog:
    """The sends of a trial in memory that is allocated beforehand, so that recording one costs nothing."""

    def __init__(self, intervals: int) -> None:
        self.intended = np.zeros(intervals, np.int64)
        self.actual = np.zeros(intervals, np.int64)
        self.count = np.zeros(intervals, np.int64)
        self.done = 0
        self.recording = False

    def add(self, intended: int, now: Callable[[], int], count: int) -> None:
        """The events of one send interval are sent, at this moment."""
        i = self.done
        self.intended[i], self.count[i] = intended, count
        self.recording = True  # its moment is read from here on: a thread that closes a second waits until it is there
        self.actual[i] = now()
        self.done = i + 1  # last, so that a reader in another thread sees whole rows
        self.recording = False

    def wait_recorded(self) -> int:
        """How many sends there are; none that happened before this call is missing."""
        while self.recording:
            time.sleep(0)
        return self.done

    def rows(self, start: int, stop: int) -> dict[str, Ints]:
        cut = slice(start, stop)
        return {
            "tick": np.arange(start, stop),
            "intended": self.intended[cut],
            "actual": self.actual[cut],
            "count": self.count[cut],
        }


def p99(lags: Ints) -> int:
    """The 99th percentile by rank; 0 of nothing."""
    if not len(lags):
        return 0
    return int(np.sort(lags)[math.ceil(0.99 * len(lags)) - 1])


def delays(intended: Ints, happened: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Seconds, buckets and counts of how late events were, in the second in which their send interval was due.

    An interval that ends with a second belongs to it. Sorted, so that the same events always give the same rows.
    """
    late = np.maximum(happened - intended, 0) // 1_000
    cells = np.stack([(intended - 1) // SECOND, buckets.index(late)])[:, count > 0]
    place, inverse = np.unique(cells, axis=1, return_inverse=True)
    sums = np.zeros(place.shape[1], np.int64)
    np.add.at(sums, inverse.reshape(-1), count[count > 0])
    return place[0], place[1], sums


class DriverJournals:
    """Writes the journals of one load driver, a second at a time. Not for the thread that sends."""

    def __init__(self, folder: Path, driver: int, sends: SendLog, *, confirmed: bool = False) -> None:
        """``confirmed``: events count as published when a broker has confirmed them."""
        self._sends, self._confirmed_only = sends, confirmed
        self._send_rows = Journal(folder / f"ticks-{driver}", TICKS)
        self._ack_rows = Journal(folder / f"acks-{driver}", ACKS)
        self._second_rows = Journal(folder / f"driver-{driver}-seconds", DRIVER_SECONDS)
        self._delay_rows = Journal(folder / f"driver-{driver}-delays", LATENCIES)
        self._append_rows = Journal(folder / f"appends-{driver}", APPENDS) if confirmed else None
        self._unconfirmed: list[Confirmation] = []
        self._written_sends = self._counted_sends = self._acknowledged = 0
        self._uncounted: list[Acknowledgement] = []
        self._before = {"served": 0, "drops": 0, "drift": 0}

    def write(self, acks: list[Acknowledgement], appends: list[Confirmation] | None = None) -> None:
        """Add what is new to the journals of sends, acknowledgements and confirmations."""
        done = self._sends.wait_recorded()
        if done > self._written_sends:
            self._send_rows.append(self._sends.rows(self._written_sends, done))
            self._written_sends = done
        if acks:
            self._ack_rows.append(dict(zip(ACKS.names, zip(*acks, strict=True), strict=True)))
        if appends and self._append_rows is not None:
            self._append_rows.append(dict(zip(APPENDS.names, zip(*appends, strict=True), strict=True)))

    def close_second(
        self,
        number: int,
        sample: dict[str, int],
        acks: list[Acknowledgement],
        appends: list[Confirmation] | None = None,
    ) -> None:
        """Close a second: sends, acknowledgements and confirmations before its end count, the rest was sampled then.

        ``sample``: offered (in this second), served and drops (so far), queue, skew and hiccup (longest in it), and
        drift (wall against monotonic clock since the load began).
        """
        end = (number + 1) * SECOND
        actual = self._sends.actual[self._counted_sends : self._sends.wait_recorded()]
        cut = self._counted_sends + int(np.searchsorted(actual, end))
        span = slice(self._counted_sends, cut)
        lags = self._sends.actual[span] - self._sends.intended[span]
        confirmed = self._confirmed(end, appends or [])
        self._count_delays("send-delay", self._sends.intended[span], self._sends.actual[span], self._sends.count[span])
        self._uncounted += acks
        upto = sum(ack.time_ns < end for ack in self._uncounted)
        last = self._uncounted[upto - 1] if upto else None
        row = {
            "second": number,
            "offered": sample["offered"],
            "published": confirmed if self._confirmed_only else int(self._sends.count[span].sum()),
            "served": sample["served"] - self._before["served"],
            "acknowledged": last.acknowledged - self._acknowledged if last else 0,
            "acks": upto,
            "drops": sample["drops"] - self._before["drops"],
            "ack_time": last.time_ns if last else -1,
            "ack_lag": last.lag if last else -1,
            "queue": sample["queue"],
            "schedule_lag": int(lags.max(initial=0)),
            "hiccup": sample["hiccup"],
            "skew": sample["skew"],
            "clock_step": abs(sample["drift"] - self._before["drift"]),
            "clock_drift": sample["drift"],
        }
        self._second_rows.append({name: [value] for name, value in row.items()})
        self._before = {name: sample[name] for name in self._before}
        self._counted_sends, self._acknowledged = cut, last.acknowledged if last else self._acknowledged
        del self._uncounted[:upto]

    def _confirmed(self, end: int, appends: list[Confirmation]) -> int:
        """Events that a broker confirmed in the second that ends; how late it appended them is counted too."""
        known = [*self._unconfirmed, *appends]
        now = [append for append in known if append.confirmed_ns < end]
        self._unconfirmed = [append for append in known if append.confirmed_ns >= end]
        if not now:
            return 0
        intended, appended, _, count = (np.array(column, np.int64) for column in zip(*now, strict=True))
        self._count_delays("append-delay", intended, appended, count)
        return int(count.sum())

    def _count_delays(self, kind: Kind, intended: Ints, happened: Ints, count: Ints) -> None:
        second, bucket, counts = delays(intended, happened, count)
        if len(counts):
            number = np.full(len(counts), DELAY_NUMBER[kind])
            self._delay_rows.append({"second": second, "kind": number, "bucket": bucket, "count": counts})

    def close(self) -> None:
        """Leave the journals as Parquet."""
        journals = (self._send_rows, self._ack_rows, self._second_rows, self._delay_rows, self._append_rows)
        for journal in journals:
            if journal is not None:
                journal.close()
