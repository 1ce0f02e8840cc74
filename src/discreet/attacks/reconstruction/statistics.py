"""What is published about a block of people: counts, means and medians, as bounds on sums."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil, inf
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, ParameterError

__all__ = ["Columns", "Statistic", "publish"]

Columns: TypeAlias = Mapping[str, Sequence[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Say that the people ``where`` are between ``low`` and ``high``, or their sum ``of`` a column.

    >>> Statistic(where={"sex": ["female"], "age": range(20, 30)}, low=3, high=3)
    Statistic(where={'sex': ['female'], 'age': range(20, 30)}, of=None, low=3, high=3)
    """

    where: Mapping[str, Collection[Any]] = field(default_factory=dict)
    of: str | None = None
    low: float = 0.0
    high: float = inf

    def weights(self, columns: Columns) -> NDArray[np.float64]:
        """Return what a person of each possible kind adds, kinds in the order of ``product``.

        >>> Statistic(where={"sex": ["f"]}).weights({"sex": ["f", "m"], "age": [1, 2]}).tolist()
        [1.0, 1.0, 0.0, 0.0]
        """
        kinds = [dict(zip(columns, kind, strict=True)) for kind in product(*columns.values())]
        unknown = {*self.where, *([self.of] if self.of else [])} - set(columns)
        if unknown:
            raise DataError(f"a statistic is of columns that nobody has: {sorted(unknown)}.")
        return np.array([
            (1.0 if self.of is None else float(kind[self.of]))
            * all(kind[name] in kept for name, kept in self.where.items())
            for kind in kinds
        ])  # fmt: skip


def publish(
    records: Columns,
    *,
    columns: Columns,
    counts: Sequence[Sequence[str]] = ((),),
    of: str | None = None,
    by: Sequence[Sequence[str]] = (),
    digits: int = 1,
) -> list[Statistic]:
    """Return the exact tables of a block, as a statistical office would print them.

    ``counts`` lists which columns are tabulated against each other; of the column ``of``, the
    median and the mean (with so many ``digits``) are printed by each list in ``by``, where anybody
    is. ``columns`` has the values that each column may take.

    >>> records = {"sex": ["f", "m", "f"], "age": [3, 1, 2]}
    >>> columns = {"sex": ["f", "m"], "age": range(5)}
    >>> len(publish(records, columns=columns, counts=[["sex"]], of="age", by=[["sex"]]))
    8
    """
    lengths = {len(values) for values in records.values()}
    if set(records) != set(columns) or len(lengths) != 1:
        raise DataError("records must have the columns of the block, equally long.")
    if of is None and by:
        raise ParameterError("by needs of: the column whose means are printed.", parameter="of")
    printed = []
    for names in counts:
        for where, is_in in _cells(records, columns, names):
            n = int(is_in.sum())
            printed.append(Statistic(where=where, low=n, high=n))
    for names in by:
        for where, is_in in _cells(records, columns, names):
            if is_in.any():
                values = np.asarray(records[str(of)])[is_in]
                printed += _averages(values, where, str(of), columns, digits)
    return printed


def _cells(records: Columns, columns: Columns, names: Sequence[str]) -> Any:
    """Yield each cell of a table, and who is in it."""
    size = len(next(iter(records.values())))
    for values in product(*(columns[name] for name in names)):
        where = {name: [value] for name, value in zip(names, values, strict=True)}
        is_in = np.ones(size, dtype=bool)
        for name, (value,) in where.items():
            is_in &= np.asarray([one == value for one in records[name]])
        yield where, is_in


def _averages(
    values: Any, where: Mapping[str, Collection[Any]], of: str, columns: Columns, digits: int
) -> list[Statistic]:
    """Return a mean, as rounded, and a median, the lower of two, as bounds."""
    n = len(values)
    mean, half = round(float(values.mean()), digits), 0.5 * 10.0**-digits
    middle = np.sort(values)[(n - 1) // 2]
    below = [value for value in columns[of] if value <= middle]
    above = [value for value in columns[of] if value >= middle]
    return [
        Statistic(where=where, of=of, low=n * (mean - half) - 1e-6, high=n * (mean + half) + 1e-6),
        Statistic(where={**where, of: below}, low=ceil(n / 2)),
        Statistic(where={**where, of: above}, low=n // 2 + 1),
    ]
