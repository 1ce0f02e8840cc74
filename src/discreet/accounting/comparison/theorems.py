"""Composition theorems for mechanisms known only by their (epsilon, delta).

Every function takes numbers and returns a certified upper bound: floats are rounded towards more
loss, and where a search ends, the bound at its end was itself evaluated. All but :func:`basic` hold
for parameters fixed in advance; the mechanisms themselves may be chosen adaptively. Proofs and the
analysis of rounding are in ``docs/proofs/composition_theorems.md``.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet._exact import Number, float_up, nonnegative, positive, probability, whole
from discreet._rounding import above
from discreet.accounting.arithmetic.binomials import log_pmf, window
from discreet.accounting.arithmetic.search import smallest_float
from discreet.accounting.comparison.response_lattice import Lattice
from discreet.accounting.renyi.orders import log_chance
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

__all__ = [
    "advanced",
    "advanced_classic",
    "advanced_mixed",
    "basic",
    "optimal",
    "optimal_delta",
    "optimal_mixed",
    "split",
]

Part = tuple[Number, Number] | tuple[Number, Number, int]

# Relative error allowed to a handful of elementary operations on doubles; each is off by at most a
# few units of 1.1e-16, and no formula below has more than twenty of them in a row.
_ROUNDING = 1e-14
LARGEST = 2**500  # epsilon that floats can be computed with
_MOST_STEPS = 10**11  # the window then has some ten million values
_DEPTH = 700.0  # mass outside a binomial window is below exp(-700), 1e-304


class Theorem(Protocol):
    """A composition theorem for equal steps, such as :func:`advanced`."""

    def __call__(self, *, epsilon: Number, steps: int, slack: Number) -> Guarantee:
        """Return the guarantee of ``steps`` epsilon-DP mechanisms."""
        ...


def basic(parts: Iterable[Part]) -> Guarantee:
    """Add up epsilons and deltas; each part is (epsilon, delta) or (epsilon, delta, count).

    Claim: mechanisms that are (e_i, d_i)-DP are together (sum e_i, sum d_i)-DP, for the
    neighbouring relation that they share, even if parameters are chosen adaptively.

    Why: [DR14, Theorem 3.16]. Sums are exact and rounded up once.

    >>> basic([(0.01, 0, 10_000)])
    Guarantee(epsilon=100.00000000000001, delta=0.0)
    """
    checked = _checked(parts)
    return _guarantee(
        sum((e * n for e, _, n in checked), Fraction(0)),
        sum((d * n for _, d, n in checked), Fraction(0)),
    )


def advanced(*, epsilon: Number, steps: int, slack: Number, delta: Number = 0) -> Guarantee:
    """Return the advanced composition of equal steps, with both of its terms.

    Claim: ``steps`` mechanisms, each (epsilon, delta)-DP, are together (e, d)-DP with e the least
    of steps * epsilon, m + s sqrt(2 log(1/slack)) and m + s sqrt(2 log(exp(1) + s/slack)), where
    m = steps * epsilon * tanh(epsilon/2) and s = sqrt(steps) * epsilon, and with
    d = 1 - (1 - slack)(1 - delta)^steps. Where the first is the least, no slack is spent.

    Why: [KOV17, Theorem 3.4]. The mean m of the loss is that of randomized response; the textbook
    bound, :func:`advanced_classic`, has about twice as much.

    >>> advanced(epsilon=0.01, steps=10_000, slack=1e-5)
    Guarantee(epsilon=5.29852..., delta=1e-05)
    """
    return advanced_mixed([(epsilon, delta, steps)], slack=slack)


def advanced_mixed(parts: Iterable[Part], *, slack: Number) -> Guarantee:
    """Return the advanced composition of different steps.

    Claim: as for :func:`advanced`, with m = sum of e_i tanh(e_i/2), s = sqrt(sum of e_i^2) and
    d = 1 - (1 - slack) product of (1 - d_i).

    Why: [KOV17, Theorem 3.5].

    >>> advanced_mixed([(0.01, 0, 5_000), (0.02, 0, 1_000)], slack=1e-5).epsilon
    4.9918...
    """
    checked = _checked(parts)
    spare = probability(slack, name="slack")
    mean = math.fsum(n * float(e) * math.tanh(float(e) / 2) for e, _, n in checked)
    spread = math.sqrt(math.fsum(n * float(e) ** 2 for e, _, n in checked))
    logarithm = min(-log_chance(spare), math.log(math.e + spread * float_up(1 / spare)))
    bound = (mean + spread * math.sqrt(2 * logarithm)) * (1 + _ROUNDING)
    total = sum((e * n for e, _, n in checked), Fraction(0))
    if bound >= total:
        return _guarantee(total, Fraction(_any_fails(checked, Fraction(0))))
    return _guarantee(Fraction(bound), Fraction(_any_fails(checked, spare)))


def advanced_classic(*, epsilon: Number, steps: int, slack: Number, delta: Number = 0) -> Guarantee:
    """Return the textbook's advanced composition, kept for comparison.

    Claim: ``steps`` mechanisms, each (epsilon, delta)-DP, are together (e, d)-DP with
    e = epsilon sqrt(2 steps log(1/slack)) + steps epsilon (exp(epsilon) - 1) and
    d = steps delta + slack. Leaving out the second term is a common mistake.

    Why: [DR14, Theorem 3.20].

    >>> advanced_classic(epsilon=0.01, steps=10_000, slack=1e-5).epsilon
    5.8035...
    """
    ((e, d, n),) = _checked([(epsilon, delta, steps)])
    spare = probability(slack, name="slack")
    x = float(e)
    if x > 700:  # exp overflows where basic composition is far better
        return basic([(e, d, n)])
    bound = x * math.sqrt(-2 * n * log_chance(spare)) + n * x * math.expm1(x)
    if bound * 2 == math.inf:
        return basic([(e, d, n)])
    return _guarantee(Fraction(bound * (1 + _ROUNDING)), n * d + spare)


def split(*, epsilon: Number, steps: int, slack: Number, by: Theorem = advanced) -> float:
    """Return the largest epsilon that each of ``steps`` pure mechanisms may have.

    Claim: by the theorem ``by``, that many mechanisms with the epsilon returned cost at most
    ``epsilon`` in total (and the delta that the theorem makes of ``slack``).

    Why: the bound was evaluated at the answer.

    >>> split(epsilon=1, steps=1000, slack=1e-6, by=advanced_classic)
    0.00581...
    >>> split(epsilon=1, steps=1000, slack=1e-6)
    0.00627...
    """
    total = positive(epsilon, name="epsilon")
    steps = whole(steps, name="steps")

    def fits(each: float) -> bool:
        # Nothing larger can fit: one step alone then costs more by either theorem.
        return (
            each <= 2 * (total + 1) and by(epsilon=each, steps=steps, slack=slack).epsilon <= total
        )

    found = smallest_float(lambda each: not fits(each))
    assert found is not None
    while found > 0:
        found = math.nextafter(found, 0.0)
        if fits(found):
            break
    return found


def optimal_delta(*, epsilon: Number, delta: Number, steps: int, total: Number) -> float:
    """Return the smallest delta of ``steps`` equal mechanisms at the epsilon ``total``, rounded up.

    Claim: ``steps`` mechanisms, each (epsilon, delta)-DP, are together (total, d)-DP for the d
    returned, and no smaller d holds for all such mechanisms (but for rounding).

    Why: [KOV17, Theorem 3.3]: the worst are "reveal the input with probability delta, otherwise
    randomized response", whose total loss is epsilon times (steps - 2 X), X binomial.

    >>> optimal_delta(epsilon=0.01, delta=0, steps=10_000, total=4.37638)
    1.0000...e-05
    """
    ((e, d, n),) = _checked([(epsilon, delta, steps)])
    rest = _Responses(e, n).delta_upper(nonnegative(total, name="total"))
    return _any_fails([(e, d, n)], Fraction(rest))


def optimal(*, epsilon: Number, delta: Number, steps: int, target_delta: Number) -> float:
    """Return the smallest epsilon of ``steps`` equal mechanisms at ``target_delta``, rounded up.

    Claim: ``steps`` mechanisms, each (epsilon, delta)-DP, are together (e, target_delta)-DP for the
    e returned, and no smaller e holds for all such mechanisms (but for rounding). It is infinite
    where target_delta is less than the probability that some step fails.

    Why: as for :func:`optimal_delta`.

    >>> optimal(epsilon=0.01, delta=0, steps=10_000, target_delta=1e-5)
    4.37638...
    """
    checked = _checked([(epsilon, delta, steps)])
    ((e, _, n),) = checked
    spare = _spare(checked, probability(target_delta, name="target_delta", zero=True))
    if spare is None:
        return math.inf
    ceiling = float_up(e * n)
    if spare == 0 or e == 0:
        return ceiling
    responses = _Responses(e, n)
    found = smallest_float(lambda x: responses.delta_upper(Fraction(x)) <= spare, zero=True)
    return ceiling if found is None else min(ceiling, found)


def optimal_mixed(parts: Iterable[Part], *, target_delta: Number, cells: int = 20_000) -> float:
    """Return nearly the smallest epsilon of different mechanisms at ``target_delta``, rounded up.

    Claim: mechanisms that are (e_i, d_i)-DP are together (e, target_delta)-DP for the e returned.
    It is infinite where target_delta is less than the probability that some step fails.

    Why: the optimum is that of independent randomized responses [MV18, Theorem 1.5], whose exact
    computation is #P-complete. As in [MV18, Theorem 1.7] each e_i is moved to a common lattice, so
    that the law of the total loss is found by adding up; but rather than rounded up, a response is
    replaced by a visible mix of the two next to it on the lattice that dominates it, so the error
    is of second order in the step. The bulk of the law is about ``cells`` cells wide.

    >>> optimal_mixed([(0.01, 0, 5_000), (0.02, 0, 1_000)], target_delta=1e-5)
    4.1167...
    """
    checked = _checked(parts)
    cells = whole(cells, name="cells", minimum=100)
    spare = _spare(checked, probability(target_delta, name="target_delta", zero=True))
    if spare is None:
        return math.inf
    active = [(e, n) for e, _, n in checked if e > 0]
    ceiling = float_up(sum((e * n for e, n in active), Fraction(0)))
    if spare == 0 or not active:
        return ceiling
    lattice = Lattice.of(active, cells=cells, spare=float(spare))
    found = smallest_float(lambda x: lattice.delta_upper(x) <= spare, zero=True)
    # The closed form wins only where the lattice is too coarse for millions of different parts.
    closed = advanced_mixed([(e, 0, n) for e, n in active], slack=min(spare, Fraction(1, 2)))
    return min(ceiling, float(closed.epsilon), math.inf if found is None else found)


class _Responses:
    """The total loss of equal randomized responses."""

    def __init__(self, exact: Fraction, steps: int) -> None:
        if steps > _MOST_STEPS:
            raise ParameterError(
                f"steps must be at most {_MOST_STEPS:.0e} here. Use advanced for more.",
                parameter="steps",
            )
        epsilon = float_up(exact)
        tail = math.exp(-epsilon)
        # p is the chance of an untrue answer; where it vanishes, so does all but the top loss.
        p, q = max(tail / (1 + tail), 5e-324), 1 / (1 + tail)
        first, last = window(steps, p, q, depth=_DEPTH)
        untrue = np.arange(first, min(last, steps // 2) + 1)
        logs, error = log_pmf(untrue, steps, p, q)
        self.masses = np.exp(logs + error)
        self.losses = (steps - 2 * untrue) * epsilon

    def delta_upper(self, epsilon: Fraction) -> float:
        """Return the mean of (1 - exp(epsilon - loss))+, rounded up."""
        e = float(epsilon) if epsilon < 2**1000 else 2.0**1000
        # Raising the difference by four units covers its own rounding and that of its two terms.
        gap = self.losses - e + 4.5e-16 * (np.abs(self.losses) + e)
        value = float(np.sum(self.masses * -np.expm1(-np.maximum(gap, 0.0))))
        # What the window leaves out is below exp(-700) on either side, and each is at most 1.
        return above(value + 2 * math.exp(-_DEPTH), relative=1e-12)


def _checked(parts: Iterable[Part]) -> list[tuple[Fraction, Fraction, int]]:
    """Return exact (epsilon, delta, count) triples, or refuse."""
    found = []
    for part in parts:
        if len(part) not in (2, 3):
            raise ParameterError(
                "each part must be a tuple (epsilon, delta) or (epsilon, delta, count).",
                parameter="parts",
            )
        e = nonnegative(part[0], name="epsilon")
        if e > LARGEST:
            raise ParameterError(
                "epsilon must be at most 2^500 for these theorems.", parameter="epsilon"
            )
        d = probability(part[1], name="delta", zero=True, one=True)
        found.append((e, d, whole(part[2], name="steps") if len(part) == 3 else 1))
    return found


def _guarantee(epsilon: Fraction, delta: Fraction) -> Guarantee:
    return Guarantee(epsilon=float_up(epsilon), delta=min(1.0, float_up(delta)))


def _log_all_hold(parts: list[tuple[Fraction, Fraction, int]]) -> float:
    """Return the log of the chance that no part fails, to a relative 1e-15."""
    if any(d == 1 for _, d, _ in parts):
        return -math.inf
    return math.fsum(n * math.log1p(-float(d)) for _, d, n in parts)


def _any_fails(parts: list[tuple[Fraction, Fraction, int]], rest: Fraction) -> float:
    """Return 1 - (1 - rest) times the chance that no part fails, rounded up."""
    if all(d == 0 for _, d, _ in parts):
        return float_up(rest)
    if rest == 1:
        return 1.0
    return above(-math.expm1(_log_all_hold(parts) + math.log1p(-float(rest))), relative=_ROUNDING)


def _spare(parts: list[tuple[Fraction, Fraction, int]], target: Fraction) -> Fraction | None:
    """Return the delta left for the rest at ``target``, rounded down; none if it is negative."""
    if all(d == 0 for _, d, _ in parts):
        return target
    held = _log_all_hold(parts)
    allowed = math.log1p(-float(target)) if target < 1 else -math.inf
    if allowed == -math.inf:
        return Fraction(1)
    gap = allowed - held
    # Both logarithms are off by at most a few units, so lower the difference by as much.
    value = Fraction(-math.expm1(gap) - 1e-14 * (abs(allowed) + abs(held)))
    # The union bound is exact, and better where next to nothing is left.
    value = max(value, target - sum((d * n for _, d, n in parts), Fraction(0)))
    return value if value >= 0 else None
