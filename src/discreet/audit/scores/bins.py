"""Cut a feature into bins, so that all events on it can be counted at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.scores.features import Values

__all__ = ["Binning", "Counts", "fit_bins"]

Counts: TypeAlias = NDArray[np.int64]

_ATOM = 4  # a value seen so often among continuous ones is an outcome of its own


@final
@dataclass(frozen=True, slots=True)
class Binning:
    """Half-open bins up to each edge, one beyond the last, and one for what is missing or new."""

    edges: Values
    is_ordered: bool
    is_exact: bool  # every bin but the last two holds a single value

    def __len__(self) -> int:
        return len(self.edges) + (2 if self.is_ordered else 1)

    def index(self, values: Values) -> Counts:
        """Return the bin of each value."""
        at = np.searchsorted(self.edges, values, side="left")
        if self.is_ordered:
            return np.where(np.isnan(values), len(self.edges) + 1, at)
        inside = np.minimum(at, len(self.edges) - 1)
        return np.where(self.edges[inside] == values, inside, len(self.edges))

    def counts(self, values: Values) -> Counts:
        """Return how many values each bin holds."""
        return np.bincount(self.index(values), minlength=len(self)).astype(np.int64)


def fit_bins(values: Values, *, is_ordered: bool, bins: int = 300) -> Binning:
    """Return bins for values such as these: single values where they are few, else quantiles."""
    if not is_ordered:
        return Binning(np.unique(values), is_ordered=False, is_exact=True)
    values = np.sort(values[~np.isnan(values)])
    unique, counts = np.unique(values, return_counts=True)
    if len(unique) <= bins or len(unique) == 0:
        return Binning(unique.astype(np.float64), is_ordered=True, is_exact=True)
    atoms = unique[counts >= max(_ATOM, len(values) // 4000)]
    if len(atoms) > bins:
        atoms = atoms[:0]
    quantiles = values[spread(len(values), bins // 3)]
    edges = np.concatenate([quantiles, atoms, np.nextafter(atoms, -np.inf)])
    return Binning(np.unique(edges.astype(np.float64)), is_ordered=True, is_exact=False)


def spread(length: int, places: int) -> Sequence[int] | Counts:
    """Return indices into ``length`` places: dense at both ends, where the rare events are."""
    geometric = np.geomspace(1, length, places) - 1
    even = np.linspace(0, length - 1, places)
    found = np.concatenate([geometric, length - 1 - geometric, even])
    return np.unique(np.clip(np.rint(found), 0, length - 1).astype(np.int64))
