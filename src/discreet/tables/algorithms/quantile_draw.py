"""Private quantiles and extremes of weighted rows, one for each group at a single price.

A unit's rows weigh at most ``limit`` rows in all groups together. The candidates of a group are the
places 0, ..., points - 1; place p has the weight L of the rows below it and U of those at or below
it, out of n. A wanted rank r gives it the score -max(0, L - r, r - U): how many rows it misses by.

- A quantile q, moved by a public ``shift`` of s rows: r = q n + s.
- The maximum: r = n - T, the minimum: r = T, for a public number T of rows.

Weights are whole numbers of steps and q = a / b, so b times every score is a whole number.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, final

from discreet._exact import Number, exact, positive, probability, refusal, whole
from discreet.accounting import BoundedRangeLoss
from discreet.mechanisms.parts import as_share, worst_shortfall
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours
from discreet.tables.algorithms.rank_candidates import Candidates, Places, Weights, in_steps
from discreet.tables.model.bounds import WEIGHT_STEPS

__all__ = ["PLACES", "RANK_SHARES", "Covering", "Ranks"]

PLACES: Final = 1 << 14  # points between the bounds of a quantile that is no whole number
_MOST_POINTS: Final = 1 << 40
_MOST_ROWS: Final = 2.0**60  # far more than 64 bits of steps hold: a rank so far off does not exist
RANK_SHARES: Final = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))  # middle, low end, high end


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """A place, and an interval of places around it; ``None`` where nothing can be said.

    >>> Covering(place=5, low=3, high=9).high
    9
    """

    place: int
    low: int | None
    high: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Choose places by rank, with the exponential mechanism.

    Claim: let one unit's weights add up to at most ``limit`` rows over all groups and places. One
    draw in every group, all of them together, has a privacy loss in an interval of length
    ``epsilon``, for the stated ``neighbours`` and ``group_size``: it is epsilon-DP, and has
    :attr:`loss`.

    Why: under add/remove a unit with the weight c in a group moves each score there by at most
    c max(q, 1 - q) (by c for the extremes), and the log-ratio of the group's draw spans at most
    twice that times the rate [MT07, Theorem 6]. Draws are independent, so spans add up, and so do
    the c. Replacing a unit is a removal and an addition: twice as much, unless there is only one
    group (``is_single``), where c rows that move change a score by c at most.
    (docs/proofs/weighted_quantiles.md)

    >>> ranks = Ranks(epsilon=1, limit=2, points=121, neighbours="add_remove")
    >>> import numpy as np
    >>> places, weights = np.arange(121), np.full(121, 100 * WEIGHT_STEPS)
    >>> abs(ranks.quantile(places, weights, q=0.5) - 60) <= 2
    True
    >>> ranks.loss
    BoundedRangeLoss(epsilon=1)
    """

    epsilon: Number
    limit: Number
    points: int
    neighbours: Neighbours | str
    group_size: int = 1
    is_single: bool = False

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon")
        positive(self.limit, name="limit")
        if whole(self.points, name="points") > _MOST_POINTS:
            raise refusal("points", "at most 2**40", self.points)
        Neighbours.of(self.neighbours)
        whole(self.group_size, name="group_size")

    @property
    def loss(self) -> BoundedRangeLoss:
        """What one draw in every group costs. Touches no data."""
        return BoundedRangeLoss(epsilon=self.epsilon)

    @property
    def interval_losses(self) -> tuple[BoundedRangeLoss, ...]:
        """What the three draws of :meth:`interval` in every group cost; together epsilon."""
        return tuple(
            BoundedRangeLoss(epsilon=Fraction(self.epsilon) * part) for part in RANK_SHARES
        )

    def sensitivity(self, q: Number | None = None) -> Fraction:
        """Return how far one unit moves the scores of all groups together, in rows.

        ``q`` of None: those of an extreme.

        >>> Ranks(epsilon=1, limit=4, points=9, neighbours="add_remove").sensitivity(0.5)
        Fraction(2, 1)
        """
        level = Fraction(1) if q is None else as_share(q, name="q")
        largest = max(level, 1 - level)
        if Neighbours.of(self.neighbours) is Neighbours.replace_one:
            largest = Fraction(1) if self.is_single else 2 * largest
        return largest * Fraction(self.limit) * self.group_size

    def rank_error(self, *, confidence: Number, q: Number | None = None) -> float:
        """Return t so that a draw misses the wanted rank by at most t rows more than it must.

        >>> ranks = Ranks(epsilon=1, limit=1, points=121, neighbours="add_remove")
        >>> round(ranks.rank_error(confidence=0.95, q=0.5), 2)
        7.73
        """
        miss = 1 - probability(confidence, name="confidence")
        return worst_shortfall(self._rate(q), miss, others=self.points - 1)

    def quantile(
        self,
        places: Places,
        weights: Weights,
        *,
        q: Number,
        shift: Number = 0,
        source: Source = SYSTEM,
    ) -> int:
        """Return a place near the ``q``-quantile of one group; any place if it is empty.

        ``places`` increase strictly, and ``weights`` are in steps.

        >>> ranks = Ranks(epsilon=1, limit=1, points=3, neighbours="add_remove")
        >>> import numpy as np
        >>> ranks.quantile(np.array([1]), np.array([10**6 * WEIGHT_STEPS]), q=0.25)
        1
        """
        level, moved = as_share(q, name="q"), in_steps(shift)
        rate = self._rate(q)
        group = Candidates.of(places, weights, self.points)
        wanted = level.numerator * group.total + level.denominator * moved
        return group.choose(wanted, level.denominator, rate=rate, source=source)

    def interval(
        self,
        places: Places,
        weights: Weights,
        *,
        q: Number,
        confidence: Number,
        rows: Number = 0,
        lost: Number = 0,
        source: Source = SYSTEM,
    ) -> Covering:
        """Return a place near the ``q``-quantile, and an interval, for half and two quarters.

        Claim: with at least this ``confidence`` the interval holds every ``q``-quantile of the
        weighted places (each p with L <= q n and n - U <= (1 - q) n), if the group weighs at least
        ``rows``; also if at most ``lost`` rows more, wherever they are, belong to it. An end that
        cannot be found among so few rows is None. Both numbers are public.

        Why: an end is drawn at a rank that lies t and a step to its side, where t is what a draw
        misses by with half of the allowed chance; so it is beyond the quantile, as long as that
        rank exists: q rows >= t. Rows that are lost move ranks by (1 - q) of them down and q of
        them up. (docs/proofs/weighted_quantiles.md, Theorem 3)

        >>> ranks = Ranks(epsilon=1, limit=1, points=121, neighbours="add_remove")
        >>> import numpy as np
        >>> places, weights = np.arange(121), np.full(121, 100 * WEIGHT_STEPS)
        >>> found = ranks.interval(places, weights, q=0.5, confidence=0.999999, rows=10_000)
        >>> found.low <= 60 <= found.high
        True
        """
        level, most = as_share(q, name="q"), exact(rows, name="rows")
        aside, absent = self.interval_shift(q=q, confidence=confidence), exact(lost, name="lost")
        down, up = (1 - level) * absent + aside, level * absent + aside
        group = Candidates.of(places, weights, self.points)
        drawn: list[int] = []
        for part, moved in zip(RANK_SHARES, (Fraction(0), -down, up), strict=True):
            wanted = level.numerator * group.total + level.denominator * in_steps(moved)
            rate = self._rate(q) * part
            drawn.append(group.choose(wanted, level.denominator, rate=rate, source=source))
        place, low, high = drawn
        return Covering(
            place=place,
            low=min(place, low) if level * most >= down else None,
            high=max(place, high) if (1 - level) * most >= up else None,
        )

    def interval_shift(self, *, q: Number, confidence: Number) -> Fraction:
        """Return by how many rows the ends of :meth:`interval` are drawn to the side.

        >>> ranks = Ranks(epsilon=1, limit=1, points=121, neighbours="add_remove")
        >>> round(float(ranks.interval_shift(q=0.5, confidence=0.95)), 2)
        33.8
        """
        miss = (1 - probability(confidence, name="confidence")) / 2
        missed = worst_shortfall(self._rate(q) * RANK_SHARES[1], miss, others=self.points - 1)
        missed = min(missed, _MOST_ROWS)
        return Fraction(math.floor(missed * (1 + 1e-9) * WEIGHT_STEPS) + 2, WEIGHT_STEPS)

    def extreme(
        self,
        places: Places,
        weights: Weights,
        *,
        kind: Literal["minimum", "maximum"],
        confidence: Number,
        source: Source = SYSTEM,
    ) -> Covering:
        """Return a place near the end of one group, and not beyond it with this ``confidence``.

        Where the claim holds, the true end lies between the place and the end of the bounds, which
        is all that can be said of it: the interval is open on that side (None).

        Claim: if the group weighs at least :meth:`extreme_rank` rows, the place lies beyond its
        last row with probability at most 1 - confidence.

        Why: such places miss the wanted rank by T rows, some place misses by nothing, and T is
        chosen for that. (docs/proofs/weighted_quantiles.md, Theorem 4)

        >>> ranks = Ranks(epsilon=1, limit=1, points=1000, neighbours="add_remove")
        >>> import numpy as np
        >>> places, weights = np.arange(800), np.full(800, WEIGHT_STEPS)
        >>> ranks.extreme(places, weights, kind="maximum", confidence=1 - 1e-9).place < 800
        True
        """
        if kind not in ("minimum", "maximum"):
            raise refusal("kind", "'minimum' or 'maximum'", kind)
        aside = in_steps(self.extreme_rank(confidence=confidence))
        group = Candidates.of(places, weights, self.points)
        wanted = aside if kind == "minimum" else group.total - aside
        place = group.choose(wanted, 1, rate=self._rate(None), source=source)
        is_low = kind == "maximum"
        return Covering(place=place, low=place if is_low else None, high=None if is_low else place)

    def extreme_rank(self, *, confidence: Number) -> Fraction:
        """Return how many rows from the end the place of an extreme is looked for.

        >>> ranks = Ranks(epsilon=1, limit=1, points=1000, neighbours="add_remove")
        >>> round(float(ranks.extreme_rank(confidence=0.95)), 2)
        19.7
        """
        missed = min(self.rank_error(confidence=confidence), _MOST_ROWS)
        return Fraction(math.floor(missed * (1 + 1e-9) * WEIGHT_STEPS) + 1, WEIGHT_STEPS)

    def _rate(self, q: Number | None) -> Fraction:
        """Return the factor of a score, in rows, in the exponent."""
        return Fraction(self.epsilon) / (2 * self.sensitivity(q))
