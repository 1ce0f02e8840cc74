"""Candidates chosen by score, and quantiles."""

from typing import Any

from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.mechanisms import Exponential, NoisyMax, PermuteAndFlip, Quantile, Quantiles, TopK

__all__ = ["SELECTION"]

_CHOSEN = 100_000  # samples of what is drawn one by one
_SLOW = 50_000


def _selected(mechanism: Any, scores: list[int], n: int) -> list[int]:
    return [mechanism.select(scores) for _ in range(n)]


def _ranking(mechanism: TopK, scores: list[int], n: int) -> list[tuple[int, ...]]:
    return [tuple(mechanism.select(scores).tolist()) for _ in range(n)]


def _with_gap(mechanism: NoisyMax, scores: list[int], n: int) -> list[tuple[int, float]]:
    return [mechanism.select_with_gap(scores) for _ in range(n)]


def _gap(mechanism: NoisyMax, scores: list[int], n: int) -> list[float]:
    return [mechanism.select_with_gap(scores)[1] for _ in range(n)]


def _with_gaps(mechanism: TopK, scores: list[int], n: int) -> list[tuple[float, ...]]:
    found = (mechanism.select_with_gaps(scores) for _ in range(n))
    return [(*chosen.tolist(), *gaps.tolist()) for chosen, gaps in found]


def _quantile(mechanism: Quantile, values: list[int], n: int) -> list[float]:
    return [mechanism.release(values) for _ in range(n)]


def _quantiles(mechanism: Quantiles, values: list[int], n: int) -> list[tuple[float, ...]]:
    return [tuple(mechanism.release(values).tolist()) for _ in range(n)]


# The first candidate loses what all others win: nearly all of epsilon shows in how often it is
# chosen. Monotone scores can only fall together.
_OPPOSITE = ([1] + [0] * 15, [0] + [1] * 15)
_FALLING = ([1] + [0] * 15, [0] * 16)
# Few points lie below the records, so that what moves there leaves the others almost alone.
_MEDIANS = ([10] * 3, [10] * 3 + [100])
_REPLACED = ([10] * 3 + [0], [10] * 3 + [100])

SELECTION = (
    CatalogueEntry(
        name="Exponential, opposite",
        mechanism=Exponential(epsilon=1, sensitivity=1),
        release=_selected,
        pair=_OPPOSITE,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="Exponential, monotone",
        mechanism=Exponential(epsilon=1, sensitivity=1, monotone=True),
        release=_selected,
        pair=_FALLING,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="PermuteAndFlip, opposite",
        mechanism=PermuteAndFlip(epsilon=1, sensitivity=1),
        release=_selected,
        pair=_OPPOSITE,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="PermuteAndFlip, monotone",
        mechanism=PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True),
        release=_selected,
        pair=_FALLING,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="NoisyMax, Laplace",
        mechanism=NoisyMax(epsilon=1, sensitivity=1, noise="laplace"),
        release=_selected,
        pair=_OPPOSITE,
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="NoisyMax, Gumbel",
        mechanism=NoisyMax(epsilon=1, sensitivity=1, noise="gumbel"),
        release=_selected,
        pair=_OPPOSITE,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="NoisyMax, exponential",
        mechanism=NoisyMax(epsilon=1, sensitivity=1, noise="exponential"),
        release=_selected,
        pair=_OPPOSITE,
        samples=_CHOSEN,
    ),
    CatalogueEntry(
        name="NoisyMax with its gap",
        mechanism=NoisyMax(epsilon=1, sensitivity=1),
        release=_with_gap,
        pair=_OPPOSITE,
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="NoisyMax, gap's low bits",
        mechanism=NoisyMax(epsilon=1, sensitivity=1),
        release=_gap,
        pair=([0, 0], [1, 0]),
        samples=_SLOW,
        is_low_bits=True,
    ),
    CatalogueEntry(
        name="TopK, peeling",
        mechanism=TopK(k=2, epsilon=1, sensitivity=1),
        release=_ranking,
        pair=([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]),
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="TopK, one shot",
        mechanism=TopK(k=2, epsilon=1, sensitivity=1, method="one_shot"),
        release=_ranking,
        pair=([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]),
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="TopK with gaps",
        mechanism=TopK(k=2, epsilon=1, sensitivity=1, method="one_shot"),
        release=_with_gaps,
        pair=([1, 1, 0, 0], [0, 0, 1, 1]),
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="Quantile, add/remove",
        mechanism=Quantile(
            quantile=0.5, low=0, high=100, grid=1, epsilon=1, neighbours="add_remove"
        ),
        release=_quantile,
        pair=_MEDIANS,
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="Quantile, replace one",
        mechanism=Quantile(
            quantile=0.5, low=0, high=100, grid=1, epsilon=1, neighbours="replace_one"
        ),
        release=_quantile,
        pair=_REPLACED,
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="Quantile, empty or not",
        mechanism=Quantile(
            quantile=0.9, low=0, high=10, grid=1, epsilon=1, neighbours="add_remove"
        ),
        release=_quantile,
        pair=([], [10]),
        samples=_SLOW,
    ),
    CatalogueEntry(
        name="Quantiles, add/remove",
        mechanism=Quantiles(
            quantiles=[0.25, 0.5, 0.75],
            low=0,
            high=10,
            grid=1,
            epsilon=1,
            neighbours="add_remove",
        ),
        release=_quantiles,
        pair=([2] * 3, [2] * 3 + [10]),
        samples=20_000,
    ),
)
