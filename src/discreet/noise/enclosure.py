"""Rigorous integer bounds on exp(-x), the one irrational number that noise needs.

A sampler decides most cases with doubles. Where a double cannot tell, these bounds can, to any
precision, and without a single floating-point operation. A side door: the mechanisms that toss
coins of their own (partition selection, Warner's response) build their probabilities here.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.noise.source import Source
from discreet.noise.source import bits as random_bits

__all__ = [
    "Chance",
    "chance_exp",
    "chance_logistic",
    "chance_odds",
    "chance_rational",
    "exp_bounds",
    "is_less",
    "log_up",
    "refined",
]

_GUARD = 32

Chance = Callable[[int], int]


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with ``low <= exp(-x) * 2**bits <= high`` for a rational ``x >= 0``.

    Why: halve x until it is below 2**-8, sum the alternating Taylor series in fixed point, and
    square back. Every floor loses less than one unit in the last place; squaring at most doubles
    an error and adds one; so ``2 * terms + 3`` units before squaring become less than
    ``(2 * terms + 4) << halvings`` after it, which the guard bits push below one unit asked for.

    >>> low, high = exp_bounds(Fraction(1), 30)
    >>> low / 2**30, high - low <= 2
    (0.36787944..., True)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:  # exp(-x) < 2**-x <= 2**-bits
        return 0, 1
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    work = bits + halvings + _GUARD
    small = (x.numerator << work) // (x.denominator << halvings)
    total = term = 1 << work
    terms = 0
    while term:
        terms += 1
        term = ((term * small) >> work) // terms
        total += -term if terms % 2 else term
    for _ in range(halvings):
        total = (total * total) >> work
    slack = (2 * terms + 4) << halvings
    down = work - bits
    return max(0, (total - slack) >> down), ((total + slack) >> down) + 1


def log_up(ratio: Fraction) -> float:
    """Return a float not below log(ratio), for a ratio above 1; the next ones down may be too.

    >>> log_up(Fraction(3)), log_up(1 + Fraction(1, 10**20))
    (1.0986122886681098, 1.0000000000000001e-20)
    """
    excess = ratio - 1
    if excess < 1:
        guess = math.log1p(float(excess))  # keeps its digits near 0
    else:
        guess = math.log(ratio.numerator) - math.log(ratio.denominator)
    guess = max(guess * (1 - 2.0**-50), 5e-324)
    while not _is_at_most(ratio, Fraction(guess)):
        guess = math.nextafter(guess, math.inf)
    return guess


def _is_at_most(ratio: Fraction, exponent: Fraction) -> bool:
    """Prove ratio <= exp(exponent), with integers."""
    # Enough bits to tell neighbouring floats apart, however close to 0 or far out they are.
    size = ratio.numerator.bit_length() + ratio.denominator.bit_length()
    precision = 128 + size + max(0, exponent.denominator.bit_length())
    _, high = exp_bounds(exponent, precision)
    return high * ratio.numerator <= ratio.denominator << precision


def chance_rational(p: Fraction) -> Chance:
    """Describe the probability ``p`` by the floors of its binary expansions.

    >>> chance_rational(Fraction(1, 3))(4)
    5
    """
    return lambda bits: (p.numerator << bits) // p.denominator


def refined(bounds: Callable[[int], tuple[int, int]]) -> Chance:
    """Turn an enclosure that tightens with precision into floors, for an irrational number.

    For a number with a finite binary expansion the search for its floor might never end.

    >>> refined(lambda bits: exp_bounds(Fraction(1), bits))(10)
    376
    """

    def floor_at(bits: int) -> int:
        extra = 64
        while True:
            low, high = bounds(bits + extra)
            if low >> extra == high >> extra:
                return low >> extra
            extra *= 2

    return floor_at


def chance_exp(x: Fraction) -> Chance:
    """Describe the probability exp(-x); it is irrational for every rational x > 0 (Lindemann).

    >>> chance_exp(Fraction(1))(10), int(1024 * 0.36787944)
    (376, 376)
    """
    if x == 0:
        return chance_rational(Fraction(1))
    return refined(lambda bits: exp_bounds(x, bits))


def chance_logistic(x: Fraction) -> Chance:
    """Describe the probability 1 / (1 + exp(x)); irrational for every rational x other than 0.

    >>> chance_logistic(Fraction(1))(10), int(1024 * 0.26894142)
    (275, 275)
    """
    return chance_odds(x, Fraction(1))


def chance_odds(x: Fraction, factor: Fraction) -> Chance:
    """Describe the probability with odds ``factor * exp(-x)`` to 1, for a factor above 0.

    That is f exp(-x) / (1 + f exp(-x)), irrational for every rational x other than 0: it is a
    rational function of exp(-x), not constant, and exp(-x) is transcendental (Lindemann).

    >>> chance_odds(Fraction(1), Fraction(3))(10), int(1024 * 0.52462329)
    (537, 537)
    """
    if x == 0:
        return chance_rational(factor / (1 + factor))
    if x < 0:
        mirrored = chance_odds(-x, 1 / factor)
        return lambda bits: (1 << bits) - 1 - mirrored(bits)  # irrational: floors never meet

    def bounds(bits: int) -> tuple[int, int]:
        low, high = (factor.numerator * end for end in exp_bounds(x, bits))
        one = factor.denominator << bits
        return (low << bits) // (one + low), (high << bits) // (one + high) + 1

    return refined(bounds)


def is_less(drawn: int, known: int, chance: Chance, source: Source) -> bool:
    """Decide whether a uniform real with these first ``known`` bits is below the probability.

    >>> from discreet.noise.source import SYSTEM
    >>> is_less(0, 64, chance_rational(Fraction(1, 2)), SYSTEM)
    True
    """
    while True:
        floor = chance(known)
        if drawn != floor:
            return drawn < floor
        drawn = (drawn << 64) + random_bits(source, 64)
        known += 64
