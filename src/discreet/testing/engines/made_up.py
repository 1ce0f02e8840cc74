"""Statements and rows to try engines with."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.tables.engines import (
    Bounding,
    Cells,
    Key,
    Norm,
    Query,
    Select,
    Sums,
    Value,
    ValueGrid,
)
from discreet.testing.engines.oracle import Row

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.engines import Type

ROWS = Cells(kind="rows")
PRESENT = Cells(kind="present", values=(0,), with_absent=True)
UNIT_RANGE = (Fraction(0), Fraction(1))
SUM = Cells(kind="sum", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
UNITS = Cells(kind="units", own=Norm(limit=2, order=2))
TOTAL = Cells(
    kind="total", values=(0,), bounds=((Fraction(-10), Fraction(100)),), own=Norm(limit=2, order=1)
)
LINEAR = Cells(kind="linear", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
QUADRATIC = Cells(kind="quadratic", values=(0,), bounds=((Fraction(-10), Fraction(100)),))
MOMENTS = Cells(
    kind="moments",
    values=(0, 1),
    bounds=((Fraction(-10), Fraction(100)), UNIT_RANGE),
    with_absent=True,
)
FAMILIES = (
    ROWS,
    PRESENT,
    SUM,
    LINEAR,
    replace(LINEAR, with_absent=True),
    QUADRATIC,
    replace(QUADRATIC, with_absent=True),
    MOMENTS,
)
GRID = ValueGrid(value=0, low=Fraction(-10), high=Fraction(100), points=12)
NORMS: tuple[Norm, ...] = tuple(
    Norm(limit=limit, order=order)
    for limit in (1, Fraction(1, 2), Fraction(7, 2), 1000)
    for order in (1, 2)
)


def query(keys: int = 1, values: int = 2, *, unit_is_row: bool = False) -> Query:
    """Return a question about ``visits`` with so many keys and values."""
    names = [] if unit_is_row else ["unit"]
    names += [f"key_{i}" for i in range(keys)] + [f"value_{i}" for i in range(values)]
    types: tuple[Type, ...] = ("text", "int64")
    return Query(
        rows=Select.of("visits", **{name: name for name in names}),
        keys=tuple(Key(name=f"key_{i}", type=types[i], values=None) for i in range(keys)),
        values=tuple(Value(text=f"value_{i}", bounds=None) for i in range(values)),
        tables=("visits",),
        unit_is_row=unit_is_row,
    )


def made_rows(seed: int = 1, units: int = 12, most: int = 9, keys: int = 4) -> list[Row]:
    """Return a small table with everything that tables have: NULLs, infinities, repeated rows."""
    dice = random.Random(seed)  # noqa: S311 - makes up data, no noise
    values = [None, math.inf, -math.inf, 1e308, -1e308, 0.0, -0.0, 5e-324, 100.0, -10.0]
    rows: list[Row] = []
    for unit in range(units):
        for _ in range(dice.randint(1, most)):
            rows.append(
                {
                    "unit": unit,
                    "key_0": dice.choice([None, "", *"abcdefghij"[:keys]]),
                    "key_1": dice.choice([None, 0, -1, 2**62]),
                    "value_0": dice.choice([*values, dice.uniform(-20, 120)]),
                    "value_1": dice.choice([None, 0.25, 1.0, dice.random()]),
                }
            )
    return rows


SAMPLE = made_rows()


def arrow_table(rows: Sequence[Row]) -> "pa.Table":
    """Return rows as the table ``visits``."""
    import pyarrow as pa

    kinds = {
        "unit": pa.int64(),
        "key_0": pa.string(),
        "key_1": pa.int64(),
        "value_0": pa.float64(),
        "value_1": pa.float64(),
    }
    return pa.table({name: pa.array([r[name] for r in rows], kind) for name, kind in kinds.items()})


def sums(
    *cells: Cells,
    bounding: Bounding | None = None,
    keys: int = 1,
    salt: str = "salt",
    groups: tuple[tuple[object, ...], ...] | None = None,
    grid: ValueGrid | None = None,
    least: Fraction | None = None,
) -> Sums:
    """Return a statement; without any ``bounding`` every row is a unit of its own."""
    is_row = bounding is None and not any(one.own for one in cells)
    return Sums(
        query=query(keys, unit_is_row=is_row),
        cells=cells or (ROWS,),
        bounding=bounding,
        salt=salt,
        groups=groups,
        grid=grid,
        least=least,
    )
