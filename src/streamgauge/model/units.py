"""Quantities with units: ``50k/s``, ``8s``, ``250ms``, ``2GiB``, ``25%``.

Durations are whole nanoseconds, sizes whole bytes, rates events per second, shares fractions of one.
"""

import math
import re
from fractions import Fraction

SECOND = 1_000_000_000
"""Nanoseconds in a second."""

_DURATIONS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
}
_SCALES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_SIZES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_NUMBER = re.compile(r"[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
MAX_LENGTH = 40  # characters of a quantity; it bounds the work for hostile input
MAX_VALUE = 10**18


class UnitError(ValueError):
    """A text is not a quantity of this kind; the message gives an example of one."""


def _split(text: object, what: str, example: str) -> tuple[Fraction, str]:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(f"{what} is written like {example}, not {text!r}")
    raw = str(text).strip()
    match = _NUMBER.match(raw) if len(str(text)) <= MAX_LENGTH else None
    if match is None:
        raise UnitError(f"{what} is written like {example}, not {raw[:MAX_LENGTH]!r}")
    number = Fraction(match.group(0).replace("_", ""))
    if number > MAX_VALUE:
        raise UnitError(f"{what} of {raw!r} is larger than anything that can be measured")
    return number, raw[match.end() :].strip()


def parse_duration(text: object) -> int:
    """``8s``, ``250ms``, ``1.5m``, ``1h`` to whole nanoseconds. A number without a unit is an error."""
    number, unit = _split(text, "a duration", "8s, 250ms or 5m")
    if unit not in _DURATIONS:
        raise UnitError(f"a duration needs a unit (ns, us, ms, s, m, h, d), as in 8s or 250ms, not {text!r}")
    nanos = number * _DURATIONS[unit]
    if nanos > MAX_VALUE:
        raise UnitError(f"a duration of {text!r} is longer than anything that can be measured")
    return round(nanos)


def parse_rate(text: object) -> float:
    """``50k/s``, ``1.2M/s``, ``30/min`` to events per second."""
    number, unit = _split(text, "a rate", "50k/s or 1.2M/s")
    scale, slash, per = unit.partition("/")
    if not slash or scale.strip() not in _SCALES or per.strip() not in ("s", "m", "min", "h"):
        raise UnitError(f"a rate is written like 50k/s, 1.2M/s or 30/min, not {text!r}")
    rate = float(number * _SCALES[scale.strip()] * SECOND / _DURATIONS[per.strip()])
    if rate > MAX_VALUE:
        raise UnitError(f"a rate of {text!r} is larger than anything that can be measured")
    return rate


def parse_count(text: object) -> int:
    """``100``, ``50k``, ``1.5M`` to a whole number."""
    number, unit = _split(text, "a count", "100, 50k or 1.5M")
    if unit not in _SCALES:
        raise UnitError(f"a count is written like 100, 50k or 1.5M, not {text!r}")
    count = number * _SCALES[unit]
    if count.denominator != 1 or count > MAX_VALUE:
        raise UnitError(f"a count is a whole number, not {text!r}")
    return int(count)


def parse_size(text: object) -> int:
    """``2GiB``, ``512MB`` to whole bytes."""
    number, unit = _split(text, "a size", "2GiB or 512MB")
    if unit not in _SIZES:
        raise UnitError(f"a size needs a unit (B, KiB, MiB, GiB, kB, MB, GB), as in 2GiB, not {text!r}")
    return round(number * _SIZES[unit])


def parse_share(text: object) -> float:
    """``25%`` or ``0.25`` to a fraction of one."""
    number, unit = _split(text, "a share", "25% or 0.25")
    if unit not in ("", "%"):
        raise UnitError(f"a share is written like 25% or 0.25, not {text!r}")
    return float(number / 100 if unit == "%" else number)


def _short(value: float) -> str:
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e" in text else text


def format_count(value: float) -> str:
    """A count as text: ``730k``, ``1.2M``."""
    if not math.isfinite(value):
        return "–"
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale * 0.99995:
            return f"{_short(value / scale)}{letter}"
    return _short(value)


def format_rate(value: float) -> str:
    """A rate as text: ``730k/s``."""
    return f"{format_count(value)}/s"


def format_duration(nanos: float) -> str:
    """A duration as text: ``8s``, ``250ms``, ``1m 30s``."""
    if not math.isfinite(nanos):
        return "–"
    size = abs(nanos)
    if size >= 60 * SECOND:
        minutes, seconds = divmod(round(nanos / SECOND), 60)
        hours, minutes = divmod(minutes, 60)
        parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
        return " ".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"
    for unit in ("s", "ms", "us"):
        if size >= _DURATIONS[unit]:
            return f"{_short(nanos / _DURATIONS[unit])}{unit}"
    return f"{nanos:.0f}ns" if nanos else "0s"


def format_size(value: float) -> str:
    """A size as text: ``2GiB``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if abs(value) >= _SIZES[unit]:
            return f"{_short(value / _SIZES[unit])}{unit}"
    return f"{value:.0f}B"


def format_share(value: float) -> str:
    """A share as text: ``2.5%``."""
    return f"{_short(value * 100)}%" if math.isfinite(value) else "–"


def duration_text(nanos: float) -> str:
    """A duration in a sentence: ``8 s``, ``250 ms``, ``1 min 30 s``."""
    minutes = abs(nanos) >= 60 * SECOND
    spaced = re.sub(r"([0-9])([a-z])", r"\1 \2", format_duration(nanos))
    return re.sub(r" m\b", " min", spaced) if minutes else spaced


def share_text(value: float) -> str:
    """A share in a sentence: ``2.5 %``."""
    return format_share(value).replace("%", " %")


def format_value(value: float, unit: str) -> str:
    """A value of a dimension as text: ``730k/s``, ``3``, ``8s``, ``25%``; a unit that is not known is a count."""
    formats = {"rate": format_rate, "duration": format_duration, "share": format_share}
    return formats.get(unit, format_count)(value)
