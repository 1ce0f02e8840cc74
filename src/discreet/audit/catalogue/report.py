"""The table that a run of the catalogue gives, for people and for programs."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, final

__all__ = ["CatalogueLine", "CatalogueReport"]

_SLACK = 1e-9  # of the rounding of the accountant, relatively
_HEAD = ("mechanism", "claim", "delta", "upper", "lower", "power", "samples", "s", "verdict")
_WIDTHS = (28, 5, 5, 5, 5, 5, 7, 4, 6)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueLine:
    """Hold what one entry of the catalogue gave.

    ``claimed`` is what the mechanism was made for, ``upper`` what the accountant certifies for it,
    ``lower`` what the samples prove, and ``power`` the smallest true epsilon that would have been
    flagged in 95 of 100 runs. ``seconds`` are those of one core.

    >>> line = CatalogueLine(
    ...     name="Laplace", claimed=1, delta=0, upper=1, lower=0.97, power=1.05, samples=200_000,
    ...     seconds=0.8, event="output <= 0",
    ... )
    >>> line.verdict
    'passed'
    """

    name: str
    claimed: float
    delta: float
    upper: float
    lower: float
    power: float
    samples: int
    seconds: float
    event: str

    @property
    def verdict(self) -> Literal["passed", "FAILED", "blind"]:
        """Whether the claim survived; "blind" if it did and no violation would have been found."""
        if self.lower > self.upper or self.upper > self.claimed * (1 + _SLACK):
            return "FAILED"
        return "blind" if math.isinf(self.power) else "passed"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueReport:
    """Hold the lines of a run; print it for a table of 80 columns.

    >>> line = CatalogueLine(
    ...     name="Laplace", claimed=1, delta=0, upper=1, lower=0.97, power=1.05, samples=200_000,
    ...     seconds=0.8, event="output <= 0",
    ... )
    >>> report = CatalogueReport(lines=(line,), false_alarm=1e-6, seconds=0.8)
    >>> report.passed
    True
    >>> print(report)
    mechanism                    claim delta upper lower power samples    s verdict
    Laplace                          1     0     1  0.97  1.05 200,000  0.8 passed
    1 of 1 passed in 1 s; a false alarm anywhere has probability 1e-06 at most.
    """

    lines: tuple[CatalogueLine, ...]
    false_alarm: float
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no entry failed."""
        return all(line.verdict != "FAILED" for line in self.lines)

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON can hold it; an infinite power is null.

        >>> CatalogueReport(lines=(), false_alarm=1e-6, seconds=0).to_dict()["passed"]
        True
        """
        return {
            "passed": self.passed,
            "false_alarm": self.false_alarm,
            "seconds": self.seconds,
            "lines": [
                asdict(line) | {"power": _finite(line.power), "verdict": line.verdict}
                for line in self.lines
            ],
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """Return the report that :meth:`to_dict` told.

        >>> report = CatalogueReport(lines=(), false_alarm=1e-6, seconds=0)
        >>> CatalogueReport.from_dict(report.to_dict()) == report
        True
        """
        lines = []
        for one in told["lines"]:
            facts = {name: one[name] for name in CatalogueLine.__dataclass_fields__}
            power = math.inf if one["power"] is None else one["power"]
            lines.append(CatalogueLine(**facts | {"power": power}))
        return cls(lines=tuple(lines), false_alarm=told["false_alarm"], seconds=told["seconds"])

    def to_json(self) -> str:
        """Return the report for programs.

        >>> CatalogueReport(lines=(), false_alarm=1e-6, seconds=0).to_json().splitlines()[1]
        '  "passed": true,'
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_csv(self) -> str:
        """Return the table as comma-separated values.

        >>> print(CatalogueReport(lines=(), false_alarm=1e-6, seconds=0).to_csv(), end="")
        mechanism,claimed,delta,upper,lower,power,samples,seconds,verdict,event
        """
        page = io.StringIO()
        writer = csv.writer(page, lineterminator="\n")
        writer.writerow(("mechanism", "claimed", *_HEAD[2:7], "seconds", "verdict", "event"))
        for one in self.lines:
            numbers = (one.claimed, one.delta, one.upper, one.lower, one.power, one.samples)
            writer.writerow((one.name, *numbers, f"{one.seconds:.2f}", one.verdict, one.event))
        return page.getvalue()

    def to_markdown(self) -> str:
        """Return the table for a page.

        >>> print(CatalogueReport(lines=(), false_alarm=1e-6, seconds=0).to_markdown())
        | mechanism | claim | delta | upper | lower | power | samples | s | verdict |
        |---|---|---|---|---|---|---|---|---|
        """
        rows = [_HEAD, ("---",) * len(_HEAD), *map(_cells, self.lines)]
        text = ["| " + " | ".join(row) + " |" for row in rows]
        text[1] = text[1].replace(" ", "")
        return "\n".join(text)

    def __str__(self) -> str:
        rows = [_HEAD, *map(_cells, self.lines)]
        counted = sum(line.verdict == "passed" for line in self.lines)
        rest = {"blind": "blind (nothing learned)", "FAILED": "FAILED"}
        others = "".join(
            f", {number} {word}"
            for verdict, word in rest.items()
            if (number := sum(line.verdict == verdict for line in self.lines))
        )
        end = (
            f"{counted} of {len(self.lines)} passed{others} in {self.seconds:.0f} s; a false alarm "
            f"anywhere has probability {self.false_alarm:.3g} at most."
        )
        return "\n".join([*(_padded(row) for row in rows), end])


def _cells(line: CatalogueLine) -> tuple[str, ...]:
    """Write a line: upper bounds rounded up, lower ones down, so that none says too much."""
    return (
        line.name,
        _short(line.claimed, up=True),
        f"{line.delta:.2g}",
        _short(line.upper, up=True),
        _short(line.lower, up=False),
        "-" if not math.isfinite(line.power) else _short(line.power, up=True),
        f"{line.samples:,}",
        f"{line.seconds:.1f}" if line.seconds < 99 else f"{line.seconds:.0f}",
        line.verdict,
    )


def _short(value: float, *, up: bool) -> str:
    """Write three decimals, or fewer for large numbers, rounded in the stated direction.

    >>> _short(0.9999999999, up=True), _short(0.97312, up=False), _short(12.3456, up=True)
    ('1', '0.973', '12.35')
    """
    scale = 1000 if abs(value) < 10 else 100
    steps = (math.ceil if up else math.floor)(round(value * scale, 6))
    return f"{steps / scale:.5g}"


def _padded(row: tuple[str, ...]) -> str:
    name, *middle, verdict = row
    cells = (f"{cell:>{width}}" for cell, width in zip(middle, _WIDTHS[1:], strict=False))
    return " ".join([f"{name:<{_WIDTHS[0]}}", *cells, verdict])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
