"""The accountants by name, side by side: what each says about one loss, and how long it takes.

:func:`discreet.accounting.epsilon` already gives the best that the library can prove. These are for
comparison: with a paper, with another library, or with what was once the state of the art. Each
returns a :class:`MethodResult`, whose epsilon is None, and whose note says why, where the method
does not apply.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, final

from discreet._exact import Number, float_up, probability
from discreet._rounding import log_of
from discreet.accounting.comparison import theorems
from discreet.accounting.losses.certified import Parts, epsilon_upper, is_single
from discreet.accounting.losses.composition import compose
from discreet.accounting.losses.gaussian import GaussianLoss
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.losses.zcdp import ZCDPLoss
from discreet.accounting.renyi import best_epsilon

__all__ = [
    "MethodResult",
    "advanced",
    "basic",
    "best_method",
    "central_limit",
    "compare",
    "moments",
    "optimal",
    "pld",
    "renyi",
    "zcdp",
]

Steps = list[tuple[Fraction, Fraction, int]]

# How much of delta the steps get, the theorem the rest. Every choice is a proof; the best is kept.
_SHARES: Final = tuple(Fraction(n, 100) for n in (1, 10, 50, 90, 100))
_HIGHEST_MOMENT: Final = 32
_NOT_PURE: Final = "at delta = 0 it has nothing to say of steps that are not pure"
_NO_ROOM: Final = "the chance that a step reveals its input outright exceeds delta"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """What one accountant says; ``is_bound`` is False for what is only an estimate.

    >>> from discreet.accounting import PureLoss
    >>> basic(PureLoss(epsilon=1) * 3, delta=0).epsilon
    3.0
    """

    name: str
    epsilon: float | None
    seconds: float
    is_bound: bool
    note: str


class _Found(NamedTuple):
    epsilon: float | None
    note: str


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


def basic(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up the epsilons of all steps; steps that are not pure share delta equally.

    Claim: an upper bound, by [DR14, Theorem 3.16].

    >>> from discreet.accounting import GaussianLoss
    >>> round(basic(GaussianLoss(noise_multiplier=100) * 100, delta=1e-6).epsilon, 3)
    4.429
    """

    def find(parts: Parts, allowed: Fraction) -> _Found:
        steps = _steps(parts, allowed)
        if steps is None:
            return _Found(None, _NO_ROOM if allowed else _NOT_PURE)
        return _Found(float(theorems.basic(steps).epsilon), "the sum of the steps' epsilons")

    return _timed("basic", find, loss, delta)


def advanced(loss: Loss, *, delta: Number) -> MethodResult:
    """Apply advanced composition, with both of its terms.

    Claim: an upper bound: the textbook's [DR14, Theorem 3.20] for equal steps, and for different
    ones the sharper [KOV17, Theorem 3.5].

    >>> from discreet.accounting import PureLoss
    >>> round(advanced(PureLoss(epsilon=0.01) * 10_000, delta=1e-5).epsilon, 2)
    5.8
    """

    def one(steps: Steps, slack: Fraction) -> float:
        if slack <= 0:
            return math.inf
        if len(steps) > 1:
            return float(theorems.advanced_mixed(steps, slack=slack).epsilon)
        ((e, d, n),) = steps
        return float(theorems.advanced_classic(epsilon=e, delta=d, steps=n, slack=slack).epsilon)

    def find(parts: Parts, allowed: Fraction) -> _Found:
        note = "textbook formula" if len(parts) == 1 else "sharper formula for different steps"
        return _best_share(parts, allowed, one, note)

    return _timed("advanced", find, loss, delta)


def optimal(loss: Loss, *, delta: Number) -> MethodResult:
    """Apply the best theorem that knows nothing but each step's (epsilon, delta).

    Claim: an upper bound: [KOV17, Theorem 3.3] for equal steps, exact for pure and approximate
    ones; for different ones the lattice bound in the manner of [MV18].

    >>> from discreet.accounting import PureLoss
    >>> round(optimal(PureLoss(epsilon=0.01) * 10_000, delta=1e-5).epsilon, 5)
    4.37638
    """

    def find(parts: Parts, allowed: Fraction) -> _Found:
        def one(steps: Steps, _slack: Fraction) -> float:
            if len(steps) > 1:
                return theorems.optimal_mixed(steps, target_delta=allowed)
            ((e, d, n),) = steps
            return theorems.optimal(epsilon=e, delta=d, steps=n, target_delta=allowed)

        return _best_share(parts, allowed, one, "best for steps known by (epsilon, delta) alone")

    return _timed("optimal", find, loss, delta)


def zcdp(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up zCDP parameters and convert once.

    Claim: an upper bound, by [BS16, Lemma 1.7] and the conversion of [CKS20, Corollary 13].

    >>> from discreet.accounting import GaussianLoss
    >>> round(zcdp(GaussianLoss(noise_multiplier=1), delta=1e-6).epsilon, 3)
    5.222
    """

    def find(_parts: Parts, allowed: Fraction) -> _Found:
        rho, failure = loss.zcdp
        if not isinstance(rho, Fraction):
            return _Found(None, "no zCDP bound is known for one of the steps")
        if allowed <= failure and not (rho == failure == 0):
            return _Found(None, _NO_ROOM if allowed else _NOT_PURE)
        epsilon = epsilon_upper(ZCDPLoss(rho=rho), allowed - failure)
        return _Found(epsilon, f"rho = {float_up(rho):.6g}")

    return _timed("zcdp", find, loss, delta)


def renyi(loss: Loss, *, delta: Number) -> MethodResult:
    """Add up Renyi divergences and take the best order, whole or fractional.

    Claim: an upper bound; the divergences and the conversion are those of
    :mod:`discreet.accounting.renyi.divergence`.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> round(renyi(steps, delta=1e-5).epsilon, 4)
    1.0354
    """

    def find(parts: Parts, allowed: Fraction) -> _Found:
        curve, failure = _renyi(parts)
        if curve is None:
            return _Found(None, "no Renyi bound is known for one of the steps")
        if allowed <= failure:
            return _Found(None, _NO_ROOM if allowed else _NOT_PURE)
        return _Found(best_epsilon(curve, delta=allowed - failure), "best order")

    return _timed("renyi", find, loss, delta)


def moments(loss: Loss, *, delta: Number) -> MethodResult:
    """Run the classic moments accountant: whole moments up to 32 and Markov's inequality.

    Claim: an upper bound, by [ACGMMTZ16, Theorem 2]. The moment m is m times the Renyi divergence
    of order m + 1.

    >>> from discreet.accounting import GaussianLoss
    >>> step = GaussianLoss(noise_multiplier=4).sampled(rate=0.01)
    >>> [round(moments(step * n, delta=1e-5).epsilon, 2) for n in (10_000, 40_000)]
    [1.26, 2.58]
    """

    def find(parts: Parts, allowed: Fraction) -> _Found:
        curve, failure = _renyi(parts)
        if curve is None:
            return _Found(None, "no Renyi bound is known for one of the steps")
        left = allowed - failure
        if left <= 0:
            return _Found(None, _NO_ROOM if allowed else _NOT_PURE)
        logarithm = -log_of(left)
        costs = {m: curve(m + 1.0) + logarithm / m for m in range(1, _HIGHEST_MOMENT + 1)}
        best = min(costs, key=costs.__getitem__)
        return _Found(costs[best] * (1 + 1e-14), f"moment {best} of 1 to {_HIGHEST_MOMENT}")

    return _timed("moments", find, loss, delta)


def pld(loss: Loss, *, delta: Number) -> MethodResult:
    """Compose privacy loss distributions: what :func:`discreet.accounting.epsilon` returns.

    Where a closed form exists (one mechanism, or Gaussians only) or plain addition is the best, it
    is used instead, and the note says so.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> round(pld(steps, delta=1e-5).epsilon, 4)
    0.9469
    """

    def find(_parts: Parts, allowed: Fraction) -> _Found:
        epsilon = epsilon_upper.__wrapped__(loss, allowed)
        return _Found(epsilon, best_method(loss, epsilon=epsilon))

    return _timed("pld", find, loss, delta)


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

    def find(parts: Parts, allowed: Fraction) -> _Found:
        squares = [part.mu_squared for part, _ in parts]
        if any(square is None for square in squares):
            return _Found(None, "it is for Gaussian noise, sampled or not")
        if allowed == 0:
            return _Found(None, _NOT_PURE)
        mu = math.sqrt(sum(n * (s or 0) for s, (_, n) in zip(squares, parts, strict=True)))
        guess = epsilon_upper(GaussianLoss(noise_multiplier=1 / mu), allowed) if mu else 0.0
        return _Found(guess, f"an estimate, not a bound; mu = {mu:.6g}")

    return _timed("central_limit", find, loss, delta, is_bound=False)


def _timed(
    name: str,
    find: Callable[[Parts, Fraction], _Found],
    loss: Loss,
    delta: Number,
    *,
    is_bound: bool = True,
) -> MethodResult:
    allowed = probability(delta, name="delta", zero=True)
    parts = loss.parts
    start = time.perf_counter()
    epsilon, note = find(parts, allowed) if parts else _Found(0.0, "nothing was done")
    if epsilon is not None and not math.isfinite(epsilon):
        epsilon, note = None, "it finds no finite epsilon at this delta"
    seconds = time.perf_counter() - start
    return MethodResult(name=name, epsilon=epsilon, seconds=seconds, is_bound=is_bound, note=note)


def _renyi(parts: Parts) -> tuple[Curve | None, Fraction]:
    """Return the divergences of a composition, and the chance outside which they hold."""
    whole = compose(parts)
    return whole.renyi_curve(), whole.failure


def _best_share(
    parts: Parts, allowed: Fraction, one: Callable[[Steps, Fraction], float], note: str
) -> _Found:
    """Return the best that a theorem for (epsilon, delta) steps gives over ways to share delta."""
    if allowed == 0:
        return _Found(None, "at delta = 0 nothing beats the sum of pure epsilons")
    best = math.inf
    for share in _SHARES if any(_is_free(part) for part, _ in parts) else (Fraction(1),):
        steps = _steps(parts, allowed * share)
        if steps is None:
            continue
        slack = allowed - sum((d * n for _, d, n in steps), Fraction(0))
        best = min(best, one(steps, slack))
    return _Found(best, note) if best < math.inf else _Found(None, _NO_ROOM)


def _steps(parts: Parts, allowed: Fraction) -> Steps | None:
    """Return each part's (epsilon, delta, times), the deltas adding up to at most ``allowed``.

    Pure and approximate losses are taken at their word; all others share what is left equally.
    """
    floors = [part.least_delta for part, _ in parts]
    left = allowed - sum((f * n for f, (_, n) in zip(floors, parts, strict=True)), Fraction(0))
    takers = sum(n for part, n in parts if _is_free(part))
    if left < 0 or (takers and left == 0):
        return None
    steps: Steps = []
    for floor, (part, n) in zip(floors, parts, strict=True):
        stated, _ = part.approximate_dp
        delta = floor if isinstance(stated, Fraction) else floor + left / takers
        epsilon = float_up(stated) if isinstance(stated, Fraction) else epsilon_upper(part, delta)
        if not math.isfinite(epsilon):
            return None
        steps.append((Fraction(epsilon), delta, n))
    return steps


def _is_free(part: Loss) -> bool:
    """Whether the part trades delta for epsilon, so that a delta must be chosen for it."""
    return part.approximate_dp[0] == math.inf
