"""Accountants that add up divergences: zCDP, Renyi, and the classic moments."""

from fractions import Fraction
from typing import Final

from discreet._exact import Number, float_up
from discreet._rounding import log_of
from discreet.accounting.comparison.result import NO_ROOM, NOT_PURE, Found, MethodResult, timed
from discreet.accounting.losses.certified import Parts, epsilon_upper
from discreet.accounting.losses.composition import compose
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.losses.zcdp import ZCDPLoss
from discreet.accounting.renyi import best_epsilon

__all__ = ["moments", "renyi", "zcdp"]

_HIGHEST_MOMENT: Final = 32


def zcdp(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up zCDP parameters and convert once.

    Claim: an upper bound, by [BS16, Lemma 1.7] and the conversion of [CKS20, Corollary 13].

    >>> from discreet.accounting import GaussianLoss
    >>> round(zcdp(GaussianLoss(noise_multiplier=1), delta=1e-6).epsilon, 3)
    5.222
    """

    def find(_parts: Parts, allowed: Fraction) -> Found:
        rho, failure = loss.zcdp
        if not isinstance(rho, Fraction):
            return Found(None, "no zCDP bound is known for one of the steps")
        if allowed <= failure and not (rho == failure == 0):
            return Found(None, NO_ROOM if allowed else NOT_PURE)
        epsilon = epsilon_upper(ZCDPLoss(rho=rho), delta=allowed - failure)
        return Found(epsilon, f"rho = {float_up(rho):.6g}")

    return timed("zcdp", find, loss, delta=delta)


def renyi(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up Renyi divergences and take the best order, whole or fractional.

    Claim: an upper bound; the divergences and the conversion are those of
    :mod:`discreet.accounting.renyi`.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> round(renyi(steps, delta=1e-5).epsilon, 4)
    1.0354
    """

    def find(parts: Parts, allowed: Fraction) -> Found:
        curve, failure = _renyi(parts)
        if curve is None:
            return Found(None, "no Renyi bound is known for one of the steps")
        if allowed <= failure:
            return Found(None, NO_ROOM if allowed else NOT_PURE)
        return Found(best_epsilon(curve, delta=allowed - failure), "best order")

    return timed("renyi", find, loss, delta=delta)


def moments(loss: Loss, *, delta: Number) -> MethodResult:
    """Run the classic moments accountant: whole moments up to 32 and Markov's inequality.

    Claim: an upper bound, by [ACGMMTZ16, Theorem 2]. The moment m is m times the Renyi divergence
    of order m + 1.

    >>> from discreet.accounting import GaussianLoss
    >>> step = GaussianLoss(noise_multiplier=4).sampled(rate=0.01)
    >>> [round(moments(step * n, delta=1e-5).epsilon, 2) for n in (10_000, 40_000)]
    [1.26, 2.58]
    """

    def find(parts: Parts, allowed: Fraction) -> Found:
        curve, failure = _renyi(parts)
        if curve is None:
            return Found(None, "no Renyi bound is known for one of the steps")
        left = allowed - failure
        if left <= 0:
            return Found(None, NO_ROOM if allowed else NOT_PURE)
        logarithm = -log_of(left)
        costs = {m: curve(m + 1.0) + logarithm / m for m in range(1, _HIGHEST_MOMENT + 1)}
        best = min(costs, key=costs.__getitem__)
        return Found(costs[best] * (1 + 1e-14), f"moment {best} of 1 to {_HIGHEST_MOMENT}")

    return timed("moments", find, loss, delta=delta)


def _renyi(parts: Parts) -> tuple[Curve | None, Fraction]:
    """Return the divergences of a composition, and the chance outside which they hold."""
    whole = compose(parts)
    return whole.renyi_curve(), whole.failure
