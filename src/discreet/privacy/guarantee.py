"""An (epsilon, delta) guarantee as data, and what it is worth for groups."""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Rational
from typing import SupportsFloat, final

from discreet._exact import Number, exact, float_up, nonnegative, probability, show, whole
from discreet._rounding import exp_upper, log_of
from discreet.errors import PrivacyWarning

WEAK_EPSILON = 10  # the usual border: up to 1 strong, up to 10 moderate, above weak
FEW = 100  # units that nearly every table has
DELTA_MARGIN = 10  # "far below 1/n" means at most 1 / (DELTA_MARGIN * n)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """State an (epsilon, delta) promise.

    Claim: a mechanism M keeps it, for a unit and a neighbouring relation named elsewhere, when
    Pr[M(D) in S] <= e^epsilon Pr[M(D') in S] + delta for all neighbours D, D' and all events S
    [DR14, Definition 2.4].

    The numbers stay as they were typed. ``delta`` may be left out: 0 is the stronger reading. A
    guarantee describes, it does not ask, so the ends are allowed: (0, 1/n) is what publishing one
    random record gives, and delta = 1 is what remains of a promise to a group too large for it.

    >>> Guarantee(epsilon=1, delta=1e-6)
    Guarantee(epsilon=1, delta=1e-06)
    >>> Guarantee(epsilon=0.5).is_pure
    True
    >>> Guarantee(epsilon=1, delta=1e-6).group(10_000).is_empty
    True
    >>> Guarantee(epsilon=-1)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: epsilon must be a finite number of at least 0, got -1.
    """

    epsilon: Number
    delta: Number = 0

    def __post_init__(self) -> None:
        nonnegative(self.epsilon, name="epsilon")
        probability(self.delta, name="delta", zero=True, one=True)
        object.__setattr__(self, "epsilon", _plain(self.epsilon))
        object.__setattr__(self, "delta", _plain(self.delta))

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0, so that the promise on epsilon never fails."""
        return self.delta == 0

    @property
    def is_empty(self) -> bool:
        """Whether delta is 1, so that nothing is promised at all."""
        return self.delta == 1

    def group(self, k: int) -> "Guarantee":
        """Return what the same mechanism guarantees to any k units that change together.

        Claim: (epsilon, delta) for one unit is (k epsilon, k e^((k-1) epsilon) delta) for k.

        Why: walk from D to D' in k steps of one unit. Chaining the definition k times multiplies
        the probability by e^(k epsilon) and adds delta (1 + e^epsilon + ... + e^((k-1) epsilon)),
        whose k terms are each at most the last. See [DR14, Theorem 2.2] for delta = 0.

        delta is capped at 1 and rounded up; large groups give 1, never an overflow.

        >>> Guarantee(epsilon=1, delta=1e-6).group(2)
        Guarantee(epsilon=2, delta=5.436563656918091e-06)
        >>> Guarantee(epsilon=1e6, delta=1e-6).group(1000)
        Guarantee(epsilon=1000000000.0, delta=1.0)
        """
        k = whole(k, name="k", hint="A group has at least one member.")
        if k == 1:
            return self
        step = exact(self.epsilon, name="epsilon")
        delta = delta_times_exp(self.delta, factor=k, exponent=(k - 1) * step)
        return Guarantee(epsilon=times_up(self.epsilon, k), delta=delta)

    def warn_if_weak(self, *, n: int | None = None, stacklevel: int = 1) -> None:
        """Warn where the promise is weaker than people usually want for n units.

        Issues a PrivacyWarning if epsilon is above 10, and if delta exceeds 1/(10 n). A mechanism
        may publish each record with probability delta and still keep its promise, so n * delta
        units may be exposed: up to 1/(10 n) that is at most a tenth of a unit, on average. Where n
        is not public, delta is judged as for a hundred units, which nearly everybody has.
        ``stacklevel`` is whose line is blamed, as in ``warnings.warn``.

        >>> Guarantee(epsilon=1, delta=1e-9).warn_if_weak(n=1000)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     Guarantee(epsilon=1, delta=1e-3).warn_if_weak(n=1000)
        >>> print(caught[0].message)  # doctest: +NORMALIZE_WHITESPACE
        delta=0.001 is not far below 1/n for n=1000: the records of 1 of them may be published
        outright, on average, without breaking the promise. Use delta <= 0.0001, or better 1e-06
        (1/n^2).
        """
        for message in weaknesses(self, n=n):
            warnings.warn(message, PrivacyWarning, stacklevel=stacklevel + 1)


def advised_delta(*, n: int) -> Fraction:
    """Return the largest delta that counts as far below 1/n: a tenth of it.

    >>> advised_delta(n=1000)
    Fraction(1, 10000)
    """
    return Fraction(1, DELTA_MARGIN * whole(n, name="n", hint="n is a number of people."))


def weaknesses(guarantee: Guarantee, *, n: int | None = None) -> list[str]:
    """Say in which ways a guarantee is weak for n units; an empty list is good news.

    >>> weaknesses(Guarantee(epsilon=1), n=100)
    []
    """
    people, even = (FEW, "even ") if n is None else (n, "")
    advised = advised_delta(n=people)
    found = []
    if guarantee.epsilon > WEAK_EPSILON:
        found.append(
            f"epsilon={show(guarantee.epsilon)} is above {WEAK_EPSILON}, where the promise to a "
            "single unit is usually called weak. Look at what it means with: "
            f"discreet explain --epsilon {show(guarantee.epsilon)}"
        )
    delta = exact(guarantee.delta, name="delta")
    if delta > float_up(advised):  # as people type it: the double 1e-4 is a trace above 1/10000
        found.append(
            f"delta={show(guarantee.delta)} is not far below 1/n {even}for n={people}: the records "
            f"of {_short(delta * people)} of them may be published outright, on average, without "
            f"breaking the promise. Use delta <= {_short(advised)}, or better "
            f"{_short(Fraction(1, people * people))} (1/n^2)."
        )
    return found


def _short(number: Fraction) -> str:
    return f"{float(number):.3g}"


def times_up(number: Number, k: int) -> Number:
    """Return k * number, exactly where the type allows it and rounded up where it is a float."""
    product = exact(number, name="epsilon") * k
    if not isinstance(number, float):
        return number * k
    rounded = float_up(product)
    return rounded if rounded < math.inf else product  # beyond the floats: exact, as it is


def delta_times_exp(
    delta: Number, *, factor: int, exponent: Fraction, plus: int = 0
) -> int | float | Fraction:
    """Return (factor * e^exponent + plus) * delta, rounded up and capped at 1."""
    chance = exact(delta, name="delta")
    if chance == 0:
        return delta
    # Compare logarithms first: past this line the exponential is small enough to write down.
    if exponent + Fraction(log_of(chance)) > 1:
        return 1.0
    return float_up(min(Fraction(1), (factor * exp_upper(exponent) + plus) * chance))


def _plain(number: SupportsFloat) -> Number:
    """Shed numpy's and other scalar types, which would show in repr and JSON."""
    if isinstance(number, Integral):
        return int(number)
    if isinstance(number, Rational):
        return Fraction(number)
    return float(number)
