"""Which purchases find an ad, and which ad it is: exact shares of both streams, at any load.

Match j is one purchase and one ad. Each stream is cut into blocks of equal length, one for each match, and one event of
every block is the matching one. The loads of the streams are shares of one profile, so block j of the ads is due when
block j of the purchases is, whatever the profile is. Within the two blocks both events have the same relative place, so
they are due at almost the same moment and are in the same windows. Only the numbers of events decide, not the plans.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from streamgauge.workloads.data.random import words_at

Ints = npt.NDArray[np.int64]

FINEST_SELECTIVITY = 1_000_000
FINEST_SHARE = 10_000
"""Largest denominators of a selectivity and of a share of ads: the arithmetic of blocks then fits into 64 bits."""

_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one stream. Block j has the events from ⌈j × length⌉ to ⌈(j + 1) × length⌉ − 1."""

    length: Fraction
    """Events of the stream from one match to the next, at least 1."""
    state: int
    """Where the random words begin that place an event in its block: the same for both streams."""

    def block_of(self, number: int) -> int:
        """The block that contains an event."""
        return number * self.length.denominator // self.length.numerator

    def numbers(self, first: int, count: int) -> Ints:
        """The events of the matches ``first … first + count − 1``, in rising order."""
        starts = self._starts(first, count + 1)
        place = words_at(self.state, np.arange(first, first + count, dtype=np.int64))
        place >>= _HALF
        place *= np.diff(starts).astype(np.uint64)
        place >>= _HALF
        return starts[:-1] + place.astype(np.int64)

    def within(self, start: int, stop: int, stride: int = 1) -> tuple[Ints, Ints]:
        """The matches whose events are ``start``, ``start + stride`` … below ``stop``, and these events."""
        if stop <= start:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        first = self.block_of(start)
        numbers = self.numbers(first, self.block_of(stop - 1) - first + 1)
        chosen = (numbers >= start) & (numbers < stop)
        if stride > 1:
            chosen &= (numbers - start) % stride == 0
        found = np.flatnonzero(chosen)
        return first + found, numbers[found]

    def _starts(self, first: int, count: int) -> Ints:
        numerator, denominator = self.length.numerator, self.length.denominator
        whole, rest = divmod(first * numerator, denominator)
        starts = np.arange(count, dtype=np.int64)
        starts *= numerator
        starts += rest + denominator - 1
        starts //= denominator
        starts += whole
        return starts


@dataclass(frozen=True, slots=True)
class Offers:
    """How ads and purchases belong together."""

    selectivity: Fraction
    """The share of the purchases that find an ad."""
    ads: Fraction
    """The share of the load that is ads."""
    users: int
    state: int

    @property
    def purchases(self) -> Blocks:
        """The blocks of the purchases."""
        return Blocks(1 / self.selectivity, self.state)

    @property
    def shown(self) -> Blocks:
        """The blocks of the ads."""
        return Blocks(self.ads / ((1 - self.ads) * self.selectivity), self.state)

    @property
    def buyers(self) -> int:
        """Users whose purchases find ads: those with the lowest ids, as large a share as that of their purchases."""
        if self.selectivity == 1:
            return self.users
        return min(max(round(self.selectivity * self.users), 1), self.users - 1)


def selectivity_of(share: float) -> Fraction:
    """A selectivity as the exact share that is used."""
    return Fraction(share).limit_denominator(FINEST_SELECTIVITY)


def share_of_ads(share: float) -> Fraction:
    """The share of ads in the load as the exact share that is used."""
    return Fraction(share).limit_denominator(FINEST_SHARE)


def offer_problem(selectivity: float, ads: float, users: int) -> tuple[str, str]:
    """The parameter that makes a selectivity impossible, and why; both empty if it is possible."""
    share, exact = share_of_ads(ads), selectivity_of(selectivity)
    if exact < 1 and users < 2:
        return "users", (
            "with a selectivity below 100% some users see ads for what they buy and others do not: use at least 2 users"
        )
    if exact * (1 - share) <= share:
        return "", ""
    most = share / (1 - share)
    return "selectivity", (
        f"every purchase that finds an ad needs a separate ad, and {float(share) * 100:g}% of the load are ads: use a "
        f"selectivity of at most {float(most) * 100:.4g}%, or more ads"
    )
