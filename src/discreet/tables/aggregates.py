"""The aggregates of the dataframe interface: each is a piece of the same SQL that people type.

A column is named as in SQL, and any SQL expression will do: ``mean("income / 12")``.
"""

from dataclasses import dataclass
from typing import final

from discreet._exact import Number, exact, probability, whole
from discreet.errors import ParameterError

__all__ = [
    "Ask",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "stddev",
    "sum",
    "variance",
]

Bounds = tuple[Number, Number]


@final
@dataclass(frozen=True, slots=True)
class Ask:
    """One aggregate, as SQL.

    >>> mean("income", bounds=(0, 200_000))
    Ask(sql='AVG(CLAMP(income, 0, 200000))')
    """

    sql: str


def count(column: str | None = None) -> Ask:
    """Count rows, or the rows that have a value in a column.

    >>> count(), count("income")
    (Ask(sql='COUNT(*)'), Ask(sql='COUNT(income)'))
    """
    return Ask("COUNT(*)" if column is None else f"COUNT({_text(column)})")


def count_distinct(column: str) -> Ask:
    """Count the distinct values of a column; of the unit's column: how many units there are.

    >>> count_distinct("user_id")
    Ask(sql='COUNT(DISTINCT user_id)')
    """
    return Ask(f"COUNT(DISTINCT {_text(column)})")


def sum(column: str, *, bounds: Bounds | None = None) -> Ask:  # noqa: A001
    """Add up a column, each row clamped to ``bounds``.

    >>> sum("amount", bounds=(0, 500))
    Ask(sql='SUM(CLAMP(amount, 0, 500))')
    """
    return Ask(f"SUM({_clamped(column, bounds)})")


def mean(column: str, *, bounds: Bounds | None = None) -> Ask:
    """Average a column, each row clamped to ``bounds``.

    >>> mean("age")
    Ask(sql='AVG(age)')
    """
    return Ask(f"AVG({_clamped(column, bounds)})")


def variance(column: str, *, bounds: Bounds | None = None) -> Ask:
    """Return the sample variance of a column.

    >>> variance("age", bounds=(0, 120))
    Ask(sql='VAR_SAMP(CLAMP(age, 0, 120))')
    """
    return Ask(f"VAR_SAMP({_clamped(column, bounds)})")


def stddev(column: str, *, bounds: Bounds | None = None) -> Ask:
    """Return the sample standard deviation of a column.

    >>> stddev("age")
    Ask(sql='STDDEV_SAMP(age)')
    """
    return Ask(f"STDDEV_SAMP({_clamped(column, bounds)})")


def correlation(first: str, second: str) -> Ask:
    """Return the correlation of two columns.

    >>> correlation("age", "income")
    Ask(sql='CORR(age, income)')
    """
    return Ask(f"CORR({_text(first)}, {_text(second)})")


def covariance(first: str, second: str) -> Ask:
    """Return the sample covariance of two columns.

    >>> covariance("age", "income")
    Ask(sql='COVAR_SAMP(age, income)')
    """
    return Ask(f"COVAR_SAMP({_text(first)}, {_text(second)})")


def quantile(column: str, q: Number, *, bounds: Bounds | None = None) -> Ask:
    """Return a value that about a share q of the rows is below.

    >>> quantile("age", 0.9, bounds=(0, 120))
    Ask(sql='QUANTILE(CLAMP(age, 0, 120), 0.9)')
    """
    share = probability(q, name="q", hint="The extremes are min and max.")
    return Ask(f"QUANTILE({_clamped(column, bounds)}, {float(share)!r})")


def median(column: str, *, bounds: Bounds | None = None) -> Ask:
    """Return a value that about half of the rows are below.

    >>> median("age")
    Ask(sql='MEDIAN(age)')
    """
    return Ask(f"MEDIAN({_clamped(column, bounds)})")


def min(column: str, *, bounds: Bounds | None = None) -> Ask:  # noqa: A001
    """Return a value that only a few rows are below.

    >>> min("age")
    Ask(sql='MIN(age)')
    """
    return Ask(f"MIN({_clamped(column, bounds)})")


def max(column: str, *, bounds: Bounds | None = None) -> Ask:  # noqa: A001
    """Return a value that only a few rows are above.

    >>> max("age")
    Ask(sql='MAX(age)')
    """
    return Ask(f"MAX({_clamped(column, bounds)})")


def histogram(column: str, *, bounds: Bounds, bins: int) -> Ask:
    """Count rows in bins of equal width between ``bounds``.

    >>> histogram("age", bounds=(0, 100), bins=10)
    Ask(sql='HISTOGRAM(age, 0, 100, 10)')
    """
    low, high = _ends(bounds)
    return Ask(f"HISTOGRAM({_text(column)}, {low}, {high}, {whole(bins, name='bins')})")


def _text(column: object) -> str:
    if not isinstance(column, str) or not column.strip():
        raise ParameterError("a column is named by a text, as in SQL.", parameter="column")
    return column


def _clamped(column: str, bounds: Bounds | None) -> str:
    if bounds is None:
        return _text(column)
    low, high = _ends(bounds)
    return f"CLAMP({_text(column)}, {low}, {high})"


def _ends(bounds: Bounds) -> tuple[str, str]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ParameterError("bounds are two numbers, (low, high).", parameter="bounds") from None
    start, end = exact(low, name="bounds"), exact(high, name="bounds")
    if start > end:
        raise ParameterError("bounds must be (low, high) with low <= high.", parameter="bounds")
    return _number(low), _number(high)


def _number(value: Number) -> str:
    """Write a number so that SQL reads the very same one, or the nearest double."""
    number = exact(value, name="bounds")
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
