"""Which strings explain the bits that cohorts show? Least squares, with standard errors."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError
from discreet.local.estimates.support import Support
from discreet.local.strings.readings import Readings
from discreet.local.strings.string_estimate import StringEstimate

__all__ = ["CohortCounts", "decode"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CohortCounts:
    """Hold how many ``devices`` each cohort has, and how often each of its bits is reported 1."""

    devices: Ints
    ones: Ints
    hashes: int
    bit: Support

    @property
    def n(self) -> int:
        """How many reports there are."""
        return int(self.devices.sum())

    @property
    def set_bits(self) -> Floats:
        """How many devices set each bit before coins turned it, estimated without bias."""
        expected = self.devices[:, None] * float(self.bit.miss)
        return np.asarray((self.ones - expected) / float(self.bit.contrast))

    @property
    def variance(self) -> float:
        """The variance that one device's coin adds to such an estimate."""
        miss = self.bit.miss
        return float(miss * (1 - miss) / self.bit.contrast**2)


def decode(counted: CohortCounts, filters: Floats, values: tuple[bytes, ...]) -> StringEstimate:
    """Estimate the counts of strings whose Bloom filters are ``filters[cohort, bit, string]``.

    A column for strings that are no candidates goes with them; it sets every bit alike, which is
    what strings do on average over the hash functions.

    Claim: ``unbiased`` has no bias over hash functions, cohorts and coins; ``counts``, with what is
    known added, that no count is below 0, have a smaller squared error under the weights of the
    fit. ``standard_error`` is that of ``unbiased`` and has three parts: the coins', how holders
    happened to divide over cohorts, and what strings without a candidate do to the fit, judged by
    its residuals.

    Why: with as many devices in each cohort as came, a cohort's bits are on average the filters'
    mixture; rows are weighted by their coins' variance, so that least squares are the best
    linear unbiased estimate (Gauss and Markov), and a projection onto a convex set that holds the
    truth comes nearer to it.
    """
    present = counted.devices > 0
    devices = counted.devices[present].astype(np.float64)
    cohorts, bits, strings = len(devices), filters.shape[1], filters.shape[2]
    if counted.n == 0:
        raise DataError("reports must hold at least one report, got none.")
    if strings + 1 >= cohorts * bits:
        raise _too_many()
    others = np.full((cohorts, bits, 1), 1 - (1 - 1 / bits) ** counted.hashes)
    columns = np.concatenate([filters[present], others], axis=2)
    # Rows in units of their standard deviation, but for the coin's constant.
    design = (columns * np.sqrt(devices)[:, None, None] / counted.n).reshape(-1, strings + 1)
    shown = (counted.set_bits[present] / np.sqrt(devices)[:, None]).reshape(-1)
    counts, unbiased, inverse = _solve(design, shown)
    divided, leftover = _divided(columns, devices, inverse, counts)
    rest = shown - design @ unbiased
    unexplained = (float(rest @ rest) - leftover) / (len(shown) - strings - 1)
    coins = max(counted.variance, unexplained) * np.diag(inverse)
    error = np.sqrt(coins + divided)[:strings]
    return StringEstimate(
        values=values,
        n=counted.n,
        counts=counts[:strings],
        readings=Readings(
            estimates=unbiased[:strings],
            standard_error=error,
            null_error=error,
            reach=_reach(columns, inverse, counted)[:strings],
        ),
        tested=max(1, strings),
    )


def _solve(design: Floats, shown: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the solution that is not negative, the free one, and the inverse of the squares."""
    from scipy.linalg import lapack, solve_triangular
    from scipy.optimize import nnls

    squares = design.T @ design
    scale = np.sqrt(np.diag(squares))
    upper, failed = lapack.dpotrf(squares / np.outer(scale, scale))
    if failed or np.diag(upper).min() < 1e-6:
        raise _too_many()
    upper = np.triu(upper) * scale
    right = solve_triangular(upper, design.T @ shown, trans="T")
    root = solve_triangular(upper, np.eye(len(upper)))
    counts, _ = nnls(upper, right, maxiter=30 * len(upper))
    return counts, root @ right, root @ root.T


def _divided(
    columns: Floats, devices: Floats, inverse: Floats, counts: Floats
) -> tuple[Floats, float]:
    """Return what the division of holders over cohorts adds to the variances and the residuals.

    Why: a holder in cohort c moves the estimates by the fit's weights for c times the filter there,
    and is there with chance devices[c] / n. What of the filter the fit does not follow is left
    over; the filter's mean over cohorts it follows all the way.
    """
    n = devices.sum()
    mean = np.zeros((len(inverse), len(inverse) - 1))
    square = np.zeros_like(mean)
    leftover = 0.0
    for here, column in zip(devices, columns, strict=True):
        pulled = column.T @ column[:, :-1] / n
        moved = inverse @ pulled
        mean += here / n * moved
        square += here / n * moved**2
        missed = (column[:, :-1] ** 2).sum(axis=0) / here - (pulled * moved).sum(axis=0)
        leftover += float(here / n * missed @ counts[:-1])
    return np.asarray((square - mean**2).clip(0) @ counts[:-1]), leftover


def _reach(columns: Floats, inverse: Floats, counted: CohortCounts) -> Floats:
    """Return how far one report moves each estimate at most: by all its bits, the same way."""
    weights = (np.abs(inverse @ column.T).sum(axis=1) for column in columns)
    most = np.max(np.stack(list(weights)), axis=0) / counted.n
    return np.asarray(most * float(counted.bit.hit / counted.bit.contrast))


def _too_many() -> ParameterError:
    return ParameterError(
        "candidates must be fewer than cohorts times bits, and no two alike in every cohort; else "
        "their counts cannot be told apart. Ask for fewer, or collect with more cohorts.",
        parameter="candidates",
    )
