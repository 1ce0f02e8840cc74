"""The accountants by name, side by side: what each says about one loss, and how long it takes.

:func:`discreet.accounting.epsilon` already gives the best that the library can prove. These are for
comparison: with a paper, with another library, or with what was once the state of the art. Each
returns a :class:`MethodResult`, whose epsilon is None, and whose note says why, where the method
does not apply.
"""

import math
from fractions import Fraction

from discreet._exact import Number, float_up
from discreet.accounting.comparison.divergences import moments, renyi, zcdp
from discreet.accounting.comparison.result import NOT_PURE, Found, MethodResult, timed
from discreet.accounting.comparison.stepwise import advanced, basic, optimal
from discreet.accounting.losses.certified import Parts, epsilon_upper, is_single
from discreet.accounting.losses.gaussian import GaussianLoss
from discreet.accounting.losses.loss import Loss

__all__ = ["best_method", "central_limit", "compare", "pld"]


def compare(loss: Loss, *, delta: Number) -> tuple[MethodResult, ...]:
    """Return what every method says about a loss.

    >>> from discreet.accounting import PureLoss
    >>> for result in compare(PureLoss(epsilon=0.01) * 10_000, delta=1e-5):
    ...     print(result.name, result.epsilon and round(result.epsilon, 3))
    basic 100.0
    advanced 5.804
    optimal 4.376
    zcdp 4.728
    renyi 4.727
    moments 5.301
    pld 4.376
    central_limit None
    """
    every = (basic, advanced, optimal, zcdp, renyi, moments, pld, central_limit)
    return tuple(method(loss, delta=delta) for method in every)


def pld(loss: Loss, *, delta: Number) -> MethodResult:
    """Compose privacy loss distributions: what :func:`discreet.accounting.epsilon` returns.

    Where a closed form exists (one mechanism, or Gaussians only) or plain addition is the best, it
    is used instead, and the note says so.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> round(pld(steps, delta=1e-5).epsilon, 4)
    0.9469
    """

    def find(_parts: Parts, allowed: Fraction) -> Found:
        epsilon = epsilon_upper.__wrapped__(loss, delta=allowed)
        return Found(epsilon, best_method(loss, epsilon=epsilon))

    return timed("pld", find, loss, delta=delta)


def best_method(loss: Loss, *, epsilon: float) -> str:
    """Say in words how the accountant came by an epsilon of this loss.

    >>> from discreet.accounting import GaussianLoss
    >>> best_method(GaussianLoss(noise_multiplier=1), epsilon=4.9)
    'closed form'
    """
    parts = loss.parts
    pure = loss.epsilon_pure
    if isinstance(pure, Fraction) and epsilon == float_up(pure):
        return "sum of pure epsilons" if loss.is_composed else "pure epsilon"
    if is_single(parts) or all(part.gaussian_multiplier is not None for part, _ in parts):
        return "closed form"
    return "privacy loss distribution"


def central_limit(loss: Loss, *, delta: Number) -> MethodResult:
    """Estimate epsilon by a central limit theorem, for Gaussians with and without sampling.

    NOT a bound: the truth is often larger. It is shown because papers and libraries quote it.

    Claim: none. As steps grow and the rate falls like one over their square root, the composition
    approaches one Gaussian of parameter mu, the root of the sum of rate^2 (exp(1/m^2) - 1), with
    m the noise multiplier [BDLS20].

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> guess = central_limit(steps, delta=1e-5)
    >>> round(guess.epsilon, 4), guess.is_bound  # the truth is above 0.9468
    (0.9424, False)
    """

    def find(parts: Parts, allowed: Fraction) -> Found:
        squares = [part.mu_squared for part, _ in parts]
        if any(square is None for square in squares):
            return Found(None, "it is for Gaussian noise, sampled or not")
        if allowed == 0:
            return Found(None, NOT_PURE)
        mu = math.sqrt(sum(n * (s or 0) for s, (_, n) in zip(squares, parts, strict=True)))
        guess = epsilon_upper(GaussianLoss(noise_multiplier=1 / mu), delta=allowed) if mu else 0.0
        return Found(guess, f"an estimate, not a bound; mu = {mu:.6g}")

    return timed("central_limit", find, loss, delta=delta, is_bound=False)
