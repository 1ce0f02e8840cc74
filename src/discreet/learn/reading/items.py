"""Datasets with numbered items: rows of one public form, each made alone."""

from collections import Counter
from typing import Any, Final, final

import numpy as np

from discreet.errors import ParameterError
from discreet.learn.choices.draws import Indices
from discreet.learn.following.batch_tree import blank
from discreet.learn.reading.making import RowMaker, form_of, joined
from discreet.learn.reading.taking import Taken, Taking
from discreet.learn.reading.workers import Here, Reader, Workers

__all__ = ["Items"]

_FIRST: Final = 16  # rows that show the form
_ODD: Final = 2  # so many of them may have another one


@final
class Items:
    """Anything with a length and numbered items.

    The form of the first rows (names, types, shapes) is taken as public and is everybody's. A row
    of another form, or one that cannot be made, is left out: its unit adds nothing. So whether a
    step succeeds, and what others contribute to it, does not depend on that row.
    """

    def __init__(self, maker: RowMaker, *, workers: int) -> None:
        self._maker = maker
        self._reader: Reader = Workers(maker, workers) if workers else Here(maker)
        self._example: Any = None  # a row of zeros, of the public form
        self._form: Any = None

    @property
    def count(self) -> int:
        return len(self._maker.dataset)

    @property
    def form(self) -> str:
        return type(self._maker.dataset).__name__

    @property
    def is_ahead(self) -> bool:
        return self._reader.is_ahead

    def begin(self, indices: Indices) -> Taking:
        if self._form is None:
            self._find_form()
        read = self._reader.begin(indices)
        return lambda: self._taken(read())

    def _taken(self, rows: list[Any]) -> Taken:
        fits = np.array([_form(row) == self._form for row in rows], dtype=bool)
        whole = [row if fit else self._example for row, fit in zip(rows, fits, strict=True)]
        return Taken(joined(whole), None if fits.all() else fits)

    def _find_form(self) -> None:
        rows = self._maker.all(np.arange(min(_FIRST, self.count)))
        made = [row for row in rows if row is not None]
        forms = [form_of(row) for row in made]
        if len(rows) - len(made) > _ODD or not made:
            raise ParameterError(
                "the first rows of the dataset cannot be made: reading, transform or collate, "
                "which is called with one item at a time, fails for them. Try dataset[0], or "
                "debug=True where nobody but the custodian sees errors. Nothing was spent.",
                parameter="dataset",
            )
        ((usual, times),) = Counter(forms).most_common(1)
        if len(forms) - times > _ODD:
            raise ParameterError(
                "the first rows of the dataset have different shapes or types, so that they cannot "
                "be put beside each other. Pad or cut every row to one fixed length, which is "
                "public, in transform or collate. Nothing was spent.",
                parameter="dataset",
            )
        self._form, self._example = usual, blank(made[forms.index(usual)])


def _form(row: Any) -> Any:
    try:
        return None if row is None else form_of(row)
    except ParameterError:
        return None
