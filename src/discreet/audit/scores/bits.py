"""Features of floating-point numbers: their last bits, and what a textbook sampler can reach."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.outputs import ReadOutputs
from discreet.audit.scores.features import Feature, Values

__all__ = ["bit_features", "lowest_set_bit"]

_ZERO = 2000  # zero is a multiple of every power of two
_NOT_FINITE = 2001
_MINUS_ZERO = 2002  # 0 and -0 are equal, but print differently
_GRAIN = 2.0**-52  # textbook Laplace noise is the logarithm of a multiple of this, or of its half
_REACHED = 0.99
_NEARBY = range(-2, 3)  # the exponential errs by as much


def bit_features(
    known: tuple[ReadOutputs, ReadOutputs], centres: Sequence[float], scales: Sequence[float]
) -> list[Feature]:
    """Return features of the bits of a number, also after subtracting either input.

    ``centres`` are the inputs where they are numbers, ``scales`` those of noise worth suspecting.
    A scale from which the known outputs are not reached is dropped: other noise was added.
    """
    found = [_lowest(0.0, "output")]
    for place, centre in zip(("first", "second"), centres, strict=False):
        found.append(_lowest(centre, f"(output - {place} input)"))
    if len(centres) == 2:
        found += [_reachable(centres, scale) for scale in scales if _fits(known, centres, scale)]
    return found


def lowest_set_bit(values: Any) -> NDArray[np.int64]:
    """Return the exponent of the lowest set bit of each float.

    >>> lowest_set_bit(np.array([6.0, 0.75]))
    array([ 1, -2])
    """
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)  # exact: doubles have 53 bits
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    zero = np.where(np.signbit(values), _MINUS_ZERO, _ZERO)
    position = np.where(whole == 0, zero, exponent.astype(np.int64) - 53 + lowest)
    return np.where(finite, position, _NOT_FINITE).astype(np.int64)


def _lowest(centre: float, name: str) -> Feature:
    def values(reading: ReadOutputs) -> Values:
        with np.errstate(invalid="ignore"):
            return lowest_set_bit(reading.numbers[:, 0] - centre).astype(np.float64)

    return Feature(name=f"the lowest set bit of {name}", values=values, is_part=True)


def _fits(known: tuple[ReadOutputs, ReadOutputs], centres: Sequence[float], scale: float) -> bool:
    shares = [
        _is_reached(side.numbers[:, 0], centre, scale).mean()
        for side, centre in zip(known, centres, strict=True)
    ]
    return bool(min(shares) > _REACHED)


def _reachable(centres: Sequence[float], scale: float) -> Feature:
    """Which of the two inputs could have given the output by textbook Laplace noise.

    The noise is scale log(k 2^-52) with either sign, for a whole number k, so far from an input
    most floats cannot be its output [Mir12].
    """

    def values(reading: ReadOutputs) -> Values:
        numbers = reading.numbers[:, 0]
        one, two = (_is_reached(numbers, centre, scale) for centre in centres)
        return one + 2 * two

    def label(code: int) -> object:
        return ("neither input", "the first input only", "the second input only", "both")[code]

    name = f"the inputs from which Laplace noise of scale {scale:.6g} reaches the output"
    return Feature(name=name, values=values, is_ordered=False, label=label)


def _is_reached(numbers: Values, centre: float, scale: float) -> NDArray[np.int64]:
    with np.errstate(all="ignore"):
        noise = numbers - centre
        grain = np.where(noise > 0, _GRAIN / 2, _GRAIN)
        nearest = np.rint(np.exp(-np.abs(noise) / scale) / grain)
        reached = np.zeros(len(numbers), bool)
        for step in _NEARBY:
            size = -scale * np.log((nearest + step) * grain)
            # Logarithms of different makers differ in their last bit.
            for near in (size, np.nextafter(size, 0), np.nextafter(size, np.inf)):
                reached |= centre + np.copysign(near, noise) == numbers
    return reached.astype(np.int64)
