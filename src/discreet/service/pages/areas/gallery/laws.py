"""The laws of noisy answers for two neighbouring inputs, and the band that epsilon allows."""

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np

from discreet.accounting import delta as delta_of
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from discreet.service.pages.areas.gallery.drawing import chosen, computed
from discreet.service.pages.page import PageCall

__all__ = ["laws"]

Noise: TypeAlias = Laplace | DiscreteLaplace | Gaussian | DiscreteGaussian

NOISES: Final = {
    "laplace": "Laplace",
    "discrete-laplace": "discrete Laplace",
    "gaussian": "Gaussian",
    "discrete-gaussian": "discrete Gaussian",
}
_WITHOUT, _WITH = 40, 41  # the true counts
_POINTS: Final = 241
_MOST_NUMBERS: Final = 61  # of whole ones that are shown; more could not be told apart
_NEARLY_ALL: Final = 1 - 1e-9


async def laws(call: PageCall) -> Mapping[str, Any]:
    """Show both laws, and how much each output tells the two inputs apart."""
    noise = chosen(call, "noise", tuple(NOISES), "laplace")
    epsilon = round(call.number("epsilon", 1.0, least=0.1, most=5), 2)
    digits = round(call.number("digits", 3, least=1, most=9))
    picture = await computed(partial(_picture, noise, epsilon, digits))
    return {
        "noise": noise,
        "noises": [{"name": name, "title": title} for name, title in NOISES.items()],
        "epsilon": epsilon,
        "digits": digits,
        "is_log": "log" in call.query,
        "factor": math.exp(epsilon),
        **picture,
    }


def _mechanism(noise: str, epsilon: float, delta: float) -> Noise:
    match noise:
        case "laplace":
            return Laplace.calibrated(epsilon=epsilon, sensitivity=1)
        case "discrete-laplace":
            return DiscreteLaplace.calibrated(epsilon=epsilon, sensitivity=1)
        case "gaussian":
            return Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=1)
        case _:
            return DiscreteGaussian.calibrated(
                epsilon=epsilon, delta=delta, sensitivity=1, dimension=1
            )


@lru_cache(maxsize=256)
def _picture(noise: str, epsilon: float, digits: int) -> dict[str, Any]:
    mechanism = _mechanism(noise, epsilon, 10.0**-digits)
    is_whole = isinstance(mechanism, DiscreteLaplace | DiscreteGaussian)
    reach = mechanism.error(confidence=0.999)
    xs, step = _outputs(reach, is_whole=is_whole)
    weight = mechanism.log_weight
    mass = _mass(mechanism, is_whole=is_whole)
    without = [math.exp(weight(x - _WITHOUT)) / mass for x in xs]
    present = [math.exp(weight(x - _WITH)) / mass for x in xs]
    most = 1.0 if is_whole else math.inf  # of a chance, and of a density
    high = [min(most, math.exp(epsilon) * p) for p in without]
    top = max(high)
    return {
        "is_whole": is_whole,
        "has_delta": isinstance(mechanism, Gaussian | DiscreteGaussian),
        "every": step,
        "outputs": xs,
        "without": without,
        "with": present,
        "band": {
            "low": [math.exp(-epsilon) * p for p in without],
            "high": high,
        },
        "span": [0, 1.05 * top],
        "span_log": [max(1e-12, min(*without, *present) / 2), 2 * top],
        # exactly, by the weights: the laws have the same mass
        "loss": [float(weight(x - _WITH) - weight(x - _WITHOUT)) for x in xs],
        "error": float(mechanism.error(confidence=0.95)),
        "deviation": mechanism.standard_deviation,
        "delta": delta_of(mechanism.loss, epsilon=epsilon),
    }


def _outputs(reach: float, *, is_whole: bool) -> tuple[list[Any], int]:
    """Return the outputs to show, all within reach of either input, and each how many-th."""
    low, high = _WITHOUT - math.ceil(reach), _WITH + math.ceil(reach)
    if not is_whole:
        return np.linspace(low, high, _POINTS).tolist(), 1
    step = -(-(high - low) // _MOST_NUMBERS)
    return list(range(_WITHOUT - (_WITHOUT - low) // step * step, high + 1, step)), step


def _mass(mechanism: Noise, *, is_whole: bool) -> float:
    """Return what the weights of all outputs sum to, of real ones by the trapezoid rule."""
    reach = mechanism.error(confidence=_NEARLY_ALL)
    if is_whole:
        end = math.ceil(reach)
        return math.fsum(math.exp(mechanism.log_weight(k)) for k in range(-end, end + 1))
    steps = np.linspace(-reach, reach, 4001).tolist()
    return math.fsum(math.exp(mechanism.log_weight(x)) for x in steps) * (2 * reach / 4000)
