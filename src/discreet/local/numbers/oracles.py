"""The frequency response that others are built on, and what weights on values make of a report."""

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.local.estimates.means import mean_and_error
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse, hadamard_transform

__all__ = ["Oracle", "best_oracle", "coins_of_sets", "readings", "weighted_share"]

Floats = npt.NDArray[np.float64]
Oracle = DirectResponse | HadamardResponse


def best_oracle(*, domain: int, epsilon: Number) -> Oracle:
    """Return the response with the smaller error for rare values.

    >>> type(best_oracle(domain=4, epsilon=1)).__name__
    'DirectResponse'
    >>> type(best_oracle(domain=400, epsilon=1)).__name__
    'HadamardResponse'
    """
    direct = DirectResponse(domain=domain, epsilon=epsilon)
    hadamard = HadamardResponse(domain=domain, epsilon=epsilon)
    errors = [oracle.support.variance(n=1, count=0) for oracle in (direct, hadamard)]
    return direct if errors[0] <= errors[1] else hadamard


def readings(oracle: Oracle, weights: Floats) -> Floats:
    """Return for each output a number whose expectation is the weight of the device's value.

    Why: a report supports its own value with chance hit and another with chance miss, so the total
    weight that it supports has the mean miss sum(weights) + (hit - miss) weight.

    >>> oracle = DirectResponse(domain=2, epsilon=1)
    >>> np.round(readings(oracle, np.array([0.0, 1.0])), 3)
    array([-0.582,  1.582])
    """
    if isinstance(oracle, DirectResponse):
        supported = weights
    else:
        padded = np.zeros(oracle.size)
        padded[: weights.size] = weights
        signed = hadamard_transform(padded)
        supported = (weights.sum() + np.stack([signed, -signed], axis=1).ravel()) / 2
    support = oracle.support
    centred = supported - float(support.miss) * weights.sum()
    return np.asarray(centred / float(support.contrast))


def weighted_share(
    oracle: Oracle, codes: npt.NDArray[np.int64], weights: Floats
) -> tuple[float, float]:
    """Return the devices' mean weight, without bias, and its standard error."""
    variance = oracle.support.variance(n=1, count=0) * float(weights @ weights)
    return mean_and_error(readings(oracle, weights)[codes], variance=variance)


def coins_of_sets(
    oracle: Oracle, *, n: int, held: Floats, of_set: Floats, size: int
) -> tuple[Floats, Floats]:
    """Return the variance of the count of a set of values, and its covariance with one value's.

    The set has ``size`` values. ``held`` of the ``n`` devices have the one value, ``of_set`` any of
    the set.

    Why: a direct report supports at most one of the values. Two values' supports by a Hadamard
    report do not correlate, as its rows are orthogonal and each supports half of all outputs.
    """
    hit, miss = float(oracle.support.hit), float(oracle.support.miss)
    if isinstance(oracle, DirectResponse):
        inside, outside = hit + (size - 1) * miss, size * miss
        of_all = of_set * inside * (1 - inside) + (n - of_set) * outside * (1 - outside)
        both = (held * hit + (of_set - held) * miss) * (1 - inside)
        both = both + (n - of_set) * miss * (1 - outside)
    else:
        spread, rest = hit * (1 - hit), miss * (1 - miss)
        of_all = of_set * (spread + (size - 1) * rest) + (n - of_set) * size * rest
        both = held * spread + (n - held) * rest
    return of_all / float(oracle.support.contrast) ** 2, both / float(oracle.support.contrast) ** 2
