"""Audit the last bits of floating-point answers."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet._exact import Number
from discreet.audit._examination import Proposal, claim, learning, require_pair, settle, study
from discreet.audit._result import Audit
from discreet.audit.outputs import Raised, Reader, collect
from discreet.audit.scores import Feature, Sides, bit_features
from discreet.errors import DataError

__all__ = ["low_bits"]

T = TypeVar("T")


def low_bits(
    fn: Callable[..., object],
    *,
    pair: tuple[T, T],
    epsilon: Number,
    delta: Number,
    samples: int = 100_000,
    confidence: Number = 0.999,
    batch: bool = False,
) -> Audit:
    """Audit ``fn`` through the last bits of its floating-point outputs.

    Whoever adds floating-point noise to a value gives away the value in these bits [Mir12]:
    0 + noise keeps all the bits of a small noise, 1 + noise cannot; and far from either input most
    floats are no sum of it and a logarithm of a random multiple of 2^-52. So outputs appear that
    only one of the two inputs can give. Looked at are the lowest set bit of the output and of its
    difference from either input, and which of the inputs could have given it. Noise on a fixed grid
    has nothing of the kind to show.

    Claim: that of :func:`mechanism`, because what is looked at is post-processing.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> def textbook(value, n):
    ...     return value + rng.laplace(scale=1, size=n)
    >>> found = low_bits(textbook, pair=(10.0, 11.0), epsilon=1, delta=0, batch=True)
    >>> found.passed, found.epsilon_lower > 6
    (False, True)
    """
    claimed = claim(epsilon=epsilon, delta=delta, confidence=confidence, samples=samples)
    require_pair(pair)
    outputs = collect(fn, pair, claimed.samples, batch=batch)
    first, second = (_floats(side) for side in outputs)
    studied = learning(claimed.samples)
    look = _bits_of(pair, float(epsilon))
    found = study((first[:studied], second[:studied]), pair, claimed, propose=look)
    return settle(found, (first[studied:], second[studied:]), claimed)


def _bits_of(pair: tuple[object, object], epsilon: float) -> Proposal:
    """Return a proposal of the features of bits."""
    numbers = [float(value) for value in pair if isinstance(value, Real)]

    def look(reader: Reader, known: Sides, pair: tuple[object, object]) -> list[Feature]:
        if len(numbers) < 2:
            return bit_features(known, [], [])
        distance = abs(numbers[1] - numbers[0])
        seen = known[0].numbers[:, 0] - numbers[0]
        # The mean of absolute Laplace noise is its scale, which people choose in round figures.
        mean = float(np.abs(seen[np.isfinite(seen)]).mean()) if np.isfinite(seen).any() else 1.0
        guesses = {1.0, distance, float(f"{mean:.1g}")}
        if mean > 0:  # the second digit is not sure
            digit = 10.0 ** (math.floor(math.log10(mean)) - 1)
            guesses |= {float(f"{mean + step * digit:.2g}") for step in (-1, 0, 1)}
        if epsilon > 0:
            guesses |= {1 / epsilon, distance / epsilon}
        scales = sorted(guess for guess in guesses if guess > 0 and math.isfinite(guess))
        return bit_features(known, numbers, scales)

    return look


def _floats(outputs: Any) -> NDArray[np.float64]:
    """Return one float for each output, NaN for a failure."""
    if isinstance(outputs, list):
        outputs = [math.nan if isinstance(output, Raised) else output for output in outputs]
    try:
        values = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise DataError(
            "low_bits needs one number per release. Wrap fn so that it returns a float."
        )
    return values
