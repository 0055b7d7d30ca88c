"""PURCHASES(userID, gemPackID, price, time) and ADS(userID, gemPackID, time) of Karimov's workloads: what event n is.

One random word decides an event: its lower 32 bits the user, its upper 32 bits the gem pack, and the word
times an odd number the price. Nothing but integer arithmetic, so the bytes are the same on every machine.

With ``Offers``, some purchases find an ad. Users 0 … ``buyers`` − 1 make these purchases and no others, and an ad that
matches has the user and the gem pack of its purchase. All other ads are for users who buy nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import Columns, Stream
from streamgauge.workloads.data.hot_keys import HotKeys
from streamgauge.workloads.data.keys import Keys
from streamgauge.workloads.data.offers import Offers
from streamgauge.workloads.data.random import ROWS, CountedWords, Words, stream_state, words_at
from streamgauge.workloads.parameters import PurchaseParams

Ints = npt.NDArray[np.int64]
Whole = npt.NDArray[np.int32] | Ints

PURCHASES: Schema = (
    Column("user_id", "int32"),
    Column("gem_pack_id", "int32"),
    Column("price", "int32"),
    Column("due", TIME),
)
"""Columns of a purchase: 20 bytes. ``due`` is made as int64 microseconds."""
PURCHASE_STREAM = Stream("purchases", PURCHASES, key="gem_pack_id")
ADS: Schema = (Column("user_id", "int32"), Column("gem_pack_id", "int32"), Column("due", TIME))
"""Columns of an ad: 16 bytes."""
AD_STREAM = Stream("ads", ADS, key="gem_pack_id")

LOWEST_PRICE, HIGHEST_PRICE = 99, 9_999
"""Cents. Every price between them is as likely as any other."""

_LOWER = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_PRICES = np.uint64(HIGHEST_PRICE - LOWEST_PRICE + 1)
_SCATTER = np.uint64(0xD6E8FEB86659FD93)  # odd, so that no bit of the word is lost


def hot_keys(params: PurchaseParams, plan: Plan) -> HotKeys | None:
    """The hot gem packs of a stream with this plan; None if no gem pack is hot."""
    if not params.hot:
        return None
    return HotKeys(params.hot, params.hot_packs, params.hot_period, params.gem_packs, plan)


@dataclass(frozen=True)
class Purchases:
    """One stream of purchases, any range of which can be made without those before it.

    ``origin`` is the moment at which the load begins, in nanoseconds since the epoch: event n is due at
    ``origin + plan.due(n)``. ``seed`` and ``stream`` decide everything else.
    """

    params: PurchaseParams
    plan: Plan
    seed: int
    stream: int = 0
    origin: int = 0
    offers: Offers | None = None
    """Which purchases find an ad; None: there are no ads."""

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``.

        Partition p of P is ``stride=P, offset=p``.
        """
        first = _first_of(start, stride, offset)
        due = self.plan.due_range(first, stop, stride, origin=self.origin, unit=1_000)
        users, packs, prices = (np.empty(len(due), np.int32) for _ in range(3))
        size = min(len(due), ROWS)
        counter = CountedWords(stream_state(self.seed, self.stream), stride, size)
        keys = Keys(self.params.distribution, self.params.gem_packs, size, np.int32)
        hot, spare = hot_keys(self.params, self.plan), np.empty(size, np.uint64)
        for low in range(0, len(due), ROWS):
            high = min(low + ROWS, len(due))
            words = counter.words(first + low * stride, high - low)
            work = spare[: len(words)]
            keys.fill(words, packs[low:high])
            if hot is not None:
                hot.fill(words, first + low * stride, stride, packs[low:high])
            self._fill_buyers(words, first + low * stride, stride, work, users[low:high])
            _fill_prices(words, 0, work, prices[low:high])
        return {"user_id": users, "gem_pack_id": packs, "price": prices, "due": due}

    def _fill_buyers(self, words: Words, first: int, stride: int, work: Words, out: Whole) -> None:
        """The user of each of the events ``first``, ``first + stride`` …, into ``out``."""
        offers = self.offers
        if offers is None or offers.buyers == self.params.users:
            _fill_users(words, self.params.users, work, out)
            return
        _fill_users(words, self.params.users - offers.buyers, work, out)
        out += out.dtype.type(offers.buyers)
        _, numbers = offers.purchases.within(first, first + len(words) * stride, stride)
        places = (numbers - first) // stride
        out[places] = _users(words[places], offers.buyers)

    def keyed_prices(self, start: int, stop: int, more: int = 0) -> Iterator[tuple[int, Ints, Ints]]:
        """The events ``start … stop − 1`` as a sum needs them: first number, gem packs, prices plus ``more``.

        A few thousand at a time; the columns are overwritten by the next step.
        """
        size = max(0, min(stop - start, ROWS))
        counter = CountedWords(stream_state(self.seed, self.stream), 1, size)
        keys = Keys(self.params.distribution, self.params.gem_packs, size, np.int64)
        work, packs, prices = np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64)
        hot = hot_keys(self.params, self.plan)
        for low in range(start, stop, ROWS):
            rows = min(ROWS, stop - low)
            words = counter.words(low, rows)
            keys.fill(words, packs[:rows])
            if hot is not None:
                hot.fill(words, low, 1, packs[:rows])
            _fill_prices(words, more, work[:rows], prices[:rows])
            yield low, packs[:rows], prices[:rows]


@dataclass(frozen=True)
class Ads:
    """The stream of ads beside a stream of purchases. Any range of it can be made without those before it."""

    purchases: Purchases
    plan: Plan
    stream: int = 1

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``."""
        first, params = _first_of(start, stride, offset), self.purchases.params
        due = self.plan.due_range(first, stop, stride, origin=self.purchases.origin, unit=1_000)
        users, packs = (np.empty(len(due), np.int32) for _ in range(2))
        size = min(len(due), ROWS)
        counter = CountedWords(stream_state(self.purchases.seed, self.stream), stride, size)
        keys = Keys(params.distribution, params.gem_packs, size, np.int32)
        hot, spare = hot_keys(params, self.plan), np.empty(size, np.uint64)
        for low in range(0, len(due), ROWS):
            high = min(low + ROWS, len(due))
            words = counter.words(first + low * stride, high - low)
            keys.fill(words, packs[low:high])
            if hot is not None:
                hot.fill(words, first + low * stride, stride, packs[low:high])
            _fill_users(words, params.users, spare[: len(words)], users[low:high])
            users[low:high] += params.users
            self._fill_matching(keys, first + low * stride, stride, users[low:high], packs[low:high])
        return {"user_id": users, "gem_pack_id": packs, "due": due}

    def _fill_matching(self, keys: Keys, first: int, stride: int, users: Whole, packs: Whole) -> None:
        """Give the ads that match a purchase the user and the gem pack of the purchase."""
        offers = self.purchases.offers
        if offers is None:
            return
        matches, numbers = offers.shown.within(first, first + len(users) * stride, stride)
        if not len(matches):
            return
        begin = int(matches[0])
        bought = offers.purchases.numbers(begin, int(matches[-1]) - begin + 1)[matches - begin]
        words = words_at(stream_state(self.purchases.seed, self.purchases.stream), bought)
        places, found = (numbers - first) // stride, np.empty(len(words), packs.dtype)
        keys.fill(words, found)
        hot = hot_keys(self.purchases.params, self.purchases.plan)
        if hot is not None:
            hot.fill_at(words, bought, found)
        packs[places], users[places] = found, _users(words, offers.buyers)


def _first_of(start: int, stride: int, offset: int) -> int:
    """The first event from ``start`` on whose number modulo ``stride`` is ``offset``."""
    if not 0 <= offset < stride:
        raise ValueError(f"the offset is one of 0 … {stride - 1}, not {offset}")
    return start + (offset - start) % stride


def _users(words: Words, users: int) -> Ints:
    """The user of each word."""
    return (((words & _LOWER) * np.uint64(users)) >> _HALF).astype(np.int64)


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
