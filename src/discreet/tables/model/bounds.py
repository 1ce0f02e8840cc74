"""How much one unit may contribute, and how far it then can move what is computed."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from discreet._exact import Number, positive, refusal, whole
from discreet.privacy import Neighbours

__all__ = [
    "JOINED_ROWS",
    "MOST",
    "WEIGHT_STEPS",
    "AskedBounding",
    "Bounding",
    "Groups",
    "Norm",
    "Totals",
    "largest",
    "root_up",
    "sensitivity",
    "squared_sensitivity",
]

MOST = 10**9
"""The largest limit on a unit: nobody has more rows, and sums stay far from overflowing."""

JOINED_ROWS = 1_000_000
"""How many rows of one unit a join may make, unless declared: about 10 ms of work."""

WEIGHT_STEPS = 1 << 20
"""What one row of full weight counts in the engine's integers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """Scale down all rows of a unit together so that the norm of its counts is at most ``limit``.

    A unit with n_g rows in group g gives each of its rows the weight
    min(1, limit / norm(n)), where the norm is the sum (``order=1``) or the root of the sum of
    squares (``order=2``) of the n_g. Nothing is dropped, so small units keep their full weight and
    large ones still count in every group.

    >>> Norm(limit=5, order=2).limit
    5
    """

    limit: Number
    order: Literal[1, 2]

    def __post_init__(self) -> None:
        if positive(self.limit, name="limit") > MOST:
            raise refusal("limit", f"at most {MOST:,}", self.limit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Keep at most ``groups`` groups of a unit, chosen at random, and weigh its rows in each.

    A unit with n rows in a kept group gives each of them the weight min(1, ``rows`` / n).

    >>> Groups(groups=5, rows=4).groups
    5
    """

    groups: int
    rows: int

    def __post_init__(self) -> None:
        for name in ("groups", "rows"):
            if whole(getattr(self, name), name=name) > MOST:
                raise refusal(name, f"at most {MOST:,}", getattr(self, name))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Scale down a unit's sums so that their norm over groups is at most ``limit``.

    For sums alone, whose values it is in the units of: a unit with the sums s_g (of clamped values)
    in groups g adds min(1, limit / norm(s)) times each of them, where the norm is the sum
    (``order=1``) or the root of the sum of squares (``order=2``) of their sizes. Rows are no matter
    here: a hundred small payments count like a few large ones. No row counts more than ``limit``.

    >>> Totals(limit=5_000, order=1).limit
    5000
    """

    limit: Number
    order: Literal[1, 2]

    def __post_init__(self) -> None:
        positive(self.limit, name="limit")


Bounding = Norm | Groups
"""How a unit's rows are bounded."""

AskedBounding = Norm | Groups | Totals
"""How an analyst may ask that units are bounded: their rows, or their sums."""


def largest(bounds: tuple[Fraction, Fraction]) -> Fraction:
    """Return the largest size of a value within bounds.

    >>> largest((Fraction(-3), Fraction(2)))
    Fraction(3, 1)
    """
    return max(-bounds[0], bounds[1], Fraction(0))


def sensitivity(
    bounding: Bounding,
    *,
    order: Literal[1, 2],
    neighbours: Neighbours,
    is_signed: bool = False,
    group_size: int = 1,
) -> Fraction:
    """Return how far a unit can move the vector of all weighted counts, in norm ``order``.

    Claim: let every row have one or more cells whose sizes add up to at most 1, let each cell of
    the answer be the sum over units of the unit's weighted cells, and let a unit be added or
    removed (zeroed out: its rows vanish), or replaced. Then the answer moves by at most the result
    in norm ``order``. ``is_signed`` says that cells may be negative. Roots are rounded up.

    Why: a unit's weighted cells in a group have an L1 norm of at most its weighted count there, so
    the norm of its whole contribution is at most that of its weighted counts: ``limit`` under
    :class:`Norm` of the same order, and k m or sqrt(k) m for k groups of m rows. (The L2 norm is
    below the L1 norm, so a Norm of order 1 also bounds order 2.) Replacing a unit takes one such
    vector away and adds another: twice as much by the triangle inequality. If both have no negative
    entry their inner product is not negative, and in L2 the factor is only sqrt(2). A group of k
    units is k such steps.

    >>> sensitivity(Norm(limit=5, order=1), order=1, neighbours=Neighbours.add_remove)
    Fraction(5, 1)
    >>> sensitivity(Groups(groups=4, rows=3), order=2, neighbours=Neighbours.add_remove)
    Fraction(6, 1)
    >>> float(sensitivity(Norm(limit=1, order=2), order=2, neighbours=Neighbours.replace_one))
    1.4142135623730951
    """
    squared = squared_sensitivity(
        bounding, order=order, neighbours=neighbours, is_signed=is_signed, group_size=group_size
    )
    return root_up(squared)


def squared_sensitivity(
    bounding: Bounding,
    *,
    order: Literal[1, 2],
    neighbours: Neighbours,
    is_signed: bool = False,
    group_size: int = 1,
) -> Fraction:
    """Return the square of :func:`sensitivity`, exactly.

    >>> squared_sensitivity(Groups(groups=2, rows=3), order=2, neighbours=Neighbours.replace_one)
    Fraction(36, 1)
    """
    if isinstance(bounding, Norm):
        if order < bounding.order:
            raise ValueError("a bound on the L2 norm says nothing about the L1 norm")
        one = Fraction(bounding.limit) ** 2
    else:
        one = Fraction(bounding.groups) ** (2 // order) * bounding.rows**2
    if Neighbours.of(neighbours) is Neighbours.replace_one:
        one *= 2 if order == 2 and not is_signed else 4
    return one * group_size**2


def root_up(square: Fraction) -> Fraction:
    """Return the root exactly where it is rational, else rounded up, by less than 2**-55 of it.

    >>> root_up(Fraction(9, 4)), root_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 2), True)
    """
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return Fraction(top, bottom)
    shift = 120 + 2 * square.denominator.bit_length()
    scaled = (square.numerator << shift) // square.denominator + 1
    return Fraction(math.isqrt(scaled) + 1, 1 << shift // 2)
