"""Figures that need no script: values with their intervals, as SVG that follows the theme."""

import math
from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from discreet.service.pages.rendering.numbers import amount, short

__all__ = ["interval_chart", "ticks"]

_ROW: Final = 26
_LEFT, _RIGHT, _TOP, _BOTTOM = 118, 22, 8, 30
_WIDTH: Final = 400
_LONGEST: Final = 15  # characters of a label


def interval_chart(points: Sequence[dict[str, Any]], *, label: str) -> Markup:
    """Return rows of dots with error bars: of ``{"label", "value", "low", "high"}`` each.

    Instead of the ends there may be a ``half_width``; where none is known, the dot stands alone.
    ``mark`` is a value to be shown beside, such as the truth.

    >>> points = [{"label": "north", "value": 120.0, "low": 113.0, "high": 127.0}]
    >>> str(interval_chart(points, label="n by region")).startswith("<svg")
    True
    """
    known = [one for one in points if _number(one["value"]) is not None]
    if not known:
        return Markup('<p class="quiet">There is nothing to draw.</p>')
    ends = [end for one in known for end in _ends(one)]
    ends += [beside for one in known if (beside := _number(one.get("mark"))) is not None]
    steps = ticks(min(0.0, *ends), max(0.0, *ends))
    low, high = steps[0], steps[-1]
    height = _TOP + _ROW * len(known) + _BOTTOM

    def x(value: float) -> str:
        return f"{_LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low):.1f}"

    parts = [_grid(step, x(step), height) for step in steps]
    for i, one in enumerate(known):
        parts.append(_row(one, _TOP + _ROW * i + _ROW / 2, x))
    told = "; ".join(_told(one) for one in known)
    return Markup(
        '<svg class="figure" viewBox="0 0 {} {}" role="img" aria-label="{}: {}">{}</svg>'
    ).format(_WIDTH, height, label, told, Markup("").join(parts))


def ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Return round numbers from below ``low`` to above ``high``.

    >>> ticks(0, 93)
    [0.0, 25.0, 50.0, 75.0, 100.0]
    """
    if not high > low:
        high = low + 1
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * one for one in (1, 2, 2.5, 5, 10) if size * one >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _grid(step: float, x: str, height: int) -> Markup:
    kind = "axis" if step == 0 else "grid"
    return Markup(
        '<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
    ).format(kind, x, x, _TOP, height - _BOTTOM + 4, x, height - _BOTTOM + 20, _scaled(step))


def _row(one: dict[str, Any], y: float, x: Any) -> Markup:
    low, high = _ends(one)
    name = str(one["label"])
    cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
    bar = Markup("")
    if high > low:
        bar = Markup(
            '<line class="bar" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
            '<line class="bar" x1="{0}" x2="{0}" y1="{3}" y2="{4}"/>'
            '<line class="bar" x1="{1}" x2="{1}" y1="{3}" y2="{4}"/>'
        ).format(x(low), x(high), y, y - 5, y + 5)
    mark = Markup("")
    if (beside := _number(one.get("mark"))) is not None:
        at = x(beside)
        mark = Markup('<path class="mark" d="M{} {}l5 6-5 6-5-6z"/>').format(at, y - 6)
    return Markup(
        '<g><title>{}</title><text class="name" x="{}" y="{}" text-anchor="end">{}</text>'
        '{}<circle class="dot" cx="{}" cy="{}" r="4"/>{}</g>'
    ).format(_told(one), _LEFT - 12, y + 4, cut, bar, x(float(one["value"])), y, mark)


def _told(one: dict[str, Any]) -> str:
    low, high = _ends(one)
    within = f", from {amount(low)} to {amount(high)}" if high > low else ""
    beside = _number(one.get("mark"))
    mark = "" if beside is None else f", exactly {amount(beside)}"
    return f"{one['label']}: {amount(one['value'])}{within}{mark}"


def _ends(one: dict[str, Any]) -> tuple[float, float]:
    value, half = float(one["value"]), _number(one.get("half_width")) or 0.0
    low, high = _number(one.get("low")), _number(one.get("high"))
    return value - half if low is None else low, value + half if high is None else high


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def _scaled(step: float) -> str:
    """Write a tick shortly.

    >>> _scaled(40_000), _scaled(2_500_000), _scaled(0.5)
    ('40k', '2.5M', '0.5')
    """
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(step) >= size:
            return f"{short(step / size)}{sign}"
    return short(step)
