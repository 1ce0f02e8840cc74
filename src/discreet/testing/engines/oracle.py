"""What an engine must answer, worked out unit by unit with exact fractions and no SQL.

Where an engine may round (a root, a division, a step towards zero) the oracle gives an interval.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

from discreet.tables.engines import (
    WEIGHT_STEPS,
    Bounding,
    Cells,
    Distinct,
    Groups,
    Profile,
    Sums,
    ValueGrid,
)

__all__ = ["Interval", "Row", "by_unit", "distinct_pairs", "expected_profile", "expected_sums"]

Row = Mapping[str, object]
Interval = tuple[int, int]

_STEPS = WEIGHT_STEPS
_ROUNDING = Fraction(1, 1 << 30)  # of a step: how far a double may be from the true share
_SLACK = 1 - Fraction(1, 1 << 38)  # of a weight


def by_unit(rows: Iterable[Row]) -> dict[object, list[Row]]:
    """Return each unit's rows; rows of nobody are left out."""
    found: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        if row["unit"] is not None:
            found[row["unit"]].append(row)
    return found


def expected_sums(statement: Sums, rows: Sequence[Row]) -> dict[tuple[object, ...], list[Interval]]:
    """Return the intervals of all cells by group. For Groups: as if all groups were kept."""
    total: dict[tuple[object, ...], list[Interval]] = {}
    units: Iterable[list[Row]]
    is_row = statement.query.unit_is_row
    units = [[row] for row in rows] if is_row else by_unit(rows).values()
    for own in units:
        for group, cells in _contribution(statement, own).items():
            before = total.get(group, [(0, 0)] * len(cells))
            total[group] = [(a + c, b + d) for (a, b), (c, d) in zip(before, cells, strict=True)]
    if statement.least is not None:
        return {group: cells for group, cells in total.items() if cells[0] != (0, 0)}
    return total


def _contribution(statement: Sums, rows: list[Row]) -> dict[tuple[object, ...], list[Interval]]:
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        group = _group(statement, row)
        if group is not None:
            groups[group].append(row)
    found: dict[tuple[object, ...], list[Interval]] = {group: [] for group in groups}
    counts = {group: (len(own), len(own)) for group, own in groups.items()}
    for family in statement.cells:
        each = {group: _cells(family, own) for group, own in groups.items()}
        sizes, one = counts, 1
        if family.own is not None:
            sizes, one = {group: cells[0] for group, cells in each.items()}, _STEPS
        for group, cells in each.items():
            weight = _weight(family.own or statement.bounding, sizes, group, one)
            found[group] += [_scaled(cell, weight) for cell in cells]
    return found if statement.least is None else _not_small(statement, found, counts)


def _not_small(
    statement: Sums,
    found: dict[tuple[object, ...], list[Interval]],
    counts: Mapping[tuple[object, ...], Interval],
) -> dict[tuple[object, ...], list[Interval]]:
    """Leave out contributions that are small: all of them, or only units."""
    assert statement.least is not None
    kept, least = {}, statement.least * _STEPS
    for group, cells in found.items():
        is_units = statement.cells[0].kind == "units"
        rows = (_STEPS * counts[group][0],) * 2
        low, high = cells[0]
        if not is_units:
            low, high = _scaled(rows, _weight(statement.bounding, counts, group, 1))
        assert (low >= least) == (high >= least), "the case is too close to call"
        if low >= least:
            kept[group] = cells
        elif is_units:
            kept[group] = [(0, 0), *cells[1:]]
    return kept


def _group(statement: Sums | Distinct | Profile, row: Row) -> tuple[object, ...] | None:
    group = tuple(row[f"key_{i}"] for i in range(len(statement.query.keys)))
    if statement.groups is not None and group not in {tuple(g) for g in statement.groups}:
        return None
    if not isinstance(statement, Sums):
        return group
    if any(row[f"value_{index}"] is None for index in statement.needed):
        return None
    grid = statement.grid
    return group if grid is None else (*group, _place(grid, row[f"value_{grid.value}"]))


def _place(grid: ValueGrid, value: object) -> int:
    share = _share(value, (grid.low, grid.high))
    return math.floor(share * (grid.points - 1) + Fraction(1, 2))


def _weight(
    bounding: Bounding | None,
    sizes: Mapping[tuple[object, ...], Interval],
    group: tuple[object, ...],
    one: int,
) -> tuple[Fraction, Fraction]:
    """Return the least and the largest weight of a group, of whose sizes ``one`` make a row."""
    if bounding is None:
        return Fraction(1), Fraction(1)
    if isinstance(bounding, Groups):
        limit, order, counted = Fraction(bounding.rows), 1, [sizes[group]]
    else:
        limit, order = Fraction(bounding.limit) * one, bounding.order
        counted = list(sizes.values())
    ends = []
    for size in (_least_size, _most_size):
        square = sum(size(one) ** order for one in counted) ** (2 // order)
        norm = Fraction(math.isqrt(square << 120), 1 << 60)
        ends.append(Fraction(1) if square <= limit**2 else limit / norm)
    return ends[1] * (_SLACK if ends[1] < 1 else 1), ends[0]


def _least_size(one: Interval) -> int:
    return 0 if one[0] < 0 < one[1] else min(map(abs, one))


def _most_size(one: Interval) -> int:
    return max(map(abs, one))


def _scaled(cell: Interval, weight: tuple[Fraction, Fraction]) -> Interval:
    ends = [math.trunc(Fraction(end) * w) for end in cell for w in weight]
    return min(ends), max(ends)


def _cells(family: Cells, rows: list[Row]) -> list[Interval]:
    if family.kind == "units":
        return [(_STEPS, _STEPS)]
    total = [(0, 0)] * family.count
    for row in rows:
        total = [
            (a + c, b + d)
            for (a, b), (c, d) in zip(
                total, _row_cells(family, *(row[f"value_{i}"] for i in family.values)), strict=True
            )
        ]
    return total


@lru_cache(maxsize=10_000)
def _row_cells(family: Cells, *values: object) -> list[Interval]:
    own = family.count - family.with_absent
    if any(value is None for value in values):
        return [(0, 0)] * own + [(_STEPS, _STEPS)] * family.with_absent
    if family.kind in ("rows", "present"):
        cells = [(_STEPS, _STEPS)]
    elif family.kind in ("sum", "total"):
        cells = [_signed(values[0], family.bounds[0], is_nearest=family.kind == "total")]
    else:
        shares = [_share(x, b) for x, b in zip(values, family.bounds, strict=True)]
        around = [[_within(t - _ROUNDING, 0), _within(t + _ROUNDING, 0)] for t in shares]
        tried = [_share_cells(family.kind, ts) for ts in product(*around)]
        cells = [(min(c), max(c)) for c in zip(*tried, strict=True)]
    return cells + [(0, 0)] * family.with_absent


def _signed(value: object, bounds: tuple[Fraction, Fraction], *, is_nearest: bool) -> Interval:
    low, high = (Fraction(float(b)) for b in bounds)
    largest = max(-low, high, Fraction(0))
    x = _clamped(value, low, high) / largest if largest else Fraction(0)
    near = [_within(x + e, -1) * _STEPS for e in (-_ROUNDING, _ROUNDING)]
    ends = [math.floor(e + Fraction(1, 2)) if is_nearest else math.trunc(e) for e in near]
    return min(ends), max(ends)


def _share_cells(kind: str, shares: Sequence[Fraction]) -> list[int]:
    if kind == "linear":
        high = math.floor(shares[0] * _STEPS)
        return [_STEPS - high, high]
    sides = []
    for t in shares:
        m = math.floor(t * _STEPS)
        c = max(math.floor(t * t * _STEPS), 2 * m - _STEPS)
        sides.append([_STEPS - 2 * m + c, 2 * (m - c), c])
    if kind == "quadratic":
        return sides[0]
    return [a * b // _STEPS for a, b in product(*sides)]


def _share(value: object, bounds: tuple[Fraction, Fraction]) -> Fraction:
    low, high = (Fraction(float(bound)) for bound in bounds)
    return (_clamped(value, low, high) - low) / (high - low) if high > low else Fraction(0)


def _clamped(value: object, low: Fraction, high: Fraction) -> Fraction:
    assert isinstance(value, int | float)
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(Fraction(value), low), high)


def _within(share: Fraction, least: int) -> Fraction:
    return min(max(share, Fraction(least)), Fraction(1))


def distinct_pairs(
    statement: Distinct | Profile, rows: Sequence[Row]
) -> set[tuple[tuple[object, ...], object]]:
    """Return the distinct pairs of group and value."""
    pairs = set()
    for row in rows:
        group, value = _group(statement, row), row[f"value_{statement.value}"]
        if group is not None and value is not None:
            pairs.add((group, value))
    return pairs


def expected_profile(statement: Profile, rows: Sequence[Row]) -> dict[int, int]:
    """Return the number of units in each bin, empty bins left out."""
    bins: dict[int, int] = defaultdict(int)
    is_row = statement.query.unit_is_row
    units = [[row] for row in rows] if is_row else list(by_unit(rows).values())
    for own in units:
        square = _squared_size(statement, own)
        if square is not None:
            bins[sum(edge * abs(edge) < square for edge in statement.edges)] += 1
    return dict(bins)


def _squared_size(statement: Profile, rows: list[Row]) -> Fraction | float | None:
    """Return the square of a unit's size with the size's sign, so that norms are exact."""
    kept = [row for row in rows if _group(statement, row) is not None]
    if statement.value is not None:
        kept = [row for row in kept if row[f"value_{statement.value}"] is not None]
    if not kept:
        return None
    if statement.of in ("largest", "smallest"):
        values = [row[f"value_{statement.value}"] for row in kept]
        x = (max if statement.of == "largest" else min)(values)  # type: ignore[type-var]
        assert isinstance(x, int | float)
        return x if math.isinf(x) else Fraction(x) * abs(Fraction(x))
    if statement.of == "pairs":
        return Fraction(len(distinct_pairs(statement, kept))) ** 2
    if statement.of == "total":
        return _squared_total(statement, kept)
    counts: dict[tuple[object, ...] | None, int] = defaultdict(int)
    for row in kept:
        group = _group(statement, row)
        counts[group] = 1 if statement.once else counts[group] + 1
    if statement.of == "norm":
        return Fraction(sum(n * n for n in counts.values()))
    return Fraction(sum(counts.values())) ** 2


def _squared_total(statement: Profile, rows: list[Row]) -> Fraction:
    """Return the squared norm of a unit's totals; values must not be too close to half a step."""
    assert statement.bounds is not None
    totals: dict[tuple[object, ...] | None, int] = defaultdict(int)
    for row in rows:
        value = row[f"value_{statement.value}"]
        low, high = _signed(value, statement.bounds, is_nearest=True)
        assert low == high, "the case is too close to call"
        totals[_group(statement, row)] += low
    sizes = [abs(total) for total in totals.values()]
    square = sum(n * n for n in sizes) if statement.order == 2 else sum(sizes) ** 2
    return Fraction(square, _STEPS**2)
