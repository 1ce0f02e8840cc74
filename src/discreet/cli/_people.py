"""The people of the demo: generated, or read from a folder."""

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from discreet.datasets import census, folder
from discreet.errors import DataError, ParameterError

FILES: Final = ("people.csv", "census.csv", "PUMS.csv", "pums/PUMS.csv")
COLUMNS: Final = ("age", "income")
LARGEST: Final = 2**53  # beyond every bound of the demo, and exact as a float
LONGEST_CELL: Final = 2**31 - 1  # the most that the parser's limit can be set to everywhere


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """One row for each person; ``about`` says where they come from.

    >>> load(None, rows=10).about
    'a generated, census-like table'
    """

    about: str
    age: NDArray[np.int64]
    income: NDArray[np.int64]


def load(data: Path | None, *, rows: int) -> People:
    """Return all people in a CSV of the folder, or ``rows`` generated ones if there is no folder.

    A file is read to its end: were it cut after some rows, removing one person would pull another
    one in, and the histogram would change by two.

    >>> len(load(None, rows=10).age)
    10
    """
    if data is None:
        table = census(rows)
        return People(
            about="a generated, census-like table",
            age=table["age"].astype(np.int64),
            income=table["income"].astype(np.int64),
        )
    home = folder(data)
    for name in FILES:
        if (home / name).is_file():
            return _read(home / name, name)
    raise ParameterError(
        f"the folder {str(data)!r} has none of the files {', '.join(FILES)}. Put one there, a CSV "
        "with the columns age and income, or leave --data out.",
        parameter="data",
    )


def _read(path: Path, name: str) -> People:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file, _any_cell():
        try:
            lines = csv.DictReader(file)
            missing = [c for c in COLUMNS if c not in (lines.fieldnames or ())]
            if missing:
                raise ParameterError(
                    f"{name} has no column {' and no column '.join(missing)}. The demo needs age "
                    "and income, named in the first line.",
                    parameter="data",
                )
            cells = [[_whole(line[c]) for c in COLUMNS] for line in lines]
        except csv.Error:
            # Without the parser's own words, which may quote the file.
            raise DataError(
                f"{name} cannot be read as CSV. Nothing was released. Save it again as plain CSV, "
                "one person to a line."
            ) from None
    table = np.array(cells, dtype=np.int64).reshape(-1, len(COLUMNS))
    return People(about=f"the table {name}", age=table[:, 0], income=table[:, 1])


@contextmanager
def _any_cell() -> Iterator[None]:
    """Accept cells of any length: by default a long one fails, which tells that it is there."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _whole(text: str | None) -> int:
    """Read a cell; what is no number counts as 0, since an error would tell that it is there."""
    try:
        number = float(text or "")
    except ValueError:
        return 0
    return 0 if math.isnan(number) else round(max(-LARGEST, min(LARGEST, number)))
