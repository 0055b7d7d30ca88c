"""Varints of Kafka and Avro: zigzag, seven bits in each byte, the lowest first. Pure."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.uint8]
"""Rows of bytes, all of the same width."""

MAX_WIDTH = 10
"""Bytes of the widest varint: 64 bits."""
_ONE, _SEVEN = np.uint64(1), np.uint64(7)
_LOW, _MORE = np.uint64(0x7F), 0x80


class VarintError(ValueError):
    """Bytes that are no varint, or a number that does not fit; the message names it."""


def zigzag(number: int) -> int:
    """A signed number as an unsigned one that is small if the magnitude is small."""
    return (number << 1) ^ (number >> 63)


def varint(number: int) -> bytes:
    """A signed number as a varint."""
    rest, out = zigzag(number), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def width_of(number: int) -> int:
    """Bytes of a number's varint."""
    return max(1, -(-zigzag(number).bit_length() // 7))


def smallest_of_width(width: int) -> int:
    """The smallest number of at least 0 whose varint has this width."""
    return 0 if width == 1 else 1 << (7 * (width - 1) - 1)


def fixed_width(numbers: Ints, width: int) -> Matrix:
    """Numbers as varints of one width: shorter varints are filled up with continuation bytes.

    Decoders accept them like the shortest form, and the columns of many rows are then aligned.
    """
    wide = numbers.astype(np.int64, copy=False)
    rest = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    if width < MAX_WIDTH and len(rest) and int(rest.max()) >> (7 * width):
        raise VarintError(f"{int(wide[rest.argmax()])} does not fit into a varint of {width} bytes")
    return encode_fixed(rest, width)


def encode_fixed(rest: npt.NDArray[np.uint64], width: int) -> Matrix:
    """Zigzag numbers that are known to fit, as varints of one width."""
    out = np.empty((len(rest), width), np.uint8)
    for place in range(width - 1):
        out[:, place] = rest.astype(np.uint8) | _MORE  # of the eight lowest bits, seven and the mark
        rest = rest >> _SEVEN
    out[:, width - 1] = rest
    return out


def read_varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The varints that begin at these positions, and the positions after them."""
    first = data[at].astype(np.uint64)
    after = at + 1
    unfinished = np.flatnonzero(first & _MORE)
    value = first & _LOW
    shift = 7
    while len(unfinished):
        if shift >= 7 * MAX_WIDTH:
            raise VarintError(f"a varint of more than {MAX_WIDTH} bytes begins at byte {int(at[unfinished[0]])}")
        byte = data[after[unfinished]].astype(np.uint64)
        value[unfinished] |= (byte & _LOW) << np.uint64(shift)
        after[unfinished] += 1
        unfinished = unfinished[(byte & _MORE) != 0]
        shift += 7
    return (value >> _ONE).view(np.int64) ^ -(value & _ONE).view(np.int64), after
