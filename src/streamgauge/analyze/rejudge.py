"""A stored trial against the same trial judged again: every column, every bucket, every number, the verdict."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Literal

import numpy as np

from streamgauge.judge import decide, measure
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import COLUMNS, KINDS, Column, Latencies, Seconds
from streamgauge.model.trial import Recording

_SHOWN = 3

Source = Literal["journals", "seconds"]

_WORDING = {"reasons", "sentence"}
"""Fields whose text another version may word differently: the values behind them are compared."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One trial, judged again. ``differences`` are sentences on all that is not as it was stored."""

    number: int
    source: Source
    """What it was judged from: its raw journals, or its stored Seconds where it has no journals."""
    measurement: Measurement
    verdict: Verdict
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.differences


def rejudge(
    stored: Recording, judged: tuple[Measurement, Verdict], objectives: Sequence[Objective], again: Seconds | None
) -> Rejudged:
    """Judge a stored trial once more, from the Seconds counted ``again`` (None: from its own).

    How the trial ended and the account of its outputs are part of the recording, and are taken from it.
    """
    recording = stored if again is None else replace(stored, seconds=again)
    measured = measure(recording)
    verdict = decide(recording, measured, objectives)
    differences = [
        *(() if again is None else differences_in_seconds(stored.seconds, again)),
        *differences_in_values("measurement", judged[0], measured),
        *differences_in_values("verdict", judged[1], verdict),
    ]
    source: Source = "seconds" if again is None else "journals"
    return Rejudged(stored.trial.number, source, measured, verdict, tuple(differences))


def differences_in_seconds(stored: Seconds, again: Seconds) -> Iterator[str]:
    """A sentence for each column or histogram that is not the same."""
    if (stored.start, stored.stop) != (again.start, again.stop):
        yield f"the seconds stored are {_span(stored)}, those recomputed {_span(again)}"
        return
    for name in COLUMNS:
        unlike = np.flatnonzero(stored[name] != again[name])
        if len(unlike):
            shown = [f"second {s}: {stored[name][s]} stored, {again[name][s]} recomputed" for s in unlike[:_SHOWN]]
            yield _several(f"the column {name} differs in {len(unlike)} of {len(stored)} seconds", shown, len(unlike))
    for kind in KINDS:
        kept, found = _merged(stored.latency(kind)), _merged(again.latency(kind))
        cells = sorted(cell for cell in kept.keys() | found.keys() if kept.get(cell, 0) != found.get(cell, 0))
        if cells:
            shown = [
                f"second {s}, bucket {b}: {kept.get((s, b), 0)} stored, {found.get((s, b), 0)} recomputed"
                for s, b in cells[:_SHOWN]
            ]
            yield _several(f"the {kind} latencies differ in {len(cells)} buckets", shown, len(cells))


def _span(seconds: Seconds) -> str:
    return f"{seconds.start} to {seconds.stop - 1}" if len(seconds) else "none"


def _several(what: str, shown: Sequence[str], count: int) -> str:
    return f"{what} ({'; '.join(shown)}{'; …' if count > len(shown) else ''})"


def _merged(latencies: Latencies) -> dict[tuple[int, int], int]:
    """Counts by second and bucket: the live path writes one of them in several rows."""
    cells: tuple[Column, Column] = (latencies.second, latencies.bucket)
    if not len(latencies.count):
        return {}
    place, inverse = np.unique(np.stack(cells), axis=1, return_inverse=True)
    sums = np.zeros(place.shape[1], np.int64)
    np.add.at(sums, inverse.reshape(-1), latencies.count)
    return {(int(s), int(b)): int(n) for s, b, n in zip(*place, sums, strict=True) if n}


def differences_in_values(name: str, stored: object, again: object) -> Iterator[str]:
    """A sentence for each innermost value that differs. Numbers that are none are equal to themselves."""
    if is_dataclass(stored) and type(stored) is type(again):
        for field in fields(stored):
            if field.name in _WORDING:
                continue
            one, other = getattr(stored, field.name), getattr(again, field.name)
            yield from differences_in_values(f"{name}.{field.name}", one, other)
    elif isinstance(stored, dict) and isinstance(again, dict) and stored.keys() == again.keys():
        for key in stored:
            yield from differences_in_values(f"{name}.{key}", stored[key], again[key])
    elif isinstance(stored, tuple) and isinstance(again, tuple) and len(stored) == len(again):
        for place, (one, other) in enumerate(zip(stored, again, strict=True)):
            yield from differences_in_values(f"{name}[{place}]", one, other)
    elif not (stored == again or (_is_nan(stored) and _is_nan(again))):
        yield f"{name} was stored as {stored}, and is {again} now"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
