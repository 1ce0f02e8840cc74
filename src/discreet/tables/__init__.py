"""Protected tables: private SQL and dataframe queries, priced before they run."""

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
from discreet.tables.declarations.column import DeclaredColumn
from discreet.tables.declarations.declaration import Declaration, DeclaredTable
from discreet.tables.declarations.reading import load
from discreet.tables.engines import DuckDBEngine
from discreet.tables.model.bounds import Groups, Norm, Totals
from discreet.tables.model.catalog import Column, ForeignKey, column_kind
from discreet.tables.model.quotes import Expected, Quote
from discreet.tables.model.resources import Resources
from discreet.tables.opening import open_tables, protect
from discreet.tables.pricing.offer import Offer, OfferFields
from discreet.tables.protected import Protected
from discreet.tables.questions import Question
from discreet.tables.release.watch import Alert, Rise, Watch
from discreet.tables.release.workload import Workload
from discreet.tables.results.card import write_card
from discreet.tables.results.charges import asked_by_charge
from discreet.tables.results.consistent import consistent
from discreet.tables.results.files import check_excel
from discreet.tables.results.quotes import read_quote, write_quote
from discreet.tables.results.registry import registry_entry
from discreet.tables.results.result import Result

__all__ = [
    "Alert",
    "Ask",
    "Column",
    "Declaration",
    "DeclaredColumn",
    "DeclaredTable",
    "DuckDBEngine",
    "Expected",
    "ForeignKey",
    "Groups",
    "Norm",
    "Offer",
    "OfferFields",
    "Protected",
    "Question",
    "Quote",
    "Resources",
    "Result",
    "Rise",
    "Totals",
    "Watch",
    "Workload",
    "asked_by_charge",
    "check_excel",
    "column_kind",
    "consistent",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "load",
    "max",
    "mean",
    "median",
    "min",
    "open_tables",
    "protect",
    "quantile",
    "read_quote",
    "registry_entry",
    "stddev",
    "sum",
    "variance",
    "write_card",
    "write_quote",
]
