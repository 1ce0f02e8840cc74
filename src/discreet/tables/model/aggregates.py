"""Every aggregate in one table: its names, what it follows from, what is known of its values.

An aggregate that is made of others is one more :class:`Rewrite` here, and nothing else. One that
has cells and an estimator of its own is an :class:`AggregateSpec`, a name in :data:`AggregateKind`
and a function in ``algorithms/estimates.py``.
"""

from dataclasses import dataclass
from typing import Final, Literal, final

__all__ = ["AGGREGATES", "CELLS", "SPECS", "AggregateKind", "AggregateSpec", "CellsKind", "Rewrite"]

AggregateKind = Literal[
    "count",  # COUNT(*)
    "count_values",  # COUNT(x)
    "count_units",  # COUNT(DISTINCT unit)
    "count_distinct",  # COUNT(DISTINCT x)
    "sum",
    "sum_distinct",  # SUM(DISTINCT x)
    "mean",
    "variance",
    "deviation",
    "covariance",
    "correlation",
    "quantile",
    "minimum",
    "maximum",
]

CellsKind = Literal[
    "rows", "units", "present", "sum", "total", "linear", "quadratic", "moments"
]  # fmt: skip
"""What a row adds to: see :class:`discreet.tables.model.statements.Cells`."""

CELLS: Final[dict[CellsKind, int]] = {
    "rows": 1, "units": 1, "present": 1, "sum": 1, "total": 1, "linear": 2, "quadratic": 3,
    "moments": 9,
}  # fmt: skip
"""How many cells there are of each kind, for rows that have a value."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec:
    """One kind of aggregate, which is released in a way of its own.

    ``names`` are those in SQL, the usual one first; where ``names`` divide by n - 1,
    ``population_names`` divide by n. ``text`` is how people write it, around its arguments.

    It is released in one of four ways. As a number of what it ``counts``; as a sum of the distinct
    values that it ``adds``; from ``cells``, of which these are the fewest that it follows from; or
    as one value that it ``draws``.

    ``range_power`` tells the error of a ratio: the noise of a row, times the range of the values to
    this power, divided by the number of rows. None: only the data would tell it.
    ``sign`` tells which values are possible: as those of the column are, never negative, or any.

    >>> SPECS["variance"].names, SPECS["variance"].cells, SPECS["variance"].sign
    (('VARIANCE', 'VAR'), 'quadratic', 'never_negative')
    """

    kind: AggregateKind
    names: tuple[str, ...]
    text: str
    population_names: tuple[str, ...] = ()
    counts: Literal["rows", "values", "units", "distinct"] | None = None
    adds: Literal["distinct"] | None = None
    cells: CellsKind | None = None
    draws: Literal["quantile", "minimum", "maximum"] | None = None
    range_power: int | None = None
    sign: Literal["as_values", "never_negative", "any"] = "any"

    @property
    def parameters(self) -> tuple[str, ...]:
        """What examples call its arguments."""
        return ("x", "y") if self.cells == "moments" else ("x",)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """An aggregate that is an expression over others: SQL in its ``parameters``, x and y mostly.

    Everything else follows: prices from the aggregates in it, and error bars by moving their noise
    through the expression, as for any expression that people type.

    >>> Rewrite(names=("RANGE",), sql="MAX(x) - MIN(x)").text
    'RANGE({})'
    """

    names: tuple[str, ...]
    sql: str
    parameters: tuple[str, ...] = ("x",)

    @property
    def text(self) -> str:
        """How people write it, around its arguments."""
        return f"{self.names[0]}({{}})"


AGGREGATES: Final[tuple[AggregateSpec | Rewrite, ...]] = (
    AggregateSpec(
        kind="count", names=("COUNT",), text="COUNT(*)", counts="rows", sign="never_negative"
    ),
    AggregateSpec(
        kind="count_values", names=("COUNT",), text="COUNT({})",
        counts="values", cells="present", sign="never_negative",
    ),
    AggregateSpec(
        kind="count_units", names=("COUNT",), text="COUNT(DISTINCT unit)",
        counts="units", sign="never_negative",
    ),
    AggregateSpec(
        kind="count_distinct", names=("COUNT",), text="COUNT(DISTINCT {})",
        counts="distinct", sign="never_negative",
    ),
    AggregateSpec(
        kind="sum_distinct", names=("SUM_DISTINCT",), text="SUM(DISTINCT {})", adds="distinct",
        sign="as_values",
    ),
    AggregateSpec(kind="sum", names=("SUM",), text="SUM({})", cells="sum", sign="as_values"),
    AggregateSpec(
        kind="mean", names=("AVG", "MEAN"), text="AVG({})",
        cells="linear", range_power=1, sign="as_values",
    ),
    AggregateSpec(
        kind="variance", names=("VARIANCE", "VAR"), population_names=("VAR_POP", "VARP"),
        text="VARIANCE({})", cells="quadratic", range_power=2, sign="never_negative",
    ),
    AggregateSpec(
        kind="deviation", names=("STDDEV", "STDDEV_SAMP", "STD"),
        population_names=("STDDEV_POP", "STDEVP"),
        text="STDDEV({})", cells="quadratic", sign="never_negative",
    ),
    AggregateSpec(
        kind="minimum", names=("MIN",), text="MIN({})", draws="minimum", sign="as_values"
    ),
    AggregateSpec(
        kind="maximum", names=("MAX",), text="MAX({})", draws="maximum", sign="as_values"
    ),
    Rewrite(names=("MEDIAN", "APPROX_MEDIAN"), sql="QUANTILE(x, 0.5)"),
    Rewrite(
        names=("COUNT_IF", "COUNTIF"), sql="COUNT(CASE WHEN condition THEN 1 END)",
        parameters=("condition",),
    ),
    Rewrite(
        names=("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT", "HLL", "UNIQ"),
        sql="COUNT(DISTINCT x)",
    ),
    Rewrite(
        names=("APPROX_PERCENTILE", "PERCENTILE_APPROX", "PERCENTILE"),
        sql="QUANTILE(x, share)", parameters=("x", "share"),
    ),
    AggregateSpec(
        kind="quantile",
        names=("QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"),
        text="QUANTILE({})", draws="quantile", sign="as_values",
    ),
    AggregateSpec(kind="correlation", names=("CORR",), text="CORR({})", cells="moments"),
    AggregateSpec(
        kind="covariance", names=("COVAR_SAMP",), population_names=("COVAR_POP",),
        text="COVAR({})", cells="moments", range_power=1,
    ),
    Rewrite(names=("COVAR",), sql="COVAR_SAMP(x, y)", parameters=("x", "y")),
    # Of a line through points (x, y), rows that have both; SQL writes y first.
    Rewrite(
        names=("REGR_SLOPE",), parameters=("y", "x"),
        sql="COVAR_POP(y, x) / VAR_POP(CASE WHEN y IS NOT NULL THEN x END)",
    ),
    Rewrite(names=("REGR_R2",), parameters=("y", "x"), sql="CORR(y, x) * CORR(y, x)"),
    Rewrite(
        names=("REGR_COUNT",), parameters=("y", "x"),
        sql="COUNT(CASE WHEN y IS NOT NULL AND x IS NOT NULL THEN 1 END)",
    ),
    Rewrite(
        names=("REGR_AVGX",), parameters=("y", "x"), sql="AVG(CASE WHEN y IS NOT NULL THEN x END)"
    ),
    Rewrite(
        names=("REGR_AVGY",), parameters=("y", "x"), sql="AVG(CASE WHEN x IS NOT NULL THEN y END)"
    ),
    Rewrite(
        names=("REGR_INTERCEPT",), parameters=("y", "x"),
        sql="REGR_AVGY(y, x) - REGR_SLOPE(y, x) * REGR_AVGX(y, x)",
    ),
    Rewrite(
        names=("REGR_SXX",), parameters=("y", "x"),
        sql="REGR_COUNT(y, x) * VAR_POP(CASE WHEN y IS NOT NULL THEN x END)",
    ),
    Rewrite(names=("REGR_SYY",), parameters=("y", "x"), sql="REGR_SXX(x, y)"),
    Rewrite(
        names=("REGR_SXY",), parameters=("y", "x"), sql="REGR_COUNT(y, x) * COVAR_POP(y, x)"
    ),
    # Of a sample, from the means of powers; the bars tell how much of it is left of the noise.
    Rewrite(
        names=("SKEWNESS", "SKEW"),
        sql="SQRT(COUNT(x) * (COUNT(x) - 1)) / (COUNT(x) - 2) * (AVG(x * x * x)"
        " - 3 * AVG(x) * VAR_POP(x) - AVG(x) * AVG(x) * AVG(x)) / POWER(VAR_POP(x), 1.5)",
    ),
    Rewrite(
        names=("KURTOSIS",),
        sql="(COUNT(x) - 1) / ((COUNT(x) - 2) * (COUNT(x) - 3)) * ((COUNT(x) + 1)"
        " * (AVG(x * x * x * x) - 4 * AVG(x) * AVG(x * x * x) + 6 * AVG(x) * AVG(x) * VAR_POP(x)"
        " + 3 * AVG(x) * AVG(x) * AVG(x) * AVG(x)) / (VAR_POP(x) * VAR_POP(x))"
        " - 3 * (COUNT(x) - 1))",
    ),
)  # fmt: skip
"""All aggregates, in the order in which refusals list them."""

SPECS: Final[dict[AggregateKind, AggregateSpec]] = {
    one.kind: one for one in AGGREGATES if isinstance(one, AggregateSpec)
}
