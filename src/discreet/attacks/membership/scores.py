"""The attacks on models: each gives every example a score, larger where it was rather a member."""

from typing import Final

import numpy as np

from discreet._exact import Number, exact, refusal
from discreet.attacks.membership.observations import Bits, Floats, Observations
from discreet.errors import DataError

__all__ = ["lira_offline", "lira_online", "loss_threshold", "rmia", "shadow_models"]

_ENOUGH: Final = 32  # models from which an example gets a variance of its own
_LEAST: Final = 1e-12  # of a variance, for models that are trained without any chance
_ROUNDS: Final = 25  # of Newton's method, far more than it needs


def loss_threshold(seen: Observations) -> Floats:
    """Score by a small loss alone [YGFJ18]. Needs no shadow model.

    Confidence falls as the loss grows, so ordering by either is the same.

    >>> loss_threshold(Observations(included=[[True, False]], confidences=[[3, 1]]))
    array([3., 1.])
    """
    return seen.target


def shadow_models(seen: Observations) -> Floats:
    """Score by a classifier of members that is trained on the shadow models [SSSS17].

    One for each class where classes are known: a logistic regression on the confidence and its
    square, the part of a model's output that an attacker can always work out.

    >>> seen = Observations(included=[[True, False]] * 3, confidences=[[3, 1], [3, 0], [2, 1]])
    >>> member, other = shadow_models(seen)
    >>> bool(member > other)
    True
    """
    _need_shadows(seen)
    groups = np.zeros(seen.target.shape) if seen.classes is None else seen.classes
    scores = np.empty_like(seen.target)
    for group in np.unique(groups):
        of = groups == group
        known = seen.confidences[1:, of].ravel()
        centre, scale = known.mean(), known.std() or 1.0
        weights = _logistic(_features((known - centre) / scale), seen.included[1:, of].ravel())
        scores[of] = _features((seen.target[of] - centre) / scale) @ weights
    return scores


def lira_online(seen: Observations) -> Floats:
    """Score by the likelihood ratio of an example's confidence with it and without [CCNSTT22].

    Both are taken as normal. Their means are the example's own; so are the variances where at
    least 32 shadow models had it and 32 had not, otherwise all examples share one.

    >>> seen = Observations(
    ...     included=[[True, False]] + [[True, False], [False, True]] * 2,
    ...     confidences=[[5, 9], [5, 9], [1, 11], [6, 8], [2, 12]],
    ... )
    >>> lira_online(seen).round(1)
    array([12., -6.])
    """
    _need_shadows(seen)
    inside, outside = seen.included[1:], ~seen.included[1:]
    return _log_density(seen, inside) - _log_density(seen, outside)


def lira_offline(seen: Observations) -> Floats:
    """Score by how far a confidence lies above those of models without the example [CCNSTT22].

    Its shadow models can be trained before anybody knows whom to look for.

    >>> seen = Observations(
    ...     included=[[True, False]] + [[False, False]] * 2,
    ...     confidences=[[5, 9], [0, 8], [2, 10]],
    ... )
    >>> lira_offline(seen).round(2)
    array([2.83, 0.  ])
    """
    _need_shadows(seen)
    mean, variance = _normal(seen, ~seen.included[1:])
    return np.asarray((seen.target - mean) / np.sqrt(variance))


def rmia(seen: Observations, *, gamma: Number = 2) -> Floats:
    """Score by the share of other examples that an example's likelihood ratio beats [ZLS24].

    The ratio of an example is its probability under the attacked model over its mean under the
    shadow models, half with and half without it; it beats another one that is ``gamma`` times
    smaller.

    >>> seen = Observations(
    ...     included=[[True, False]] + [[True, False], [False, True]],
    ...     confidences=[[5, 0], [4, 0], [-3, 0]],
    ... )
    >>> rmia(seen, gamma=1)
    array([1. , 0.5])
    """
    _need_shadows(seen)
    if not (least := exact(gamma, name="gamma")) >= 1:
        raise refusal("gamma", "at least 1", gamma)
    chances = 1 / (1 + np.exp(-np.clip(seen.confidences, -500, 500)))
    inside = seen.included[1:]
    usual = (_means(chances[1:], inside) + _means(chances[1:], ~inside)) / 2
    ratios = chances[0] / usual
    beaten = np.searchsorted(np.sort(ratios), ratios / float(least), side="right")
    return np.asarray(beaten / len(ratios), dtype=np.float64)


def _need_shadows(seen: Observations) -> None:
    if len(seen.included) < 3:
        raise DataError("this attack needs at least two shadow models: train more.")


def _means(values: Floats, of: Bits) -> Floats:
    """Return the mean of each example over the models marked in ``of``."""
    counts = of.sum(axis=0)
    if not counts.all():
        raise DataError(
            "each example needs a shadow model with it and one without (online attacks), or one "
            "without (offline ones). Train more, or let observe(...) place the examples."
        )
    return np.asarray(np.where(of, values, 0).sum(axis=0) / counts)


def _normal(seen: Observations, of: Bits) -> tuple[Floats, Floats]:
    """Return the mean of each example over some shadow models, and a variance."""
    values = seen.confidences[1:]
    mean = _means(values, of)
    squares = np.where(of, (values - mean) ** 2, 0).sum(axis=0)
    free = of.sum(axis=0) - 1
    if not free.any():
        raise DataError(
            "LiRA needs two shadow models with an example, and two without: train more."
        )
    if free.min() + 1 >= _ENOUGH:
        variance = squares / free
    else:  # a variance of few numbers errs more than one that is shared
        variance = np.full(mean.shape, squares.sum() / free.sum())
    return mean, np.maximum(variance, _LEAST)


def _log_density(seen: Observations, of: Bits) -> Floats:
    mean, variance = _normal(seen, of)
    return np.asarray(-((seen.target - mean) ** 2 / variance + np.log(variance)) / 2)


def _features(values: Floats) -> Floats:
    return np.stack([np.ones_like(values), values, values**2], axis=1)


def _logistic(features: Floats, labels: Bits) -> Floats:
    """Fit a logistic regression by Newton's method, kept finite by a small penalty."""
    weights = np.zeros(features.shape[1])
    penalty = np.eye(features.shape[1])
    for _ in range(_ROUNDS):
        chances = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (labels - chances) - penalty @ weights
        curve = (features.T * (chances * (1 - chances))) @ features + penalty
        step = np.linalg.solve(curve, slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights
