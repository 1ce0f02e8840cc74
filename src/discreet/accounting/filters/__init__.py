"""Adaptive composition: what a loss costs, how far sums may go, and filters that keep them.

A ledger counts by the same rules with a state of its own, so it takes its words from here.
"""

from discreet.accounting.filters.filter import Filter, FilterQuote
from discreet.accounting.filters.rules import (
    PRICING,
    FilterKind,
    FilterRules,
    FilterSums,
    Scarce,
)

__all__ = ["PRICING", "Filter", "FilterKind", "FilterQuote", "FilterRules", "FilterSums", "Scarce"]
