"""Operations enumerated outcome by outcome with forty digits: what bounds on losses are held to.

An operation is what it does with and without a unit: pairs (p, q) of chances, one for each outcome.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce

from mpmath import mp, mpf

mp.dps = 40

SLACK = mpf(10) ** -35  # what forty digits leave undecided
Operation = list[tuple[mpf, mpf]]
Delta = Callable[[mpf], mpf]


def exact(x) -> mpf:
    """Return a number as it is, to forty digits."""
    if isinstance(x, mpf):
        return x
    of = Fraction(x)
    return mpf(of.numerator) / of.denominator


def hockey_stick(operation: Operation, e) -> mpf:
    """Return delta at ``e``, of the worse direction."""
    a = mp.exp(exact(e))
    return max(
        mp.fsum(max(mpf(0), p - a * q) for p, q in operation),
        mp.fsum(max(mpf(0), q - a * p) for p, q in operation),
    )


def delta_of(operations: Iterable[Operation]) -> Delta:
    """Return the delta of the worst of some operations, as a function of epsilon."""
    known = list(operations)
    return lambda e: max(hockey_stick(one, e) for one in known)


def both(first: Operation, second: Operation) -> Operation:
    """Do two things, each with its own randomness."""
    return [(p * r, q * s) for (p, q), (r, s) in itertools.product(first, second)]


def composed(operations: Iterable[Operation]) -> Operation:
    return reduce(both, operations, [(mpf(1), mpf(1))])


def sampled(operation: Operation, rate) -> Operation:
    """Leave the unit out, but for a chance of ``rate``."""
    r = exact(rate)
    return [(r * p + (1 - r) * q, q) for p, q in operation]


def swapped(operation: Operation) -> Operation:
    return [(q, p) for p, q in operation]


def response(epsilon, *, failure=0, categories: int = 2) -> Operation:
    """Reveal the input with chance ``failure``, else answer by randomized response."""
    high, fail = mp.exp(exact(epsilon)), exact(failure)
    total = high + categories - 1
    true, false, other = ((1 - fail) * x / total for x in (high, mpf(1), mpf(categories - 2)))
    zero = mpf(0)
    return [(true, false), (false, true), (other, other), (fail, zero), (zero, fail)]


def two_points(width, top) -> Operation:
    """Return the law whose losses are ``top`` and ``top - width``."""
    high = (1 - mp.exp(top - width)) / (mp.exp(top) - mp.exp(top - width))
    return [(high * mp.exp(top), high), ((1 - high) * mp.exp(top - width), 1 - high)]


def lattice(log_weight: Callable[[int], mpf], shift: int, reach: int) -> Operation:
    """Return integer noise around 0 and around ``shift``, cut where hardly anything is left."""
    own = {k: mp.exp(log_weight(k)) for k in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(own.values())
    return [(own[k] / total, own[k - shift] / total) for k in range(-reach, reach + shift + 1)]


def discrete_laplace(noise_multiplier, shift: int) -> Operation:
    """Return its atoms: below 0 and above the shift the loss does not change, so add them up."""
    step = 1 / (exact(noise_multiplier) * shift)
    q = mp.exp(-step)
    law = lambda k: (1 - q) / (1 + q) * q ** abs(k)  # noqa: E731
    ends = [(1 / (1 + q), q**shift / (1 + q)), (q**shift / (1 + q), 1 / (1 + q))]
    return [ends[0], *((law(k), law(k - shift)) for k in range(1, shift)), ends[1]]


def gaussian_delta(noise_multiplier) -> Delta:
    m = exact(noise_multiplier)

    def at(e) -> mpf:
        x = exact(e)
        first = mp.erfc((x * m - 1 / (2 * m)) / mp.sqrt(2)) / 2
        return first - mp.exp(x) * mp.erfc((x * m + 1 / (2 * m)) / mp.sqrt(2)) / 2

    return at


def laplace_delta(noise_multiplier) -> Delta:
    m = exact(noise_multiplier)
    return lambda e: max(mpf(0), 1 - mp.exp((exact(e) - 1 / m) / 2))


def sampled_delta(inner: Delta, rate) -> Delta:
    """Return the delta of removing a unit from a sample, the worse direction from 0 on."""
    r = exact(rate)
    return lambda e: r * inner(mp.log(1 + (mp.exp(exact(e)) - 1) / r))


def in_cells(tail: Callable[[mpf], mpf], edges: Iterable[mpf]) -> Operation:
    """Cut noise around 0 and around 1 into cells, which a post-processing could do.

    ``tail`` is the chance of being above; taken from both ends, small chances keep their digits.
    """
    cuts = [-mp.inf, *edges, mp.inf]

    def between(low: mpf, high: mpf) -> mpf:
        return tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low)

    return [
        (between(low, high), between(low - 1, high - 1)) for low, high in itertools.pairwise(cuts)
    ]


def gaussian_cells(noise_multiplier) -> Operation:
    m = exact(noise_multiplier)
    edges = [mpf(1) / 2 + m * k for k in range(-7, 8)]
    return in_cells(lambda x: mp.erfc(x / m / mp.sqrt(2)) / 2, edges)


def mixture_cells(noise_multiplier, rate, up: int, down: int) -> Operation:
    """Gaussian noise around how many of ``up`` units are drawn, and around minus those of down."""
    m, r = exact(noise_multiplier), exact(rate)
    half = [m * k for k in range(11)]
    edges = [*(-down - edge for edge in reversed(half)), *(up + edge for edge in half)]

    def mass(a: mpf, b: mpf) -> mpf:  # by the smaller tails, which keep their digits
        return mp.ncdf(-a) - mp.ncdf(-b) if a > 0 else mp.ncdf(b) - mp.ncdf(a)

    def law(count: int, sign: int) -> list[mpf]:
        chances = [mp.binomial(count, i) * r**i * (1 - r) ** (count - i) for i in range(count + 1)]
        return [
            mp.fsum(
                chance * mass((a - sign * i) / m, (b - sign * i) / m)
                for i, chance in enumerate(chances)
            )
            for a, b in itertools.pairwise([-mp.inf, *edges, mp.inf])
        ]

    return list(zip(law(up, 1), law(down, -1), strict=True))


def laplace_cells(noise_multiplier) -> Operation:
    m = exact(noise_multiplier)

    def tail(x: mpf) -> mpf:
        return mp.exp(-x / m) / 2 if x > 0 else 1 - mp.exp(x / m) / 2

    return in_cells(tail, [mpf(k) / 16 for k in range(17)])


def integer_shifts(squared: int, dimension: int | None) -> list[tuple[int, ...]]:
    """Return all integer vectors of at most this squared norm, up to order, signs and zeros."""

    def grow(shift: tuple[int, ...], left: int) -> Iterable[tuple[int, ...]]:
        yield shift
        if dimension is None or len(shift) < dimension:
            for entry in range(1, min(math.isqrt(left), shift[-1] if shift else left) + 1):
                yield from grow((*shift, entry), left - entry**2)

    return [shift for shift in grow((), squared) if shift]


def discrete_gaussian(sigma, shift: tuple[int, ...]) -> Operation:
    """Return the law of <shift, noise>, which holds the whole loss, and of it with the shift."""
    variance, norm = exact(sigma) ** 2, sum(x * x for x in shift)
    reach = math.ceil(15 * float(sigma)) + 1
    single = {k: mp.exp(-mpf(k * k) / (2 * variance)) for k in range(-reach, reach + 1)}
    total = mp.fsum(single.values())
    law = {0: mpf(1)}
    for entry in shift:
        grown: dict[int, mpf] = {}
        for at, p in law.items():
            for k, weight in single.items():
                place = at + entry * k
                grown[place] = grown.get(place, mpf(0)) + p * weight / total
        law = grown
    # Moving the noise by the shift multiplies its chance by exp((2 y - |d|^2) / (2 sigma^2)).
    return [(p, p * mp.exp((2 * y - mpf(norm)) / (2 * variance))) for y, p in law.items()]


def shuffled(epsilon, n: int) -> Operation:
    """Shuffle n binary randomized responses, of which the others' true answers are all 0."""

    def count(ones: int) -> list[mpf]:
        law = [mpf(1)]
        for i in range(n):
            yes = 1 / (1 + mp.exp(-exact(epsilon) if i < ones else exact(epsilon)))
            law = [
                a * (1 - yes) + b * yes for a, b in zip([*law, mpf(0)], [mpf(0), *law], strict=True)
            ]
        return law

    return list(zip(count(0), count(1), strict=True))
