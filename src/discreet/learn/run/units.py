"""Which rows belong to whom, and which of them a unit brings along when it is drawn."""

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt
from torch import Tensor

from discreet.errors import DataError, ParameterError
from discreet.learn.choices.draws import Indices
from discreet.learn.reading.rows import column_of
from discreet.noise import Source
from discreet.noise.source import words

__all__ = ["EachRow", "RowsById", "UnitRows", "rounded", "units_of"]

Weights = npt.NDArray[np.float32]


class UnitRows(Protocol):
    """The units of a dataset, by number."""

    @property
    def count(self) -> int:
        """How many there are: as private as the data."""
        ...

    @property
    def rows_each(self) -> int:
        """How many rows each unit brings along."""
        ...

    def rows(self, units: Indices, source: Source) -> tuple[Indices, Weights | None]:
        """Return the rows of these units, unit by unit, and what each row's loss counts."""
        ...


@final
class EachRow:
    """Every row is a unit of its own."""

    rows_each = 1

    def __init__(self, count: int) -> None:
        self.count = count

    def rows(self, units: Indices, source: Source) -> tuple[Indices, Weights | None]:
        return units, None


@final
class RowsById:
    """Rows that share an id are one unit, which brings ``rows_each`` of them along.

    A unit with more rows has that many drawn without replacement, anew each time; one with fewer
    repeats its rows with weight 0. A unit's loss is the mean over its real rows. All of it depends
    on the unit's own rows only, so that adding a unit never changes what another one contributes.
    """

    def __init__(self, ids: npt.NDArray[Any], rows_each: int) -> None:
        _, owner, sizes = np.unique(ids, return_inverse=True, return_counts=True)
        self.rows_each = rows_each
        self._order = np.argsort(owner, kind="stable").astype(np.int64, copy=False)
        self._sizes = sizes.astype(np.int64, copy=False)
        self._starts = np.cumsum(self._sizes) - self._sizes

    @property
    def count(self) -> int:
        return int(self._sizes.size)

    def rows(self, units: Indices, source: Source) -> tuple[Indices, Weights | None]:
        sizes, starts = self._sizes[units], self._starts[units]
        place = np.arange(self.rows_each)
        # Repeats fill up from the front: 0 1 2 0 1 for three rows out of five.
        picked = starts[:, None] + place[None, :] % sizes[:, None]
        large = np.flatnonzero(sizes > self.rows_each)
        if large.size:
            picked[large] = self._drawn(starts[large], sizes[large], source)
        real = np.minimum(sizes, self.rows_each)
        weights = (place[None, :] < real[:, None]) / real[:, None].astype(np.float32)
        return self._order[picked.reshape(-1)], weights.reshape(-1).astype(np.float32)

    def _drawn(self, starts: Indices, sizes: Indices, source: Source) -> Indices:
        """Draw rows_each places of every unit, by the order of 64 random bits for each row.

        Two equal keys keep their order, which tilts the choice by less than rows * 2**-63; privacy
        does not rest on it, since a unit's whole contribution is clipped whichever rows it is.
        """
        total = int(sizes.sum())
        unit = np.repeat(np.arange(sizes.size), sizes)
        first = np.cumsum(sizes) - sizes
        order = np.lexsort((words(source, total, "<u8"), unit))
        chosen = order[first[:, None] + np.arange(self.rows_each)[None, :]]
        places: Indices = starts[:, None] + (chosen - first[:, None])
        return places


def rounded(count: int) -> int:
    """Return a number rounded up to two significant digits, which is then taken as public.

    Up, since accounting for truncated batches needs a population that is not exceeded.

    >>> rounded(60_000), rounded(48_842), rounded(7)
    (60000, 49000, 7)
    """
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit


def units_of(
    dataset: object, units: object, *, rows: int, rows_each: int
) -> tuple[UnitRows, str | None]:
    """Return the units of a dataset and the name of the column they come from, if any."""
    if units is None:
        if rows_each != 1:
            raise ParameterError(
                "rows_per_unit says how many rows a user brings along: name the users with units=.",
                parameter="rows_per_unit",
            )
        return EachRow(rows), None
    name = units if isinstance(units, str) else None
    ids = _array(column_of(dataset, units) if isinstance(units, str) else units)
    if ids.shape != (rows,):
        raise DataError(
            "units must have one id for each row of the dataset, in the same order. Nothing was "
            "spent."
        )
    return RowsById(ids, rows_each), name


def _array(units: object) -> npt.NDArray[Any]:
    if isinstance(units, Tensor):
        units = units.detach().cpu().numpy()
    if not isinstance(units, np.ndarray | Sequence):
        raise ParameterError(
            "units must be an array with one id for each row, or the name of a column.",
            parameter="units",
        )
    ids = units if isinstance(units, np.ndarray) else np.array(units, dtype=object)
    if ids.dtype.kind == "O":
        ids = _alike(ids)
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise DataError("units has ids that are missing. Give every row an owner.")
    if ids.dtype.kind not in "iufUSb":
        raise DataError("units must be whole numbers or texts. Nothing was spent.")
    return ids


def _alike(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids that are objects as an array, if they are all texts or all whole numbers.

    Turned into an array together, 1 and "1" would become one user.
    """
    for kind in (str, bytes, int | np.integer):
        if all(isinstance(one, kind) for one in ids.reshape(-1)):
            alike = np.array(ids.tolist())
            if alike.dtype.kind not in "iuUS":  # floats would make one of several large numbers
                break
            return alike
    raise DataError("units has ids that are missing, or of several types. Nothing was spent.")
