"""Integers as columns of decimal digits of one width, as text and packed. Pure.

Four digits are written at a time, from a table: dividing for each single digit would take as long as all the rest.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.transports.kafka.client.varints import Ints, Matrix

GROUP = 4
"""Digits that are written together; widths are multiples of it."""
_GROUP = 10**GROUP
_SPACE, _MINUS = ord(" "), ord("-")

_NEGATIVE, _MISSING = 0xD, 0xF

Table = npt.NDArray[Any]
Marks = npt.NDArray[np.bool_]
Sizes = npt.NDArray[np.uint64]


class DigitsError(ValueError):
    """A number that does not fit, or bytes that are not digits; the message names it."""


def _sizes(numbers: Ints) -> Ints | Sizes:
    """Absolute values. Only that of the lowest number of 64 bits needs one bit more."""
    size = np.abs(numbers)
    return size.view(np.uint64) if len(size) and int(size.min()) < 0 else size


def _groups(numbers: Ints | Sizes, groups: int) -> list[Ints]:
    """Numbers of at least 0 in groups of four digits, the highest first."""
    parts, rest = list[Any](), numbers
    for _ in range(groups):
        higher = rest // _GROUP
        parts.append((rest - higher * _GROUP).astype(np.int64, copy=False))
        rest = higher
    if rest.any():
        raise DigitsError(f"{int(numbers[rest.argmax()])} has more than {GROUP * groups} digits")
    return parts[::-1]


@lru_cache(maxsize=1)
def _packed() -> Table:
    """Two bytes for each number of four digits."""
    number = np.arange(_GROUP)
    high, low = number // 100, number % 100
    return np.column_stack([high // 10 << 4 | high % 10, low // 10 << 4 | low % 10]).astype(np.uint8).view("V2")[:, 0]


def write_packed(out: Matrix, numbers: Ints | Sizes) -> None:
    """Numbers of at least 0 as packed decimal: two digits per byte, the highest first, as wide as ``out``."""
    if len(numbers) and int(numbers.min()) < 0:
        raise DigitsError(f"{int(numbers.min())} is below 0, and packed decimal has no sign")
    for place, part in enumerate(_groups(numbers, out.shape[1] // 2)):
        out[:, 2 * place : 2 * place + 2].view("V2")[:, 0] = _packed()[part]


def write_signed(out: Matrix, numbers: Ints, missing: Marks | None = None) -> None:
    """Signed numbers as packed decimal: the first digit is the sign, 0 for plus and hexadecimal D for minus.

    For null, the first digit is hexadecimal F and all others are 0.
    """
    write_packed(out, _sizes(numbers))
    if int(out[:, 0].max(initial=0)) >> 4:
        most = int(numbers[(out[:, 0] >> 4).argmax()])
        raise DigitsError(f"{most} has more than {2 * out.shape[1] - 1} digits")
    out[numbers < 0, 0] |= _NEGATIVE << 4
    if missing is not None:
        out[missing] = 0
        out[missing, 0] = _MISSING << 4


@lru_cache(maxsize=1)
def _unpacked() -> npt.NDArray[np.int16]:
    """The number of four digits for each two bytes, as this machine reads them; −1 if they are not digits."""
    table = np.full(1 << 16, -1, np.int16)
    table[_packed().view(np.uint16)] = np.arange(_GROUP)
    return table


def read_packed(data: Matrix) -> Ints:
    """The numbers that ``write_packed`` wrote."""
    table, numbers = _unpacked(), np.zeros(len(data), np.int64)
    for place in range(0, data.shape[1], 2):
        group = table[data[:, place : place + 2].view(np.uint16)[:, 0]]
        if int(group.min(initial=0)) < 0:
            raise DigitsError("there are bytes that are not decimal digits")
        numbers *= _GROUP
        numbers += group
    return numbers


def read_signed(data: Matrix) -> tuple[Ints, Marks]:
    """The numbers that ``write_signed`` wrote, and which of them are null."""
    signs = data[:, 0] >> 4
    below, missing = signs == _NEGATIVE, signs == _MISSING
    digits = data.copy()
    digits[below | missing, 0] &= 0x0F
    numbers = read_packed(digits)
    numbers[below] = -numbers[below]  # the lowest number of 64 bits is its own negative
    if np.any((numbers < 0) & ~below) or np.any((numbers > 0) & below):
        raise DigitsError("there is a number that does not fit into 64 bits")
    return numbers, missing


@lru_cache(maxsize=2)
def _texts(last: bool) -> Table:
    """Four characters for each number of four digits: first all with leading zeros, then all with leading spaces.

    If only spaces come before it, a group of zeros is spaces too, unless it is the last one.
    """
    zeros = [f"{number:04d}" for number in range(_GROUP)]
    spaces = [f"{number or ('0' if last else ''):>4}" for number in range(_GROUP)]
    return np.frombuffer("".join(zeros + spaces).encode(), "V4")


def write_padded(out: Matrix, numbers: Ints) -> None:
    """Numbers as text with leading spaces, as wide as ``out``."""
    size, groups = _sizes(numbers), out.shape[1] // GROUP
    needed = min(groups, max(1, -(-len(str(int(size.max(initial=0)))) // GROUP)))
    leading = np.full(len(numbers), _GROUP)
    out[:, : GROUP * (groups - needed)] = _SPACE
    for place, part in enumerate(_groups(size, needed), groups - needed):
        out[:, GROUP * place : GROUP * (place + 1)].view("V4")[:, 0] = _texts(place == groups - 1)[part + leading]
        leading[part > 0] = 0
    below = np.flatnonzero(numbers < 0)
    if len(below):
        before = (out[below] == _SPACE).sum(axis=1) - 1
        if int(before.min()) < 0:
            raise DigitsError(f"{int(numbers.min())} has more than {out.shape[1]} characters")
        out[below, before] = _MINUS
