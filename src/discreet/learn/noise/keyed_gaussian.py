"""Rounded Gaussian noise as an exact function of a key and an element's index.

Each element has its own two infinite random bit strings, U and an angle, of which ChaCha20 gives
the first 64 bits; its noise is sigma * sqrt(-2 ln U) * cos or sin(2 pi angle), rounded to the
nearest integer. Doubles decide the rounding wherever the distance to the next rounding boundary
exceeds a proved error bound, the *window*; the few elements inside the window are decided with
more bits and more precision. So the result is the rounding of the real number, whoever computes it.

The GPU kernel does the same arithmetic; this is its description, and what it is compared with.
The argument in full is in ``docs/proofs/gradient_noise.md``.
"""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.learn.noise.chacha import block, blocks

__all__ = [
    "COSINE",
    "LANES",
    "LARGEST_SIGMA",
    "LOGARITHM",
    "PER_BLOCK",
    "PER_INVERSE",
    "PER_PREFIX",
    "PER_RADIUS",
    "SINE",
    "SLACK",
    "SQRT_HALF_BITS",
    "TWO_LN2",
    "exact_noise",
    "fast_noise",
    "keyed_noise",
]

LANES: Final = 128  # blocks that are computed side by side; part of the layout
PER_BLOCK: Final = 8  # noises that one block of 512 bits gives
LARGEST_SIGMA: Final = 2.0**30  # in steps; above, doubles would leave too many elements open

_QUARTER_PI: Final = Fraction(3141592653589793238462643383279502884197, 4 * 10**39)
_LN2: Final = Fraction(693147180559945309417232121458176568, 10**36)


def _terms(count: int, first: int) -> tuple[float, ...]:
    """Return (-1)**k x**(2 k + first) / (2 k + first)! at x = pi / 4, for k < count."""
    powers = range(first, 2 * count + first, 2)
    return tuple(float((-1) ** (n // 2) * _QUARTER_PI**n / math.factorial(n)) for n in powers)


# Taylor polynomials, whose remainders are known in closed form: sin(pi t / 4) = t * SINE(t**2) and
# cos(pi t / 4) = COSINE(t**2) for |t| <= 1; 2 ln m = s * LOGARITHM(s**2), s = (m - 1) / (m + 1).
SINE: Final = _terms(9, 1)
COSINE: Final = _terms(9, 0)
LOGARITHM: Final = tuple(4 / (2 * k + 1) for k in range(11))
TWO_LN2: Final = float(2 * _LN2)
SQRT_HALF_BITS: Final = int(np.float64(math.sqrt(0.5)).view(np.int64))

# The window, for sigma = 1: PER_RADIUS * r + (PER_INVERSE + PER_PREFIX * 2**-k) / r.
PER_RADIUS: Final = 10 * 2.0**-53
PER_INVERSE: Final = 2.01 * 2.0**-53
PER_PREFIX: Final = 3.0
SLACK: Final = 2.0**-50  # for the roundings of the comparison itself

Doubles = npt.NDArray[np.float64]


def keyed_noise(
    key: bytes, size: int, *, sigma: float, widen: float = 1.0
) -> npt.NDArray[np.int64]:
    """Return the noise of elements 0, ..., size - 1. ``widen`` > 1 sends more the exact way.

    Claim: the elements are independent real Gaussians of standard deviation ``sigma``, each rounded
    to the nearest integer, to anybody who cannot tell ChaCha20 under a random key from a random
    function; ``widen`` changes nothing but the time it takes.

    Why: ``docs/proofs/gradient_noise.md``.

    >>> keyed_noise(bytes(32), 5, sigma=100.0)
    array([ 58, 115, -49, 127, -31])
    """
    tiles = -(-size // (LANES * PER_BLOCK))
    words = blocks(key, np.arange(tiles * LANES, dtype=np.uint64), (0, 0))
    value, is_sure = fast_noise(words, sigma=sigma, widen=widen)
    by_element = (tiles, LANES, PER_BLOCK)
    noise = value.reshape(by_element).swapaxes(1, 2).ravel()[:size].astype(np.int64)
    is_sure = is_sure.reshape(by_element).swapaxes(1, 2).ravel()[:size]
    for i in np.flatnonzero(~is_sure):
        noise[i] = exact_noise(key, int(i), sigma=sigma)
    return noise


def fast_noise(
    words: npt.NDArray[np.uint32], *, sigma: float, widen: float = 1.0
) -> tuple[Doubles, npt.NDArray[np.bool_]]:
    """Turn blocks of 16 words into 8 noises each, and say which of these are surely right.

    >>> value, is_sure = fast_noise(np.full((1, 16), 7, dtype=np.uint32), sigma=1.0)
    >>> value.shape, bool(is_sure.all())
    ((1, 8), True)
    """
    halves = words.astype(np.uint64)
    pairs = halves[:, 0::2] | halves[:, 1::2] << np.uint64(32)
    radius, window = _radius(pairs[:, 0::2])
    cosine, sine = _circle(pairs[:, 1::2])
    reach = radius * sigma
    values = np.stack([reach * cosine, reach * sine], axis=-1)
    nearest = np.rint(values)
    window = window * (sigma * widen) + SLACK
    is_sure = np.abs(values - nearest) + window[..., None] <= 0.5
    return nearest.reshape(len(words), PER_BLOCK), is_sure.reshape(len(words), PER_BLOCK)


def _radius(u: npt.NDArray[np.uint64]) -> tuple[Doubles, Doubles]:
    """Return sqrt(-2 ln U) for a U in (u, u + 1) * 2**-64, and the window for sigma = 1."""
    bits = u.astype(np.float64).view(np.int64)
    k = (bits - SQRT_HALF_BITS) >> 52
    m = (bits - (k << 52)).view(np.float64)  # in [sqrt(1/2), sqrt(2)), and u is about m * 2**k
    s = (m - 1.0) / (m + 1.0)
    square = (64 - k) * TWO_LN2 - s * _polynomial(LOGARITHM, s * s)
    radius = np.sqrt(square)
    power = ((1023 - k) << 52).view(np.float64)  # 2**-k
    with np.errstate(divide="ignore", over="ignore"):  # an infinite window is as it should be
        inverse = (np.float32(1) / np.sqrt(square.astype(np.float32))).astype(np.float64)
        window = radius * PER_RADIUS + inverse * (PER_INVERSE + PER_PREFIX * power)
    return radius, window


def _circle(angle: npt.NDArray[np.uint64]) -> tuple[Doubles, Doubles]:
    """Return the cosine and the sine of 2 pi (angle + something in (0, 1)) * 2**-64."""
    turned = angle + np.uint64(1 << 61)  # the upper two bits now count quarter turns
    rest = (turned & np.uint64((1 << 62) - 1)).astype(np.int64) - (1 << 61)
    t = rest.astype(np.float64) * 2.0**-61
    square = t * t
    across, along = t * _polynomial(SINE, square), _polynomial(COSINE, square)
    is_odd = turned & np.uint64(1 << 62) != 0
    cosine, sine = np.where(is_odd, across, along), np.where(is_odd, along, across)
    top = np.uint64(1 << 63)
    cosine = (cosine.view(np.uint64) ^ (turned + np.uint64(1 << 62) & top)).view(np.float64)
    sine = (sine.view(np.uint64) ^ (turned & top)).view(np.float64)
    return cosine, sine


def _polynomial(coefficients: tuple[float, ...], x: Doubles) -> Doubles:
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


# The exact way --------------------------------------------------------------------------------


def exact_noise(key: bytes, index: int, *, sigma: float) -> int:
    """Return the noise of one element, with as many bits as it takes.

    The further bits of a pair come from blocks under nonces of its own, so both elements that
    share U and the angle agree on them, and the noise stays a function of the key and the index.

    >>> exact_noise(bytes(32), 0, sigma=100.0)
    58
    """
    tile, place = divmod(index, LANES * PER_BLOCK)
    j, lane = divmod(place, LANES)
    counter, pair = tile * LANES + lane, j // 2
    own = block(key, counter, (0, 0))[16 * pair : 16 * (pair + 1)]
    u, angle = (int.from_bytes(half, "little") for half in (own[:8], own[8:]))
    known = 64
    for more in range(1 << 32):
        low, high = _enclosure(u, angle, known, is_sine=bool(j % 2), sigma=Fraction(sigma))
        if low == high:
            return low
        extra = block(key, counter, (1 + pair, more))
        u = (u << 256) + int.from_bytes(extra[:32], "little")
        angle = (angle << 256) + int.from_bytes(extra[32:], "little")
        known += 256
    raise AssertionError("the random bits do not end")


def _enclosure(
    u: int, angle: int, known: int, *, is_sine: bool, sigma: Fraction
) -> tuple[int, int]:
    """Return the least and the largest rounded value given the first ``known`` bits of each."""
    from mpmath import libmp  # type: ignore[import-untyped, unused-ignore]  # slow to import

    if u == 0:
        return 0, 1  # no upper end yet
    precision = known + 64
    middle = libmp.from_man_exp(2 * u + 1, -known - 1)
    log = libmp.mpf_log(middle, precision, "n")
    radius = libmp.mpf_sqrt(libmp.mpf_shift(libmp.mpf_neg(log), 1), precision, "n")
    turn = libmp.from_man_exp(2 * angle + 1, -known)
    direction = libmp.mpf_cos_sin_pi(turn, precision, "n")[is_sine]
    r = _fraction(radius)
    value = sigma * r * _fraction(direction)
    # U within half a unit moves r by at most 1 / (u r), the angle's half unit moves the point by
    # at most pi r 2**-known; three functions, each right to a few units, are allowed 2**16 units.
    slack = Fraction(22, 7) / (1 << known) + Fraction(1 << 16, 1 << precision)
    window = sigma * (1 / (u * r) + r * slack)
    half = Fraction(1, 2)
    return math.floor(value - window + half), math.floor(value + window + half)


def _fraction(number: Any) -> Fraction:
    sign, mantissa, exponent, _ = number
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)
