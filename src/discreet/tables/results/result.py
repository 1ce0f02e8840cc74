"""The answer to one question: values, how far off they may be, and what they cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from os import PathLike
from secrets import token_hex
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet._exact import Number, probability
from discreet._exact import nonnegative as at_least_zero
from discreet.accounting import Loss
from discreet.errors import DataError, MissingExtra, ParameterError
from discreet.ledger import Receipt
from discreet.tables.results import adjust, columns, files
from discreet.tables.results.columns import Array, Flags, Floats
from discreet.tables.results.wire import read_result, write_result

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.tables.model.query import KeyValue

__all__ = ["Result"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Result:
    """Hold what was released: columns of keys, and columns of values with their error bars.

    Each column that is no key has a standard error (``errors``), the ends of an interval that
    covers the exact bounded answer with probability ``confidence`` (``lows``, ``highs``), NaN where
    unknown, and a flag that says whether more than noise is left (``reliable``). The interval is
    about noise alone, unless bounds or limits were inferred: then it is wider by what these are
    estimated to have moved. Where too few people were found to infer them, the value is NaN.

    ``epsilon`` and ``delta`` are the guarantee of this release taken alone, ``loss`` is what the
    account was charged, ``share`` what that is of its budget, ``left`` what was left of it then and
    ``more`` how many more like it fitted, where that is known. ``facts`` describe what was done, as
    JSON has it; these are understood, and all may be missing:

    - ``unit``, ``neighbours``, ``data_version``, ``plan``, ``sql``: texts;
    - ``bounding``: ``kind`` ("norm", "groups", "totals" or "none"), ``limit`` and ``order``, or
      ``groups`` and ``rows``, and ``origin`` ("declared", "asked" or "inferred");
    - ``keys``: ``kind`` ("public" or "selected") and the ``threshold`` of the selection, in rows;
    - ``aggregates``: for each its ``kind`` and ``text``, ``column`` (that shows it as it is),
      ``noise`` ("gaussian", "laplace" or "exponential"), ``deviations`` (of the noise, in the
      units of the aggregate: the least and the greatest of all groups), ``bounds`` (of the values)
      and their ``origin``, ``total`` (``limit``, ``order`` and ``origin`` of a unit's whole sum,
      in the units of the sum), and ``cut``, the shares of people that inferred bounds cut: as
      seen, and at most, about. Older answers have a ``deviation`` instead, of each sum, in rows.

    Nobody can guess the ``nonce``, so nobody can find the answer from its digest in the log.

    >>> from discreet.accounting import PureLoss
    >>> answer = Result(
    ...     columns=("region", "n"), keys=("region",),
    ...     values={"region": ["north", "south"], "n": [12340.2, 17.9]},
    ...     errors={"n": [29, 29]}, lows={"n": [12283.2, -39.1]}, highs={"n": [12397.2, 74.9]},
    ...     reliable={"n": [True, False]}, confidence=0.95, question="SELECT ...",
    ...     epsilon=0.5, delta=0, loss=PureLoss(epsilon=0.5), left=0.83, share=0.04, more=20,
    ...     receipt=Receipt(bodies=('{"account":"people","index":7}',)))
    >>> print(answer)
    region            n
    ------  -----------
    north   12,340 ± 57
    south      ~18 ± 57
    <BLANKLINE>
    ± covers the noise with a confidence of 95%, not what clipping moved.
    ~ marks values with little left under the noise.
    Price: epsilon=0.5, 4% of the budget.
    Left of the budget: 83%; about 20 more like it fit.
    Entry 7 of account 'people'.
    >>> len(answer), answer["n"][0], list(answer)[1]["n_reliable"]
    (2, np.float64(12340.2), False)
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    values: Mapping[str, Array]
    errors: Mapping[str, Floats] = field(default_factory=dict)
    lows: Mapping[str, Floats] = field(default_factory=dict)
    highs: Mapping[str, Floats] = field(default_factory=dict)
    reliable: Mapping[str, Flags] = field(default_factory=dict)
    confidence: float
    question: str
    epsilon: float
    delta: float
    loss: Loss
    receipt: Receipt
    left: float
    share: float | None = None
    more: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_recalled: bool = False
    notes: tuple[str, ...] = ()
    nonce: str = field(default_factory=lambda: token_hex(16))

    def __post_init__(self) -> None:
        probability(self.confidence, name="confidence")
        at_least_zero(self.epsilon, name="epsilon")
        probability(self.delta, name="delta", zero=True, one=True)
        self._check_names()
        values = {name: columns.column(self.values[name], name=name) for name in self.columns}
        if len({len(column) for column in values.values()}) > 1:
            raise DataError("the columns of a result must be equally long.")
        self._set("columns", tuple(self.columns))
        self._set("keys", tuple(self.keys))
        self._set("notes", tuple(self.notes))
        self._set("values", values)
        size = len(values[self.columns[0]])
        for part, empty in (("errors", np.nan), ("lows", np.nan), ("highs", np.nan)):
            given: Mapping[str, Floats] = getattr(self, part)
            full = {n: columns.floats(given.get(n), size, empty, name=n) for n in self.measures}
            self._set(part, full)
        flags = {n: columns.flags(self.reliable.get(n), size, name=n) for n in self.measures}
        self._set("reliable", flags)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_names(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise DataError("the columns of a result must have names, each its own.")
        if set(self.values) != set(self.columns) or not set(self.keys) <= set(self.columns):
            raise DataError("a result must have values for its columns, and keys among them.")
        for part in (self.errors, self.lows, self.highs, self.reliable):
            if not set(part) <= set(self.columns) - set(self.keys):
                raise DataError("only columns that are no keys have error bars.")

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns that are no keys."""
        return tuple(name for name in self.columns if name not in self.keys)

    @property
    def value(self) -> Any:
        """The only value, of a result that has one row and one column that is no key."""
        if len(self) != 1 or len(self.measures) != 1:
            raise ParameterError(
                f"value is for a single number, and this result has {len(self)} rows with "
                f"{len(self.measures)} values each. Take result[column] or iterate over its rows.",
                parameter="value",
            )
        return columns.python(self.values[self.measures[0]])[0]

    def __len__(self) -> int:
        return len(self.values[self.columns[0]])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __getitem__(self, name: str) -> Array:
        """Return one column of values or keys."""
        if name not in self.values:
            raise ParameterError(
                f"this result has the columns {', '.join(self.columns)}, not {name!r}.",
                parameter="name",
            )
        return self.values[name]

    def _all_columns(self, *, errors: bool) -> dict[str, Array]:
        """Name and list the columns of a table: values, and after each its error bars."""
        if not errors:
            return {name: self.values[name] for name in self.columns}
        table: dict[str, Array] = {}
        for shown, name, part in columns.with_bars(self.columns, self.keys):
            table[shown] = getattr(self, part)[name]
        return table

    def to_dicts(self, *, errors: bool = True) -> list[dict[str, Any]]:
        """Return one dict for each row; ``errors=False`` leaves out the error bars.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_dicts(errors=False)[1]
        {'region': 'south', 'n': -17.9, 'pay': 3021.0}
        """
        table = {n: columns.python(c) for n, c in self._all_columns(errors=errors).items()}
        return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]

    def to_arrow(self, *, errors: bool = True) -> "pa.Table":
        """Return an Arrow table: region, n, n_error, n_low, n_high, n_reliable, and so on.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_arrow(errors=False).column_names
        ['region', 'n', 'pay']
        """
        table = self._all_columns(errors=errors)
        arrow = import_module("pyarrow")
        made: pa.Table = arrow.table({name: columns.to_arrow(col) for name, col in table.items()})
        return made

    def to_pandas(self, *, errors: bool = True) -> "pd.DataFrame":
        """Return a pandas frame with the columns of :meth:`to_arrow`.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_pandas()["n_reliable"].tolist()
        [True, False]
        """
        _require("pandas")
        frame: pd.DataFrame = self.to_arrow(errors=errors).to_pandas()
        return frame

    def to_polars(self, *, errors: bool = True) -> "pl.DataFrame":
        """Return a Polars frame with the columns of :meth:`to_arrow`.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_polars().shape
        (2, 11)
        """
        frame: pl.DataFrame = _require("polars").from_arrow(self.to_arrow(errors=errors))
        return frame

    def names(self, *, errors: bool = True) -> list[str]:
        """Return the names of the columns of :meth:`to_dicts` and its relatives.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().names(errors=False)
        ['region', 'n', 'pay']
        """
        return list(self._all_columns(errors=errors))

    def to_csv(
        self, path: "str | PathLike[str] | None" = None, *, errors: bool = True
    ) -> str | None:
        """Write a CSV file with the columns of :meth:`to_arrow`, or return its text.

        >>> from discreet.tables.results.example import region_counts
        >>> print(region_counts().to_csv(errors=False))
        region,n,pay
        north,12340.2,41203.7
        south,-17.9,3021.0
        <BLANKLINE>
        """
        return files.to_csv(self, path, errors=errors)

    def to_excel(self, path: "str | PathLike[str]", *, errors: bool = True) -> None:
        """Write an .xlsx file with the columns of :meth:`to_arrow`; pandas and openpyxl do it.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_excel("regions.txt")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: a spreadsheet must end in .xlsx.
        """
        files.to_excel(self, path, errors=errors)

    def to_json(self) -> bytes:
        """Return the released answer as bytes, from which :meth:`from_json` rebuilds it exactly.

        The receipt, what is left of the budget and whether it is recalled are not in it: they are
        facts about the ledger. The same result always gives the same bytes, so that they match the
        digest in the log; after any adjustment they no longer do.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().to_json()[:50]
        b'{"columns":[{"is_key":true,"name":"region","type":'
        """
        return write_result(self)

    @classmethod
    def from_json(
        cls, data: bytes | str, *, receipt: Receipt, left: float, is_recalled: bool = True
    ) -> "Result":
        """Rebuild a result from what :meth:`to_json` wrote.

        >>> Result.from_json(b"{}", receipt=Receipt(bodies=()), left=1)
        Traceback (most recent call last):
            ...
        discreet.errors.DataError: this is no result in format 1.
        """
        fields = read_result(data)
        return cls(**fields, receipt=receipt, left=left, is_recalled=is_recalled)

    def nonnegative(self, *columns: str) -> "Result":
        """Raise negative values to zero, in the columns named or wherever they must be at least 0.

        Free: it looks at released values only. No value gets further from the exact one, and an
        interval covers it as before; but sums over many cells are biased upwards afterwards.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().nonnegative("n")["n"]
        array([12340.2,     0. ])
        """
        return adjust.nonnegative(self, columns)

    def rounded(self, *columns: str) -> "Result":
        """Round to whole numbers, in the columns named or else in all counts.

        Free: it looks at released values only. Intervals are widened to whole numbers, and
        standard errors by the twelfth of a squared unit that rounding adds.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().rounded()["n"]
        array([12340,   -18])
        """
        return adjust.rounded(self, columns)

    def withheld(self, *columns: str, beyond: Number) -> "Result":
        """Leave out values whose interval reaches farther than ``beyond`` times the value.

        They become NaN, shown as `-` and empty in CSV. Free: it looks at released values only, and
        protects nobody, since what is left out was private already; it keeps readers from building
        on noise. Those that are left are biased upwards: do not add them up.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().withheld("n", beyond=0.5)["n"]
        array([12340.2,     nan])
        """
        return adjust.withheld(self, columns, beyond=beyond)

    def with_key(self, name: str, *, of: str, mapping: "Mapping[Any, KeyValue]") -> "Result":
        """Add a key that another one determines, such as the region of a place. Free.

        ``mapping`` says which, and is public: it must not come from the data. With the keys of the
        coarser answers in it, a finer one can be made :func:`consistent` with them.

        >>> from discreet.tables.results.example import region_counts
        >>> sides = {"north": "upper half", "south": "lower half"}
        >>> region_counts().with_key("half", of="region", mapping=sides).keys
        ('half', 'region')
        """
        return adjust.with_key(self, name, of=of, mapping=mapping)

    def plot(self, column: str | None = None, *, axes: Any = None) -> Any:
        """Draw a column with its intervals; without one, all of them, each in a panel of its own.

        Returns matplotlib's Axes; where several columns are drawn, a tuple of them. Bars for
        groups, a line with a band where the only key is a number or a date, a point where there
        is no key.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().plot("pay").get_ylabel()
        'pay'
        """
        from discreet.tables.results.plot import plot

        return plot(self, column, axes=axes)

    def explain(self) -> str:
        """Say in plain words who is protected, what was done, and what the error bars mean.

        >>> from discreet.tables.results.example import region_counts
        >>> print(region_counts().explain()[:81])
        Who is protected
          The unit of privacy is all records of one user_id. This answer
        """
        from discreet.tables.results.explain import explain

        return explain(self)

    def card(self) -> dict[str, Any]:
        """Return the release card: everything about this release that a program may ask for.

        >>> from discreet.tables.results.example import region_counts
        >>> region_counts().card()["privacy"]["neighbours"]
        'add_remove'
        """
        from discreet.tables.results.card import card

        return card(self)

    def __str__(self) -> str:
        from discreet.tables.results.render import as_text

        return as_text(self)

    __repr__ = __str__

    def __rich__(self) -> Any:
        from discreet.tables.results.render import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from discreet.tables.results.render import as_html

        return as_html(self)


def _require(package: str) -> Any:
    """Import a library that is nobody's extra: who asks for its frames has it, or can get it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(room="discreet.tables", needs=package, extra=None) from None
