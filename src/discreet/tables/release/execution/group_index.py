"""The groups of an answer, and the engine's rows put into their order."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.tables.model.statements import Combinations

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "GroupIndex", "cells_of"]

_WHOLE = 1 << 53  # doubles hold every whole number up to here
Integers = npt.NDArray[np.int64]
Group = tuple[object, ...]


@final
class GroupIndex:
    """Groups in the order of the answer: public ones as lists, selected ones as columns.

    >>> import pyarrow as pa
    >>> shown = GroupIndex(Combinations((("north", "south"),)))
    >>> shown.aligned(pa.table({"key_0": ["south"], "cell_0": [3]}))
    array([[0],
           [3]])
    """

    __slots__ = ("known", "table")

    def __init__(self, groups: "Combinations | pa.Table") -> None:
        self.known = groups if isinstance(groups, Combinations) else None
        self.table: pa.Table | None = None if isinstance(groups, Combinations) else groups

    @property
    def groups(self) -> Sequence[Group]:
        """The groups as tuples of plain values."""
        if self.known is not None:
            return self.known
        columns = [[plain(v) for v in _values(column)] for column in self._columns]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return len(self.known) if self.table is None else int(self.table.num_rows)  # type: ignore[arg-type]

    @property
    def _columns(self) -> "list[pa.ChunkedArray]":
        assert self.table is not None
        return list(self.table.columns)

    def column(self, index: int) -> "pa.ChunkedArray | pa.Array":
        """Return one key of all groups.

        >>> GroupIndex(Combinations(((1, 2), ("a", "b")))).column(0).to_pylist()
        [1, 1, 2, 2]
        """
        if self.known is None:
            return self._columns[index]
        import pyarrow as pa

        values = self.known.lists[index]
        each = math.prod(map(len, self.known.lists[index + 1 :]))
        return pa.array(values).take(np.arange(len(self)) // each % max(1, len(values)))

    def indices(self, table: "pa.Table") -> Integers:
        """Return which group each row of the engine's table belongs to; -1 where it is not shown.

        >>> import pyarrow as pa
        >>> shown = GroupIndex(Combinations(((1, None),)))
        >>> shown.indices(pa.table({"key_0": [None, 7], "cell_0": [1, 1]}))
        array([ 1, -1])
        """
        if self.known is None:
            return _among(self._columns, table)
        indices = np.zeros(table.num_rows, dtype=np.int64)
        for listed, column in zip(self.known.lists, table.columns, strict=False):
            found = _listed_as(listed, column)
            is_listed = (indices >= 0) & (found >= 0)
            indices = np.where(is_listed, indices * len(listed) + found, -1)
        return indices

    @property
    def keep(self) -> "Callable[[pa.Table], pa.Table] | None":
        """What takes rows of shown groups from those of all, where groups were selected.

        >>> import pyarrow as pa
        >>> shown = GroupIndex(pa.table({"key_0": ["b"]}))
        >>> shown.keep(pa.table({"key_0": ["a", "b"], "cell_0": [1, 2]}))["cell_0"].to_pylist()
        [2]
        """
        return None if self.table is None else self._rows_of

    def _rows_of(self, table: "pa.Table") -> "pa.Table":
        import pyarrow as pa

        return table.filter(pa.array(self.indices(table) >= 0))

    def aligned(self, table: "pa.Table") -> Integers:
        """Return the cells of the engine's rows, zeros for groups that it did not find."""
        keys = sum(name.startswith("key_") for name in table.column_names)
        cells = cells_of(table, keys=keys)
        out = np.zeros((len(self), cells.shape[1]), dtype=np.int64)
        indices = self.indices(table)
        out[indices[indices >= 0]] = cells[indices >= 0]
        return out


def _among(keys: "Sequence[pa.ChunkedArray]", table: "pa.Table") -> Integers:
    """Return where each row's keys are among selected groups, each of which is there once."""
    own = np.zeros(len(keys[0]), dtype=np.int64)
    indices = np.zeros(table.num_rows, dtype=np.int64)
    if not own.size:
        return indices - 1
    for key, column in zip(keys, table.columns, strict=False):
        values = key.unique()
        found = _indices_of(values, column)
        codes = np.where((indices >= 0) & (found >= 0), indices * len(values) + found, -1)
        # Numbered anew, they stay below the number of groups, and the next product below 2**63.
        seen, own = np.unique(own * len(values) + _indices_of(values, key), return_inverse=True)
        place = np.minimum(np.searchsorted(seen, codes), len(seen) - 1)
        indices = np.where(seen[place] == codes, place, -1)
    return np.where(indices >= 0, np.argsort(own)[indices], -1)


def _indices_of(keys: "pa.Array", found: "pa.ChunkedArray") -> Integers:
    """Return where each key that was found is among distinct ones; -1 if nowhere."""
    import pyarrow.compute as pc

    indices = pc.index_in(found.combine_chunks(), value_set=keys)
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _listed_as(listed: Sequence[object], column: "pa.ChunkedArray") -> Integers:
    """Return where each key that was found is in a list, however it was written; -1 if nowhere."""
    distinct = column.unique()
    numbers = {plain(value): number for number, value in enumerate(listed)}
    places = np.array([numbers.get(plain(v), -1) for v in _values(distinct)], dtype=np.int64)
    return places[_indices_of(distinct, column)]


def cells_of(table: "pa.Table", *, keys: int) -> Integers:
    """Return the columns behind the keys as an array (rows, cells); no value counts as zero.

    >>> import pyarrow as pa
    >>> cells_of(pa.table({"key_0": ["a"], "cell_0": [1], "cell_1": [2]}), keys=1)
    array([[1, 2]])
    """
    columns = table.columns[keys:]
    out = np.zeros((table.num_rows, len(columns)), dtype=np.int64)
    for i, column in enumerate(columns):
        out[:, i] = column.fill_null(0).to_numpy()
    return out


def _values(column: "pa.ChunkedArray | pa.Array") -> list[object]:
    """Return the values of a column; those that Python cannot hold as texts of raw numbers.

    Dates go beyond the year 9999, for one. An error would show the value, and that it is there.
    """
    values: list[object] | None = None
    with suppress(Exception):
        values = column.to_pylist()
    if values is None:
        with suppress(Exception):
            values = [_value(item) for item in column]
    if values is None:
        raise DataError("a key of this question has values that cannot be shown.")
    return values


def _value(item: "pa.Scalar") -> object:
    with suppress(Exception):
        return item.as_py()
    return f"{item.type} {item.value}"


def plain(value: object) -> object:
    """Return a key as declarations write it: dates as ISO texts, decimals as numbers.

    >>> plain(date(2025, 1, 31)), plain(Decimal("1.5"))
    ('2025-01-31', 1.5)
    >>> plain(Decimal(2**60 + 1)) == 2**60 + 1  # decimals that differ stay different
    True
    """
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _plain_decimal(value)
    return value


def _plain_decimal(value: Decimal) -> object:
    nearest = float(value)
    if Decimal(repr(nearest)) == value and abs(nearest) <= _WHOLE:
        return nearest
    return int(value) if value == value.to_integral_value() else str(value)
