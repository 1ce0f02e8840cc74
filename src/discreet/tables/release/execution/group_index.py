"""The groups of an answer, and the engine's rows put into their order."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "GroupIndex", "cells_of"]

_WHOLE = 1 << 53  # doubles hold every whole number up to here
Integers = npt.NDArray[np.int64]
Group = tuple[object, ...]


@final
class GroupIndex:
    """Groups in the order of the answer: public ones as a list, selected ones as columns.

    >>> import pyarrow as pa
    >>> shown = GroupIndex([("north",), ("south",)])
    >>> shown.aligned(pa.table({"key_0": ["south"], "cell_0": [3]}))
    array([[0],
           [3]])
    """

    __slots__ = ("_groups", "_indices", "table")

    def __init__(self, groups: "Sequence[Group] | pa.Table") -> None:
        self.table: pa.Table | None = None if isinstance(groups, Sequence) else groups
        self._groups: Sequence[Group] | None = groups if isinstance(groups, Sequence) else None
        self._indices: dict[Group, int] | None = None

    @property
    def groups(self) -> Sequence[Group]:
        """The groups as tuples of plain values."""
        if self._groups is None:
            assert self.table is not None
            self._groups = _tuples(self.table, self.table.num_columns)
        return self._groups

    def __len__(self) -> int:
        return len(self._groups) if self.table is None else int(self.table.num_rows)  # type: ignore[arg-type]

    def indices(self, table: "pa.Table") -> Integers:
        """Return which group each row of the engine's table belongs to; -1 where it is not shown.

        >>> import pyarrow as pa
        >>> GroupIndex([(1,), (None,)]).indices(pa.table({"key_0": [None, 7], "cell_0": [1, 1]}))
        array([ 1, -1])
        """
        if self.table is not None and self.table.num_columns == 1:
            return _indices_of(self.table.column(0), table.column(0))
        if self._indices is None:
            self._indices = {_plain_group(group): i for i, group in enumerate(self.groups)}
        keys = len(self.groups[0]) if len(self) else 0
        if keys == 0 and len(self):
            return np.zeros(table.num_rows, dtype=np.int64)
        found = (self._indices.get(group, -1) for group in _tuples(table, keys))
        return np.fromiter(found, dtype=np.int64, count=table.num_rows)

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
        if not len(self):
            return out
        indices = self.indices(table)
        out[indices[indices >= 0]] = cells[indices >= 0]
        return out


def _indices_of(keys: "pa.ChunkedArray", found: "pa.ChunkedArray") -> Integers:
    """Return where each key that was found is among the selected ones; -1 if nowhere."""
    import pyarrow.compute as pc

    indices = pc.index_in(found.combine_chunks(), value_set=keys.combine_chunks())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


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


def _tuples(table: "pa.Table", keys: int) -> list[Group]:
    if keys == 0:
        return [()] * table.num_rows
    columns = [[plain(v) for v in _values(column)] for column in table.columns[:keys]]
    return list(zip(*columns, strict=True))


def _values(column: "pa.ChunkedArray") -> list[object]:
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


def _plain_group(group: Group) -> Group:
    return tuple(plain(value) for value in group)


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
