"""PURCHASES(userID, gemPackID, price, time) of Karimov's workloads: what event n is, for any n.

One random word decides an event: its lower 32 bits the user, its upper 32 bits the gem pack, and the word
times an odd number the price. Nothing but integer arithmetic, so the bytes are the same on every machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.workloads.contract import TIME, Columns
from streamgauge.workloads.data.keys import Distribution, Keys
from streamgauge.workloads.data.random import ROWS, Counter, Words, state_of

Ints = npt.NDArray[np.int64]
Whole = npt.NDArray[np.int32] | Ints

SCHEMA = (
    ("user_id", "int32"),
    ("gem_pack_id", "int32"),
    ("price", "int32"),
    ("due", TIME),
)
"""Columns of an event in their order: 20 bytes a row. ``due`` is handed over as int64 microseconds."""

LOWEST_PRICE, HIGHEST_PRICE = 99, 9_999
"""Cents. Every price between them is as likely as any other."""

_LOWER = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_PRICES = np.uint64(HIGHEST_PRICE - LOWEST_PRICE + 1)
_SCATTER = np.uint64(0xD6E8FEB86659FD93)  # odd, so that no bit of the word is lost


class Buying(Protocol):
    """The parameters that decide who buys what."""

    @property
    def users(self) -> int: ...

    @property
    def gem_packs(self) -> int: ...

    @property
    def distribution(self) -> Distribution: ...


@dataclass(frozen=True)
class Purchases:
    """One stream of purchases, any part of which can be had at once.

    ``origin`` is the moment at which the load begins, in nanoseconds since the epoch: event n is due at
    ``origin + plan.due(n)``. ``seed`` and ``stream`` decide everything else.
    """

    params: Buying
    plan: Plan
    seed: int
    stream: int = 0
    origin: int = 0

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number mod ``stride`` is ``offset``, as SCHEMA has them.

        Partition p of P is ``stride=P, offset=p``.
        """
        if not 0 <= offset < stride:
            raise ValueError(f"the offset is one of 0 … {stride - 1}, not {offset}")
        first = start + (offset - start) % stride
        due = self.plan.due_range(first, stop, stride, origin=self.origin, unit=1_000)
        users, packs, prices = (np.empty(len(due), np.int32) for _ in range(3))
        size = min(len(due), ROWS)
        counter = Counter(state_of(self.seed, self.stream), stride, size)
        keys = Keys(self.params.distribution, self.params.gem_packs, size, np.int32)
        spare = np.empty(size, np.uint64)
        for low in range(0, len(due), ROWS):
            high = min(low + ROWS, len(due))
            words = counter.words(first + low * stride, high - low)
            work = spare[: len(words)]
            keys.fill(words, packs[low:high])
            _fill_users(words, self.params.users, work, users[low:high])
            _fill_prices(words, 0, work, prices[low:high])
        return {"user_id": users, "gem_pack_id": packs, "price": prices, "due": due}

    def keyed_prices(self, start: int, stop: int, more: int = 0) -> Iterator[tuple[int, Ints, Ints]]:
        """The events ``start … stop − 1`` as a sum needs them: first number, gem packs, prices plus ``more``.

        A few thousand at a time; the columns are overwritten by the next step.
        """
        size = max(0, min(stop - start, ROWS))
        counter = Counter(state_of(self.seed, self.stream), 1, size)
        keys = Keys(self.params.distribution, self.params.gem_packs, size, np.int64)
        work, packs, prices = np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64)
        for low in range(start, stop, ROWS):
            rows = min(ROWS, stop - low)
            words = counter.words(low, rows)
            keys.fill(words, packs[:rows])
            _fill_prices(words, more, work[:rows], prices[:rows])
            yield low, packs[:rows], prices[:rows]


def _fill_users(words: Words, users: int, work: Words, out: Whole) -> None:
    """The user of each event, into ``out``. ``work`` is room of the same length."""
    np.bitwise_and(words, _LOWER, out=work)
    np.multiply(work, np.uint64(users), out=work)
    np.right_shift(work, _HALF, out=out, casting="unsafe")


def _fill_prices(words: Words, more: int, work: Words, out: Whole) -> None:
    """The price of each event, plus ``more``, into ``out``."""
    np.multiply(words, _SCATTER, out=work)
    np.right_shift(work, _HALF, out=work)
    np.multiply(work, _PRICES, out=work)
    np.right_shift(work, _HALF, out=work)
    np.add(work, np.uint64(LOWEST_PRICE + more), out=out, casting="unsafe")
