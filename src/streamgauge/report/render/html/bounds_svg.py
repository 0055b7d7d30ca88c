"""The bounds and all trials as an SVG: a row per trial on a logarithmic axis, with the marks of their verdicts."""

import math
from collections.abc import Sequence

from streamgauge.model.units import format_value
from streamgauge.report.render.html.markup import Markup, element
from streamgauge.report.view.findings import FindingView, TrialRow

_WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 30, 34
_TALLEST = 480
_SIZE = 6.0
_TWENTIETHS = tuple(1 + n / 20 for n in range(180))
_HUNDREDTHS = tuple(1 + n / 100 for n in range(900))
_ROOM = 74
"""Pixels that the text of a tick needs."""


def bracket_picture(finding: FindingView) -> Markup | None:
    """None if there is nothing to show: fewer than two values, or none that a logarithm takes."""
    values = [row.at for row in finding.rows if row.at > 0] + [end for end in finding.ends if end]
    if len(set(values)) < 2:
        return None
    scale = _Scale(min(values), max(values), whole=finding.unit == "count")
    step = min(24.0, _TALLEST / len(finding.rows))
    height = _TOP + step * len(finding.rows) + _BOTTOM
    label = f"all trials by {finding.dimension}, with the bounds"
    return element(
        "svg",
        element("title", label),
        *_band(finding, scale, height),
        *_axis(finding, scale, height),
        *(_mark(row, scale, _TOP + step * (n + 0.5), step) for n, row in enumerate(finding.rows) if row.at > 0),
        viewBox=f"0 0 {_WIDTH} {height:.0f}",
        role="img",
        aria_label=label,
        class_="bracket",
    )


class _Scale:
    """A value's place on the line."""

    def __init__(self, low: float, high: float, whole: bool = False) -> None:
        margin = (high / low) ** 0.06
        self.whole = whole
        self.low, self.high = low / margin, high * margin

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        """1, 2 and 5 of every power of ten; where the line is too short for two of those, finer ones."""
        for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), _TWENTIETHS, _HUNDREDTHS):
            found = [step * 10.0**power for power in self._powers() for step in steps]
            inside = [value for value in found if self.low <= value <= self.high and self._fits(value)]
            if len(inside) >= 3:
                return self._apart(inside)
        return self._apart(inside)

    def _fits(self, value: float) -> bool:
        return not self.whole or value == round(value)

    def _powers(self) -> range:
        return range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)

    def _apart(self, values: Sequence[float]) -> list[float]:
        """Only those whose texts do not touch."""
        kept: list[float] = []
        for value in values:
            if not kept or self(value) - self(kept[-1]) >= _ROOM:
                kept.append(value)
        return kept


def _band(finding: FindingView, scale: _Scale, height: float) -> list[Markup]:
    """The range between the bounds; a line if only one bound is known."""
    holds, fails = finding.ends
    floor = height - _BOTTOM
    made = []
    if holds and fails:
        left, right = sorted((scale(holds), scale(fails)))
        width = max(right - left, 2.0)
        made.append(element("rect", x=f"{left:.1f}", y=_TOP, width=f"{width:.1f}", height=f"{floor - _TOP:.1f}"))
    for name, value, other in (("holds", holds, fails), ("fails", fails, holds)):
        if not value:
            continue
        x = scale(value)
        anchor, shift = _beside(x, None if not other else scale(other))
        text = f"{'passed' if name == 'holds' else 'failed'} {format_value(value, finding.unit)}"
        made.append(element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=_TOP - 6, y2=f"{floor:.1f}", class_=name))
        made.append(element("text", text, x=f"{x + shift:.1f}", y=_TOP - 12, text_anchor=anchor, class_=name))
    return [element("g", *made, class_="band")]


def _beside(x: float, other: float | None) -> tuple[str, int]:
    """Where the text of a bound is: over its line, or away from the other bound if that is near."""
    if other is None or abs(x - other) >= 2 * _ROOM:
        return "middle", 0
    return ("end", 3) if x < other else ("start", -3)


def _axis(finding: FindingView, scale: _Scale, height: float) -> list[Markup]:
    floor = height - _BOTTOM
    made = [element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{floor:.1f}", y2=f"{floor:.1f}")]
    for value in scale.ticks():
        x = f"{scale(value):.1f}"
        made.append(element("line", x1=x, x2=x, y1=f"{floor:.1f}", y2=f"{floor + 5:.1f}"))
        made.append(
            element("text", format_value(value, finding.unit), x=x, y=f"{floor + 19:.1f}", text_anchor="middle")
        )
    made.append(element("text", "trial", x=_LEFT - 10, y=_TOP - 12, text_anchor="end"))
    return [element("g", *made, class_="axis")]


def _mark(row: TrialRow, scale: _Scale, y: float, step: float) -> Markup:
    """A different shape for every verdict, so that they do not differ only by colour."""
    x, size = scale(row.at), min(_SIZE, step / 2.2)
    title = f"trial {row.number}, {row.purpose} at {row.value}: {row.verdict}"
    number = element("text", str(row.number), x=_LEFT - 10, y=f"{y + 4:.1f}", text_anchor="end", class_="number")
    line = element("line", x1=_LEFT, x2=f"{x:.1f}", y1=f"{y:.1f}", y2=f"{y:.1f}", class_="row")
    return element("g", element("title", title), line, number if step >= 12 else None, _shape(row.verdict, x, y, size))


def verdict_key(verdict: str) -> Markup:
    """Only the mark of a verdict, for the legend."""
    return element("svg", _shape(verdict, 8, 8, 6), viewBox="0 0 16 16", class_="key", aria_hidden="true")


def _shape(verdict: str, x: float, y: float, s: float) -> Markup:
    name = f"mark {verdict.lower()}"
    if verdict == "SUSTAINED":
        return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{s:.1f}", class_=name)
    corners = {
        "OVERLOADED": ((0, -1.1), (1.1, 0.9), (-1.1, 0.9)),
        "FAILED": ((-1, -1), (0, -0.4), (1, -1), (0.4, 0), (1, 1), (0, 0.4), (-1, 1), (-0.4, 0)),
        "INVALID": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    }.get(verdict, ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)))
    points = " ".join(f"{x + s * dx:.1f},{y + s * dy:.1f}" for dx, dy in corners)
    return element("polygon", points=points, class_=name)
