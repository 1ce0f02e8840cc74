"""Scores for vectors: linear and quadratic discriminants."""

import numpy as np

from discreet.audit.outputs import Reader, ReadOutputs
from discreet.audit.scores.features import Feature, Values
from discreet.audit.scores.learned import Sides

__all__ = ["linear_score", "quadratic_scores"]

_FULL = 300  # coordinates up to which covariances are estimated
_QUADRATIC = 50
_RIDGE = 1e-6


def linear_score(reader: Reader, known: Sides) -> Feature | None:
    """Return Fisher's discriminant: the best score for Gaussians of one covariance."""
    first, second = (_matrix(side, reader) for side in known)
    if first.shape[1] == 0:
        return None
    apart = second.mean(axis=0) - first.mean(axis=0)
    variance = (first.var(axis=0) + second.var(axis=0)) / 2
    if len(apart) > _FULL:
        weights = apart / np.where(variance > 0, variance, np.inf)
    else:
        covariance = (_covariance(first) + _covariance(second)) / 2
        weights = np.linalg.solve(covariance + _ridge(variance), apart)
    if not np.isfinite(weights).all() or not weights.any():
        return None
    weights = weights / np.abs(weights).max()
    return Feature(
        name=f"a weighted sum of {len(apart)} entries",
        values=lambda reading: _matrix(reading, reader) @ weights,
    )


def quadratic_scores(reader: Reader, known: Sides) -> list[Feature]:
    """Return the discriminant of Gaussians with different covariances."""
    first, second = (_matrix(side, reader) for side in known)
    if not 1 < first.shape[1] <= _QUADRATIC:
        return []
    models = []
    for side in (first, second):
        inverse = np.linalg.inv(_covariance(side) + _ridge(side.var(axis=0)))
        models.append((side.mean(axis=0), inverse))
    if not all(np.isfinite(inverse).all() for _, inverse in models):
        return []

    def score(reading: ReadOutputs) -> Values:
        x = _matrix(reading, reader)
        far = [
            np.einsum("ij,jk,ik->i", x - m, inverse, x - m, optimize=True) for m, inverse in models
        ]
        return np.asarray(far[0] - far[1])

    return [Feature(name=f"a quadratic score of {first.shape[1]} entries", values=score)]


def _matrix(reading: ReadOutputs, reader: Reader) -> Values:
    x = reading.numbers[:, reader.items]
    return x if np.isfinite(x).all() else np.nan_to_num(x, nan=0.0, posinf=1e12, neginf=-1e12)


def _covariance(x: Values) -> Values:
    return np.atleast_2d(np.cov(x, rowvar=False))


def _ridge(variance: Values) -> Values:
    return np.diag(_RIDGE * variance + (variance == 0) * 1.0 + 1e-300)
