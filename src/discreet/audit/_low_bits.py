"""Audit the last bits of floating-point answers."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet._exact import Number
from discreet.audit._mechanism import mechanism
from discreet.audit._outputs import collect
from discreet.audit._result import Audit
from discreet.errors import DataError

__all__ = ["low_bits"]

T = TypeVar("T")

_ZERO = 2000  # zero is a multiple of every power of two
_NOT_FINITE = 2001


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
    """Audit ``fn`` through the position of the lowest set bit of its floating-point outputs.

    The output is replaced by the largest k such that it is a multiple of 2^k, and
    :func:`mechanism` audits that. Whoever adds floating-point noise to a value gives away the value
    in these bits [Mir12]: 0 + noise keeps all the bits of a small noise, 1 + noise cannot, so
    outputs appear that only one of the two inputs can give. Noise on a fixed grid has nothing of
    the kind to show.

    Claim: that of :func:`mechanism`, because the position of a bit is post-processing.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> def textbook(value, n):
    ...     return value + rng.laplace(scale=1, size=n)
    >>> found = low_bits(textbook, pair=(0.0, 1.0), epsilon=1, delta=0, batch=True)
    >>> found.passed, found.epsilon_lower > 7
    (False, True)
    """

    def lowest(value: T, n: int) -> NDArray[np.int64]:
        return _lowest_set_bit(collect(fn, value, n, batch=batch))

    return mechanism(
        lowest,
        pair=pair,
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        confidence=confidence,
        batch=True,
    )


def _lowest_set_bit(outputs: Any) -> NDArray[np.int64]:
    """Return the exponent of the lowest set bit of each float."""
    try:
        values = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise DataError(
            "low_bits needs one number per release. Wrap fn so that it returns a float."
        )
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)  # exact: doubles have 53 bits
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    position = np.where(whole == 0, _ZERO, exponent.astype(np.int64) - 53 + lowest)
    return np.where(finite, position, _NOT_FINITE).astype(np.int64)
