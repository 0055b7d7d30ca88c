"""What a driver writes down: every tick, every acknowledgement, what the broker confirmed, and each second in the words
of the model."""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets
from streamgauge.store.journal import Journal
from streamgauge.transports.kafka.ledger import Append
from streamgauge.transports.ledger import Ack

Ints = npt.NDArray[np.int64]


def _whole(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


TICKS = _whole("tick", "intended", "actual", "count")
"""Per tick, in nanoseconds since the load began: when it should happen, when it had happened, events published."""
ACKS = _whole("time", "published", "served", "acknowledged", "lag")
APPENDS = _whole("intended", "appended", "confirmed", "count")
"""Per send interval and partition that a broker confirmed, in nanoseconds since the load began."""
SECONDS = _whole(
    *("second", "offered", "published", "served", "acknowledged", "acks", "drops", "ack_time", "ack_lag", "queue"),
    *("schedule_lag", "hiccup", "skew", "clock_step", "clock_drift"),
)
"""Columns named as in ``model.seconds``; clock_drift in nanoseconds beside them."""
DELAYS = _whole("second", "kind", "bucket", "count")
DELAY_NUMBER: dict[Kind, int] = {"send-delay": 0, "append-delay": 1}


class Ticks:
    """The ticks of a trial in memory made beforehand, so that writing one down costs nothing."""

    def __init__(self, most: int) -> None:
        self.intended = np.zeros(most, np.int64)
        self.actual = np.zeros(most, np.int64)
        self.count = np.zeros(most, np.int64)
        self.done = 0
        self.entering = False

    def add(self, intended: int, now: Callable[[], int], count: int) -> None:
        """One tick has happened, at this moment."""
        i = self.done
        self.intended[i], self.count[i] = intended, count
        self.entering = True  # its moment is read from here on: whoever closes a second waits until it is there
        self.actual[i] = now()
        self.done = i + 1  # last, so that a reader in another thread sees whole rows
        self.entering = False

    def settle(self) -> int:
        """How many ticks there are; none that happened before this call is missing."""
        while self.entering:
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


class Chronicle:
    """Writes the journals of one driver, a second at a time. Not for the thread that ticks."""

    def __init__(self, folder: Path, driver: int, ticks: Ticks, *, broker: bool = False) -> None:
        """``broker``: events count as published when a broker has confirmed them."""
        self._ticks, self._broker = ticks, broker
        self._tick_rows = Journal(folder / f"ticks-{driver}", TICKS)
        self._ack_rows = Journal(folder / f"acks-{driver}", ACKS)
        self._second_rows = Journal(folder / f"driver-{driver}-seconds", SECONDS)
        self._delay_rows = Journal(folder / f"driver-{driver}-delays", DELAYS)
        self._append_rows = Journal(folder / f"appends-{driver}", APPENDS) if broker else None
        self._unconfirmed: list[Append] = []
        self._written_ticks = self._counted_ticks = self._acknowledged = 0
        self._uncounted: list[Ack] = []
        self._before = {"served": 0, "drops": 0, "drift": 0}

    def write(self, acks: list[Ack], appends: list[Append] | None = None) -> None:
        """Add what is new to the journals of ticks, acknowledgements and confirmations."""
        done = self._ticks.settle()
        if done > self._written_ticks:
            self._tick_rows.append(self._ticks.rows(self._written_ticks, done))
            self._written_ticks = done
        if acks:
            self._ack_rows.append(dict(zip(ACKS.names, zip(*acks, strict=True), strict=True)))
        if appends and self._append_rows is not None:
            self._append_rows.append(dict(zip(APPENDS.names, zip(*appends, strict=True), strict=True)))

    def second(self, number: int, sample: dict[str, int], acks: list[Ack], appends: list[Append] | None = None) -> None:
        """Close a second: ticks, acknowledgements and confirmations before its end count, the rest was sampled then.

        ``sample``: offered (in this second), served and drops (so far), queue, skew and hiccup (longest in it), and
        drift (wall against monotonic clock since the load began).
        """
        end = (number + 1) * SECOND
        actual = self._ticks.actual[self._counted_ticks : self._ticks.settle()]
        cut = self._counted_ticks + int(np.searchsorted(actual, end))
        span = slice(self._counted_ticks, cut)
        lags = self._ticks.actual[span] - self._ticks.intended[span]
        confirmed = self._confirmed(end, appends or [])
        self._count_delays("send-delay", self._ticks.intended[span], self._ticks.actual[span], self._ticks.count[span])
        self._uncounted += acks
        upto = sum(ack.time_ns < end for ack in self._uncounted)
        last = self._uncounted[upto - 1] if upto else None
        row = {
            "second": number,
            "offered": sample["offered"],
            "published": confirmed if self._broker else int(self._ticks.count[span].sum()),
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
        self._counted_ticks, self._acknowledged = cut, last.acknowledged if last else self._acknowledged
        del self._uncounted[:upto]

    def _confirmed(self, end: int, appends: list[Append]) -> int:
        """Events that a broker confirmed in the second that ends; how late it had appended them is counted too."""
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
        journals = (self._tick_rows, self._ack_rows, self._second_rows, self._delay_rows, self._append_rows)
        for journal in journals:
            if journal is not None:
                journal.close()
