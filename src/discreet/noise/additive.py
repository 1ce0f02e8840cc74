"""Noise to add: discrete Laplace, discrete Gaussian, geometric, and rounded continuous noise.

Every function draws exactly from the law it names, for any positive rational scale. A float scale
stands for the binary fraction it is. A single draw may be taken around an integer ``centre``: it is
the sum of both, and while ``abs(centre) < 2**60`` the work done depends on nothing but that sum,
where ``centre + draw`` would show in nanoseconds how many digits each of the two has.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy.typing as npt

from discreet._exact import Number, positive, show
from discreet.errors import ParameterError
from discreet.noise.rejection import RejectionSampler, Shape
from discreet.noise.shapes import Size, shape_of
from discreet.noise.source import SYSTEM, Source

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "rounded_gaussian",
    "rounded_laplace",
]

Array = npt.NDArray[Any]
_NARROWEST = Fraction(1, 8)


def _sampler(shape: Shape, scale: Number, smooth: bool, one_sided: bool) -> RejectionSampler:
    try:
        return _made(shape, scale, smooth, one_sided)
    except TypeError:  # nothing that can be a key of the cache, such as a list
        positive(scale, name="sigma" if shape == "gaussian" else "scale")
        raise


# typed: True == 1 == 1.0 share a hash, and a boolean must reach the check and be refused.
@lru_cache(maxsize=64, typed=True)
def _made(shape: Shape, scale: Number, smooth: bool, one_sided: bool) -> RejectionSampler:
    name = "sigma" if shape == "gaussian" else "scale"
    exact = positive(scale, name=name)
    if smooth and exact < _NARROWEST:
        raise ParameterError(
            f"{name} must be at least 1/8 for rounded noise, got {show(scale)}: below that nearly "
            "every draw rounds to 0. Use a finer grid, or discrete noise.",
            parameter=name,
        )
    return RejectionSampler(shape, exact, one_sided=one_sided, smooth=smooth)


def _draw(
    sampler: RejectionSampler, size: Size | None, source: Source, centre: int = 0
) -> int | Array:
    if size is None:
        return sampler.around(centre, source=source)
    if centre:
        raise ParameterError(
            "centre must be left out for arrays. Add it to them.", parameter="centre"
        )
    shape = shape_of(size)
    return sampler.draw(math.prod(shape), source=source).reshape(shape)


@overload
def discrete_laplace(
    scale: Number, size: None = None, *, centre: int = ..., source: Source = ...
) -> int: ...
@overload
def discrete_laplace(scale: Number, size: Size, *, source: Source = ...) -> Array: ...
def discrete_laplace(
    scale: Number, size: Size | None = None, *, centre: int = 0, source: Source = SYSTEM
) -> int | Array:
    """Draw integers k with probability proportional to exp(-abs(k) / scale).

    >>> discrete_laplace(100, size=(2, 3)).shape
    (2, 3)
    >>> isinstance(discrete_laplace(Fraction(1, 3)), int)
    True
    """
    return _draw(_sampler("laplace", scale, False, False), size, source, centre)


@overload
def discrete_gaussian(
    sigma: Number, size: None = None, *, centre: int = ..., source: Source = ...
) -> int: ...
@overload
def discrete_gaussian(sigma: Number, size: Size, *, source: Source = ...) -> Array: ...
def discrete_gaussian(
    sigma: Number, size: Size | None = None, *, centre: int = 0, source: Source = SYSTEM
) -> int | Array:
    """Draw integers k with probability proportional to exp(-k**2 / (2 sigma**2)).

    >>> discrete_gaussian(4.5, size=3).dtype
    dtype('int64')
    """
    return _draw(_sampler("gaussian", sigma, False, False), size, source, centre)


@overload
def geometric(
    scale: Number, size: None = None, *, centre: int = ..., source: Source = ...
) -> int: ...
@overload
def geometric(scale: Number, size: Size, *, source: Source = ...) -> Array: ...
def geometric(
    scale: Number, size: Size | None = None, *, centre: int = 0, source: Source = SYSTEM
) -> int | Array:
    """Draw integers k >= 0 with probability proportional to exp(-k / scale).

    This is the one-sided discrete exponential law.

    >>> bool((geometric(10, size=1000) >= 0).all())
    True
    """
    return _draw(_sampler("laplace", scale, False, True), size, source, centre)


@overload
def rounded_laplace(
    scale: Number, size: None = None, *, centre: int = ..., source: Source = ...
) -> int: ...
@overload
def rounded_laplace(scale: Number, size: Size, *, source: Source = ...) -> Array: ...
def rounded_laplace(
    scale: Number, size: Size | None = None, *, centre: int = 0, source: Source = SYSTEM
) -> int | Array:
    """Draw a real Laplace variable of this scale, rounded to the nearest integer.

    Adding it to an integer is adding real noise and rounding: post-processing, so it inherits the
    real mechanism's guarantee without any loss.

    >>> rounded_laplace(2**40, size=3).shape
    (3,)
    """
    return _draw(_sampler("laplace", scale, True, False), size, source, centre)


@overload
def rounded_gaussian(
    sigma: Number, size: None = None, *, centre: int = ..., source: Source = ...
) -> int: ...
@overload
def rounded_gaussian(sigma: Number, size: Size, *, source: Source = ...) -> Array: ...
def rounded_gaussian(
    sigma: Number, size: Size | None = None, *, centre: int = 0, source: Source = SYSTEM
) -> int | Array:
    """Draw a real Gaussian variable of this standard deviation, rounded to the nearest integer.

    >>> rounded_gaussian(2**40, size=3).shape
    (3,)
    """
    return _draw(_sampler("gaussian", sigma, True, False), size, source, centre)
