"""Protected tables: private SQL and dataframe queries, priced before they run.

>>> protect.__name__
'protect'
"""

from discreet.tables.aggregates import (
    Ask,
    correlation,
    count,
    count_distinct,
    covariance,
    histogram,
    max,  # noqa: A004
    mean,
    median,
    min,  # noqa: A004
    quantile,
    stddev,
    sum,  # noqa: A004
    variance,
)
from discreet.tables.bounds import Groups, Norm
from discreet.tables.protected import Protected, open_tables, protect
from discreet.tables.questions import Question
from discreet.tables.quotes import Expected, Quote
from discreet.tables.results import Result

__all__ = [
    "Ask",
    "Expected",
    "Groups",
    "Norm",
    "Protected",
    "Question",
    "Quote",
    "Result",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "open_tables",
    "protect",
    "quantile",
    "stddev",
    "sum",
    "variance",
]
