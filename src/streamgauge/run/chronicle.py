"""What a driver writes down: every tick, every acknowledgement, and each second in the words of the model."""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.model.units import SECOND
from streamgauge.store.journal import Journal
from streamgauge.transport.books import Ack

Ints = npt.NDArray[np.int64]


def _whole(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


TICKS = _whole("tick", "intended", "actual", "count")
"""Per tick, in nanoseconds since the load began: when it should happen, when it had happened, events published."""
ACKS = _whole("time", "published", "served", "acknowledged", "lag")
SECONDS = _whole(
    *("second", "offered", "published", "served", "acknowledged", "acks", "drops", "ack_time", "ack_lag", "queue"),
    *("schedule_lag", "schedule_lag_max", "hiccup", "clock_step", "clock_drift"),
)
"""Columns named as in ``model.seconds``; hiccup and clock_drift in nanoseconds beside them."""


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


class Chronicle:
    """Writes the journals of one driver, a second at a time. Not for the thread that ticks."""

    def __init__(self, folder: Path, driver: int, ticks: Ticks) -> None:
        self._ticks = ticks
        self._tick_rows = Journal(folder / f"ticks-{driver}", TICKS)
        self._ack_rows = Journal(folder / f"acks-{driver}", ACKS)
        self._second_rows = Journal(folder / f"driver-{driver}-seconds", SECONDS)
        self._written_ticks = self._counted_ticks = self._acknowledged = 0
        self._uncounted: list[Ack] = []
        self._before = {"served": 0, "drops": 0, "drift": 0}

    def write(self, acks: list[Ack]) -> None:
        """Add what is new to the journals of ticks and acknowledgements."""
        done = self._ticks.settle()
        if done > self._written_ticks:
            self._tick_rows.append(self._ticks.rows(self._written_ticks, done))
            self._written_ticks = done
        if acks:
            self._ack_rows.append(dict(zip(ACKS.names, zip(*acks, strict=True), strict=True)))

    def second(self, number: int, sample: dict[str, int], acks: list[Ack]) -> None:
        """Close a second: ticks and acknowledgements before its end count, the rest was sampled at its end.

        ``sample``: offered (in this second), served and drops (so far), queue and hiccup (longest in it), and
        drift (wall against monotonic clock since the load began).
        """
        end = (number + 1) * SECOND
        actual = self._ticks.actual[self._counted_ticks : self._ticks.settle()]
        cut = self._counted_ticks + int(np.searchsorted(actual, end))
        span = slice(self._counted_ticks, cut)
        lags = self._ticks.actual[span] - self._ticks.intended[span]
        self._uncounted += acks
        upto = sum(ack.time_ns < end for ack in self._uncounted)
        last = self._uncounted[upto - 1] if upto else None
        row = {
            "second": number,
            "offered": sample["offered"],
            "published": int(self._ticks.count[span].sum()),
            "served": sample["served"] - self._before["served"],
            "acknowledged": last.acknowledged - self._acknowledged if last else 0,
            "acks": upto,
            "drops": sample["drops"] - self._before["drops"],
            "ack_time": last.time_ns if last else -1,
            "ack_lag": last.lag if last else -1,
            "queue": sample["queue"],
            "schedule_lag": p99(lags),
            "schedule_lag_max": int(lags.max(initial=0)),
            "hiccup": sample["hiccup"],
            "clock_step": abs(sample["drift"] - self._before["drift"]),
            "clock_drift": sample["drift"],
        }
        self._second_rows.append({name: [value] for name, value in row.items()})
        self._before = {name: sample[name] for name in self._before}
        self._counted_ticks, self._acknowledged = cut, last.acknowledged if last else self._acknowledged
        del self._uncounted[:upto]

    def close(self) -> None:
        """Leave the journals as Parquet."""
        for journal in (self._tick_rows, self._ack_rows, self._second_rows):
            journal.close()
