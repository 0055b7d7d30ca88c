"""The reference result of ``windowed-join``: all pairs of events with one key in one window, without an engine.

Only purchases and ads of some users can have a partner, so all others are left out when they are made. The rest is
sorted by window and key, in parts by key, and each group gives all pairs of its purchases and ads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.workloads.contract import EARLY_MAX_DUE, Columns, EventSource
from streamgauge.workloads.data.shopping import AD_STREAM, PURCHASE_STREAM

Ints = npt.NDArray[np.int64]

COLUMNS = (
    "window_start",
    "window_end",
    "purchase",
    "ad",
    "user_id",
    "gem_pack_id",
    "price",
    "max_due",
    EARLY_MAX_DUE,
)
"""Columns of the result, all int64: times in microseconds since the epoch, prices in cents."""

_MICRO = 1_000
_CHUNK = 1 << 20
_ROWS = 1 << 22
"""About how many rows are sorted together."""


@dataclass(frozen=True, slots=True)
class _Events:
    """Events of both streams that may have a partner."""

    number: Ints
    """In its stream."""
    is_ad: npt.NDArray[np.bool_]
    user: Ints
    pack: Ints
    price: Ints
    due: Ints

    def __len__(self) -> int:
        return len(self.number)

    def taken(self, which: npt.NDArray[np.bool_] | Ints) -> "_Events":
        """Some of them."""
        return _Events(*(getattr(self, name)[which] for name in self.__slots__))


class JoinedPairs:
    """The pairs of purchases and ads of the users below ``users``, per window.

    Windows begin at multiples of the slide since the epoch and contain the events of [start, start + window), as those
    of Spark's ``window``. Nothing is computed before ``until`` is called.
    """

    def __init__(self, sources: Mapping[str, EventSource], window: int, slide: int, users: int) -> None:
        """``window`` and ``slide`` are nanoseconds."""
        if window % _MICRO or slide % _MICRO:
            raise ValueError("window and slide are whole microseconds, as the due times are")
        self._sources, self._users = sources, users
        self._window, self._slide = window // _MICRO, slide // _MICRO

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        found = [part for name in (PURCHASE_STREAM.name, AD_STREAM.name) for part in self._made(name, events[name])]
        both = _Events(*(np.concatenate([getattr(part, name) for part in found]) for name in _Events.__slots__))
        overlap = -(-self._window // self._slide)
        parts = max(1, len(both) * overlap // _ROWS)
        class_of = (both.user + both.pack) % parts
        rows = [self._pairs(both.taken(class_of == part), overlap) for part in range(parts)]
        whole = {name: np.concatenate([part[name] for part in rows]) for name in COLUMNS}
        order = np.lexsort((whole["ad"], whole["purchase"], whole["window_start"]))
        return {name: column[order] for name, column in whole.items()}

    def _made(self, stream: str, count: int) -> Iterator[_Events]:
        """Those of the first ``count`` events of a stream that may have a partner; at least one part."""
        for start in range(0, max(count, 1), _CHUNK):
            made = self._sources[stream].events(start, min(start + _CHUNK, count))
            places = np.flatnonzero(made["user_id"] < self._users)
            columns = {name: column[places].astype(np.int64) for name, column in made.items()}
            yield _Events(
                number=start + places,
                is_ad=np.full(len(places), stream == AD_STREAM.name),
                user=columns["user_id"],
                pack=columns["gem_pack_id"],
                price=columns.get("price", np.zeros(len(places), np.int64)),
                due=columns["due"],
            )

    def _pairs(self, events: _Events, overlap: int) -> Columns:
        """The rows of these events, which have all events of their keys."""
        starts, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for back in range(overlap):
            start = (events.due // self._slide - back) * self._slide
            inside = np.flatnonzero(start + self._window > events.due)
            starts.append(start[inside])
            places.append(inside)
        start, place = np.concatenate(starts), np.concatenate(places)
        rows = events.taken(place)
        order = np.lexsort((rows.is_ad, rows.pack, rows.user, start))
        start, rows = start[order], rows.taken(order)
        begins = _group_begins(start, rows.user, rows.pack)
        newest = np.maximum.reduceat(rows.due, begins) if len(begins) else begins
        group, left, right = _all_pairs(begins, rows.is_ad)
        return {
            "window_start": start[left],
            "window_end": start[left] + self._window,
            "purchase": rows.number[left],
            "ad": rows.number[right],
            "user_id": rows.user[left],
            "gem_pack_id": rows.pack[left],
            "price": rows.price[left],
            "max_due": newest[group],
            EARLY_MAX_DUE: np.maximum(rows.due[left], rows.due[right]),
        }


def _group_begins(*columns: Ints) -> Ints:
    """Where rows begin that have the same values in all columns; rows with equal values are next to each other."""
    differs = np.ones(len(columns[0]), bool)
    if len(differs):
        differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(differs)


def _all_pairs(begins: Ints, is_ad: npt.NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Of each pair its group, the row of its purchase and that of its ad. Purchases are before ads in a group."""
    sizes = np.diff(np.append(begins, len(is_ad)))
    ads = np.add.reduceat(is_ad.astype(np.int64), begins) if len(begins) else begins
    purchases = sizes - ads
    pairs = purchases * ads
    group = np.repeat(np.arange(len(begins)), pairs)
    within = np.arange(int(pairs.sum())) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    first, many = begins[group], ads[group]
    return group, first + within // many, first + purchases[group] + within % many
