"""Noise added to numbers: Laplace and Gaussian, continuous and discrete."""

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.mechanisms import (
    ClassifierAccuracy,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    clip_norm,
    exact_sum,
    sum_sensitivity,
)

__all__ = ["ADDITIVE", "copies"]

# An array is released as one vector, whose noise is widened with its size for rounding to the grid.
# Parts keep that below a millionth, so that many releases have the law of a single one.
_PART = 1 << 14


def copies(mechanism: Any, value: object, n: int) -> npt.NDArray[Any]:
    """Release a number or a vector n times.

    >>> copies(DiscreteLaplace(sensitivity=1, scale=1), [3, 4], 5).shape
    (5, 2)
    """
    one = np.asarray(value)
    rows = max(1, _PART // max(1, one.size))
    sizes = (min(rows, n - start) for start in range(0, n, rows))
    return np.concatenate(
        [mechanism.release(np.broadcast_to(one, (size, *one.shape))) for size in sizes]
    )


def _accuracies(mechanism: ClassifierAccuracy, right: list[bool], n: int) -> list[float]:
    answers = np.array(right)
    return [mechanism.release(answers) for _ in range(n)]


def _sums(mechanism: DiscreteLaplace, records: list[float], n: int) -> npt.NDArray[Any]:
    return copies(mechanism, exact_sum(records, low=0, high=10, grid=0.25), n)


def _vector_sums(mechanism: Gaussian, rows: list[list[float]], n: int) -> npt.NDArray[Any]:
    return copies(mechanism, clip_norm(rows, bound=1, norm=2).sum(axis=0), n)


_LAPLACE = Laplace.calibrated(epsilon=1, sensitivity=1)
_GAUSSIAN = Gaussian.calibrated(epsilon=1, delta=0.01, sensitivity=1)
_RARE_GAUSSIAN = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
_INTEGERS = DiscreteLaplace.calibrated(epsilon=1, sensitivity=1)
_REPLACED = DiscreteLaplace.calibrated(epsilon=1, sensitivity=2)
_STEPS = sum_sensitivity(low=0, high=10, grid=0.25, neighbours="add_remove")

ADDITIVE = (
    CatalogueEntry(name="Laplace", mechanism=_LAPLACE, release=copies, pair=(0.0, 1.0)),
    CatalogueEntry(
        name="Laplace, one of 10 shifts",
        mechanism=_LAPLACE,
        release=copies,
        pair=([0.0] * 10, [1.0] + [0.0] * 9),
    ),
    CatalogueEntry(
        name="Laplace, all of 10 shift",
        mechanism=_LAPLACE,
        release=copies,
        pair=([0.0] * 10, [0.1] * 10),
    ),
    CatalogueEntry(
        name="Laplace, low bits at 0",
        mechanism=_LAPLACE,
        release=copies,
        pair=(0.0, 1.0),
        is_low_bits=True,
    ),
    CatalogueEntry(
        name="Laplace, low bits at 1000",
        mechanism=_LAPLACE,
        release=copies,
        pair=(1000.1, 1001.1),
        is_low_bits=True,
    ),
    CatalogueEntry(
        name="Gaussian", mechanism=_GAUSSIAN, release=copies, pair=(0.0, 1.0), delta=0.01
    ),
    CatalogueEntry(
        name="Gaussian, small delta",
        mechanism=_RARE_GAUSSIAN,
        release=copies,
        pair=(0.0, 1.0),
        delta=1e-5,
    ),
    CatalogueEntry(
        name="Gaussian, all of 16 shift",
        mechanism=_GAUSSIAN,
        release=copies,
        pair=([0.0] * 16, [0.25] * 16),
        delta=0.01,
    ),
    CatalogueEntry(
        name="Gaussian, low bits",
        mechanism=_GAUSSIAN,
        release=copies,
        pair=(0.0, 1.0),
        delta=0.01,
        is_low_bits=True,
    ),
    CatalogueEntry(name="DiscreteLaplace", mechanism=_INTEGERS, release=copies, pair=(0, 1)),
    CatalogueEntry(
        name="DiscreteLaplace, opposite",
        mechanism=_REPLACED,
        release=copies,
        pair=([1, 0, 3], [0, 1, 3]),
    ),
    CatalogueEntry(
        name="DiscreteGaussian",
        mechanism=DiscreteGaussian.calibrated(epsilon=1, delta=0.01, sensitivity=1),
        release=copies,
        pair=(0, 1),
        delta=0.01,
    ),
    CatalogueEntry(
        name="DiscreteGaussian, 4 shift",
        mechanism=DiscreteGaussian.calibrated(epsilon=1, delta=0.01, sensitivity=2),
        release=copies,
        pair=([0] * 4, [1] * 4),
        delta=0.01,
    ),
    CatalogueEntry(
        name="ClassifierAccuracy, at 1",
        mechanism=ClassifierAccuracy(epsilon=1, examples=5),
        release=_accuracies,
        pair=([True] * 5, [True] * 4 + [False]),
    ),
    CatalogueEntry(
        name="ClassifierAccuracy, at 2/5",
        mechanism=ClassifierAccuracy(epsilon=1, examples=5),
        release=_accuracies,
        pair=([True, True] + [False] * 3, [True] + [False] * 4),
    ),
    CatalogueEntry(
        name="sum, a huge record",
        mechanism=DiscreteLaplace.calibrated(epsilon=1, sensitivity=_STEPS),
        release=_sums,
        pair=([3.3, 0.1], [3.3, 0.1, 1e300]),
    ),
    CatalogueEntry(
        name="vector sum, a huge row",
        mechanism=_GAUSSIAN,
        release=_vector_sums,
        pair=([[3.0, 4.0]], [[3.0, 4.0], [1e200, -1e200]]),
        delta=0.01,
    ),
)
