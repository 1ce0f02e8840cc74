"""Norms and clipping factors in floating point, rounded so that no bound is ever exceeded.

``docs/proofs/clipping.md`` says why the slack is enough.
"""

import functools
import math
from fractions import Fraction

import torch
from torch import Tensor

from discreet._exact import Number, plain, positive, refusal

# Gradients are single precision, which ends at 2**-126 and 2**128. Between these limits neither a
# norm nor the quotient of two of them leaves its normal range.
SMALLEST, LARGEST = Fraction(2) ** -60, Fraction(2) ** 60


def bound(name: str, value: object) -> Number:
    """Return a norm as a plain number, if single precision can hold it comfortably."""
    number = positive(value, name=name)
    if not SMALLEST <= number <= LARGEST:
        raise refusal(name, "between 2**-60 and 2**60", value, "Rescale the loss.")
    return plain(value, name=name)


def root_up(value: Fraction) -> float:
    """Return a float that is not below the root of ``value``."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def keep_bound(owner: object, name: str) -> None:
    object.__setattr__(owner, name, bound(name, getattr(owner, name)))


def at_least_single(norms: Tensor) -> Tensor:
    """Return norms in single precision where they were in half: its slack would be visible."""
    return norms if norms.dtype == torch.float64 else norms.to(torch.float32)


def _slack(dtype: torch.dtype) -> float:
    """Return how far below C to aim: in single precision by four half-ulps.

    Three can be lost, by rounding the bound, the sum of norm and stability, and the quotient. The
    bounds themselves are computed in doubles, so there a few more can, and there is room to spare.
    """
    return 1 - 2.0**-22 if dtype == torch.float32 else 1 - 2.0**-40


def filled(bound: float, like: Tensor) -> Tensor:
    # A tensor, because number / tensor is reciprocal and product in torch: two roundings, of which
    # the first may underflow. Filled rather than copied, so that nothing waits for the device.
    return torch.full((), bound * _slack(like.dtype), dtype=like.dtype, device=like.device)


@functools.lru_cache(maxsize=16)
def row(bounds: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return bounds that differ, copied to the device once."""
    return torch.tensor([bound * _slack(dtype) for bound in bounds], dtype=dtype, device=device)


def shrinking(quotients: Tensor) -> Tensor:
    return normal(quotients.clamp(max=1))


def normal(factors: Tensor) -> Tensor:
    """Return the factors, with 0 for those that are NaN or so small that their rounding shows."""
    return torch.where(factors >= torch.finfo(factors.dtype).tiny, factors, 0.0)
