"""Counts by key: histograms, and which keys may be shown at all."""

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.catalogue.additive import copies
from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.mechanisms import Histogram, PartitionSelection, StabilityHistogram

__all__ = ["COUNTS"]

Shown = tuple[tuple[str, int], ...]


def _kept(mechanism: PartitionSelection, users: list[int], n: int) -> npt.NDArray[Any]:
    """Decide about the same partitions n times; each is decided by itself."""
    return mechanism.select(np.tile(users, (n, 1)))


def _shown(mechanism: StabilityHistogram, counts: dict[str, int], n: int) -> list[Shown]:
    """Return keys and counts as they come, order included."""
    return [tuple(mechanism.release(counts).items()) for _ in range(n)]


def _side_by_side(mechanism: StabilityHistogram, count: int, n: int) -> npt.NDArray[np.int64]:
    """Release n lone keys in one histogram, whose noises are independent; -1 for one not shown."""
    noisy = np.full(n, -1, dtype=np.int64)
    keys, counts = mechanism.release_arrays(np.arange(n), np.full(n, count))
    noisy[keys] = counts
    return noisy


_CELLS = Histogram.calibrated(epsilon=1, delta=0, l0=1, linf=1)
_MANY_CELLS = Histogram.calibrated(epsilon=1, delta=0.01, l0=16, linf=1)
_PARTITIONS = PartitionSelection(epsilon=1, delta=0.01, l0=1)
_KEYS = StabilityHistogram(epsilon=1, delta=0.01, l0=1, linf=1)

COUNTS = (
    CatalogueEntry(
        name="Histogram, one of 4 cells",
        mechanism=_CELLS,
        release=copies,
        pair=([0, 7, 0, 1], [0, 8, 0, 1]),
    ),
    CatalogueEntry(
        name="Histogram, empty or not",
        mechanism=_CELLS,
        release=copies,
        pair=([0, 0], [0, 1]),
    ),
    CatalogueEntry(
        name="Histogram, 16 cells shift",
        mechanism=_MANY_CELLS,
        release=copies,
        pair=([0] * 16, [1] * 16),
        delta=0.01,
    ),
    CatalogueEntry(
        name="PartitionSelection, lone key",
        mechanism=_PARTITIONS,
        release=_kept,
        pair=([0], [1]),
        delta=0.01,
    ),
    CatalogueEntry(
        name="PartitionSelection, at 4",
        mechanism=_PARTITIONS,
        release=_kept,
        pair=([3], [4]),
        delta=0.01,
    ),
    CatalogueEntry(
        name="PartitionSelection, two keys",
        mechanism=PartitionSelection(epsilon=1, delta=0.02, l0=2),
        release=_kept,
        pair=([4, 5], [5, 6]),
        delta=0.02,
    ),
    CatalogueEntry(
        name="StabilityHistogram, lone key",
        mechanism=_KEYS,
        release=_side_by_side,
        pair=(0, 1),
        delta=0.01,
    ),
    CatalogueEntry(
        name="StabilityHistogram, at 5",
        mechanism=_KEYS,
        release=_side_by_side,
        pair=(5, 6),
        delta=0.01,
    ),
    CatalogueEntry(
        name="StabilityHistogram, order",
        mechanism=_KEYS,
        release=_shown,
        pair=({"b": 5, "a": 6}, {"c": 1, "b": 5, "a": 6}),
        delta=0.01,
        samples=40_000,
    ),
)
