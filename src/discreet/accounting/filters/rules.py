"""The arithmetic of a filter without its state: what a loss costs, and whether a sum still fits.

A filter in memory keeps one state; a ledger keeps thousands in a database. Both count by these
rules, in whole numbers.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, final, get_args

from discreet._exact import Number, exact, show
from discreet.accounting.filters import record
from discreet.accounting.filters.costs import cost
from discreet.accounting.filters.fixed_point import FixedPoint
from discreet.accounting.filters.limits import best_order, tracks_for
from discreet.accounting.losses.loss import Loss, require_loss
from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Neighbours

__all__ = ["PRICING", "FilterRules", "FilterKind", "FilterSums", "Scarce"]

FilterKind = Literal["basic", "zcdp", "renyi", "combined"]
FilterSums = tuple[int | float, ...]
"""A divergence and a delta for each track, in units; infinite where nothing is proved."""

PRICING = 3
"""Which formulas :meth:`FilterRules.price` uses: raised whenever one of them changes."""

Scarce = Literal["epsilon", "delta"]
"""What runs out first: the sum of divergences, or that of deltas."""

_BESIDE = Fraction(1, 2)  # of the share of epsilon: what a release should take of delta
_LESS_DELTA = "Delta runs out, not epsilon: state a smaller delta=, or list the groups."
_KINDS = get_args(FilterKind)
_REMEMBERED = 4096  # losses whose prices are kept, so that repeated ones are looked up


@final
class FilterRules:
    """Price losses and judge sums for one guarantee; see :class:`Filter` for what is promised.

    Sums are tuples of whole numbers of tiny units, so adding them up is exact, in any order. They
    come in pairs, a divergence and a delta for each track. A sum fits while some track has both
    within its limits.

    >>> from discreet.accounting import PureLoss
    >>> rules = FilterRules(Guarantee(epsilon=1), kind="basic")
    >>> tenth = rules.price(PureLoss(epsilon=Fraction(1, 10)))
    >>> ten = tuple(10 * n for n in tenth)
    >>> rules.fits(ten), rules.share(ten), rules.fits((ten[0] + 1, ten[1]))
    (True, 1.0, False)
    """

    __slots__ = ("_prices", "_tracks", "guarantee", "kind", "neighbours", "order", "units")

    guarantee: Guarantee
    kind: FilterKind
    order: Fraction | None
    neighbours: Neighbours | None
    units: tuple[FixedPoint, ...]

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        kind: FilterKind | None = None,
        order: Number | None = None,
        neighbours: Neighbours | str | None = None,
    ) -> None:
        if not isinstance(guarantee, Guarantee):
            raise ParameterError(
                "a filter is opened with a guarantee: Guarantee(epsilon=..., delta=...).",
                parameter="guarantee",
            )
        if guarantee.epsilon > 10**100:
            raise ParameterError(
                "epsilon must be at most 1e100 for a filter: above 10 it says next to nothing.",
                parameter="guarantee",
            )
        self.guarantee = guarantee
        self.kind = _chosen_kind(guarantee, kind)
        self.order = _chosen_order(guarantee, self.kind, order)
        self.neighbours = None if neighbours is None else Neighbours.of(neighbours)
        self._tracks = tracks_for(guarantee, self.kind, self.order or Fraction(0))
        self.units = tuple(
            FixedPoint.up_to(limit) for t in self._tracks for limit in (t.divergence, t.failure)
        )
        self._prices: dict[Loss, FilterSums] = {}

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """How far the sums may go: for each track a divergence and a delta."""
        return tuple(units.amount for units in self.units)

    @property
    def settings(self) -> dict[str, object]:
        """What was fixed when they were made, as data that JSON keeps exactly."""
        return {
            "form": record.FORM,
            "kind": self.kind,
            "epsilon": str(Fraction(self.guarantee.epsilon)),
            "delta": str(Fraction(self.guarantee.delta)),
            "order": str(self.order) if self.order else None,
            "neighbours": self.neighbours.value if self.neighbours else None,
            "limits": [[units.exponent, units.limit] for units in self.units],
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "FilterRules":
        """Bring back rules from their ``settings``.

        Limits are taken as they were recorded, so that an improved formula never changes an open
        account, and refused where they exceed what the guarantee allows.

        >>> rules = FilterRules(Guarantee(epsilon=3, delta=1e-6))
        >>> FilterRules.from_settings(rules.settings).limits == rules.limits
        True
        """
        epsilon, delta, order = (record.number(settings, n) for n in ("epsilon", "delta", "order"))
        found = cls(
            Guarantee(epsilon=_readable(epsilon), delta=_readable(delta)),
            kind=record.field(settings, "kind"),  # type: ignore[arg-type]  # checked there
            order=order,
            neighbours=record.field(settings, "neighbours"),  # type: ignore[arg-type]
        )
        found.units = record.units(settings, found.units)
        return found

    def price(self, loss: Loss) -> FilterSums:
        """Return what a loss adds to each sum, rounded up.

        >>> from discreet.accounting import PureLoss
        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> divergence, delta = rules.price(PureLoss(epsilon=0.25))
        >>> 4 * divergence == rules.units[0].limit, delta
        (True, 0)
        """
        try:
            known = self._prices.get(loss)
        except TypeError:  # whatever cannot be a key of a dictionary is no loss
            known = None
        if known is not None:
            return known
        require_loss(loss)
        amounts = [amount for track in self._tracks for amount in cost(loss, track)]
        found = tuple(units.of(a) for units, a in zip(self.units, amounts, strict=True))
        if len(self._prices) >= _REMEMBERED:
            self._prices.clear()
        self._prices[loss] = found
        return found

    def fits(self, sums: FilterSums) -> bool:
        """Say whether some track has both its sums within the limits.

        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> limit = rules.units[0].limit
        >>> rules.fits((limit, 0)), rules.fits((limit + 1, 0))
        (True, False)
        """
        units = self.units
        for i in range(0, len(units), 2):
            if sums[i] <= units[i].limit and sums[i + 1] <= units[i + 1].limit:
                return True
        return False

    def share(self, sums: FilterSums) -> float:
        """Return the share used of the track with most room; in a track the scarcer sum counts.

        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> rules.share((rules.units[0].limit // 4, 0))
        0.25
        """
        shares = list(map(FixedPoint.share, self.units, sums))
        return min(map(max, shares[::2], shares[1::2]))

    def shares(self, sums: FilterSums, *, after: FilterSums | None = None) -> tuple[float, float]:
        """Return which shares of epsilon and of delta these are, in the track with most room.

        That is the track where these sums, or those ``after`` them, leave most.

        >>> rules = FilterRules(Guarantee(epsilon=1, delta=1e-6), kind="basic")
        >>> rules.shares((rules.units[0].limit // 4, 0))
        (0.25, 0.0)
        """

        def shares(one: FilterSums, at: int) -> tuple[float, float]:
            return self.units[at].share(one[at]), self.units[at + 1].share(one[at + 1])

        tracks = range(0, len(self.units), 2)
        return shares(sums, min(tracks, key=lambda at: max(shares(after or sums, at))))

    def scarce(self, sums: FilterSums) -> Scarce:
        """Say what :meth:`share` speaks of: epsilon, by whatever divergence, or delta.

        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> rules.scarce((rules.units[0].limit // 4, 0))
        'epsilon'
        """
        epsilon, delta = self.shares(sums)
        return "delta" if delta > epsilon else "epsilon"

    def way_out(self, sums: FilterSums) -> str:
        """Say what helps where sums do not fit because of delta; nothing where it is epsilon.

        >>> rules = FilterRules(Guarantee(epsilon=1, delta=1e-6), kind="basic")
        >>> rules.way_out((0, 2 * rules.units[1].limit))
        'Delta runs out, not epsilon: state a smaller delta=, or list the groups.'
        """
        is_delta = self.scarce(sums) == "delta"
        return _LESS_DELTA if is_delta else ""

    def delta_beside(self, loss: Loss) -> Fraction:
        """Return how much delta may go with a loss if delta shall not run out before epsilon.

        It is in every track at most half the share of the limit that the loss takes of the other
        one; so releases that keep to it fit as often as their divergences do, unless the losses
        take delta themselves (a Gaussian in a track of basic composition).

        >>> from discreet.accounting import PureLoss
        >>> rules = FilterRules(Guarantee(epsilon=1, delta=1e-6), kind="basic")
        >>> float(rules.delta_beside(PureLoss(epsilon=0.25)))  # an eighth of 1e-6
        1.25e-07
        """
        shares = [
            Fraction(spent, units.limit)
            for spent, units in zip(self.price(loss)[::2], self.units[::2], strict=True)
            if isinstance(spent, int) and units.limit
        ]
        room = min(units.amount for units in self.units[1::2])
        return _BESIDE * min(*shares, Fraction(1)) * room if shares else Fraction(0)

    def times(self, sums: FilterSums, price: FilterSums) -> float:
        """Return how many times a price still fits on top of sums: whole, or infinite if it is 0.

        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> limit = rules.units[0].limit
        >>> rules.times((limit // 4, 0), (limit // 4, 0))
        3
        """
        most: float = 0
        for i in range(0, len(self.units), 2):
            rooms = [
                _room(units.limit - spent, one)
                for units, spent, one in zip(
                    self.units[i : i + 2], sums[i : i + 2], price[i : i + 2], strict=True
                )
            ]
            most = max(most, min(rooms))
        return most

    def relation(self, loss: Loss, agreed: Neighbours | None) -> Neighbours | None:
        """Return the relation that all losses so far and this one share, or refuse this one.

        >>> from discreet.accounting import PureLoss
        >>> rules = FilterRules(Guarantee(epsilon=1), neighbours="add_remove")
        >>> rules.relation(PureLoss(epsilon=1), rules.neighbours)
        <Neighbours.add_remove: 'add_remove'>
        """
        relation = loss.relation
        if None not in (relation, agreed) and relation != agreed:
            raise ParameterError(
                f"this loss holds for {relation}, but the budget counts losses for "
                f"{agreed}. Nothing was spent. State it for that relation first: compute "
                "its sensitivity for it, or convert its guarantee with discreet.privacy.convert.",
                parameter="loss",
            )
        return agreed if relation is None else relation

    def widened(self, guarantee: Guarantee) -> "FilterRules":
        """Return rules for a larger guarantee that count the same sums in the same units.

        The kind and the order stay, so that whatever was counted before still stands.

        >>> rules = FilterRules(Guarantee(epsilon=1))
        >>> rules.widened(Guarantee(epsilon=8)).share((rules.units[0].limit, 0))
        0.125
        """
        old = self.guarantee
        if not isinstance(guarantee, Guarantee):
            raise ParameterError(
                "a guarantee is Guarantee(epsilon=..., delta=...).", parameter="guarantee"
            )
        if guarantee.epsilon < old.epsilon or guarantee.delta < old.delta:
            raise ParameterError(
                f"a guarantee can only be widened: epsilon at least {show(old.epsilon)} and delta "
                f"at least {show(old.delta)}. What was promised before cannot be made stronger "
                "after something was released.",
                parameter="guarantee",
            )
        wider = FilterRules(guarantee, kind=self.kind, order=self.order, neighbours=self.neighbours)
        wider.units = tuple(
            own.widened(new.amount) for own, new in zip(self.units, wider.units, strict=True)
        )
        return wider


def _room(left: int | float, price: int | float) -> float:
    if left < 0 or price == math.inf:
        return 0
    return left // price if price else math.inf


def _readable(number: Fraction | None) -> Number:
    """Return the same number as people type it: whole, or a float where that is exact."""
    if not number or number.denominator == 1:
        return int(number or 0)
    near = float(number)
    return near if Fraction(near) == number else number


def _chosen_kind(guarantee: Guarantee, kind: object) -> FilterKind:
    if guarantee.is_empty:
        raise ParameterError(
            "a filter with delta=1 would promise nothing. Use a delta far below 1 / people.",
            parameter="guarantee",
        )
    if kind is None:
        return "basic" if guarantee.is_pure else "combined"
    if kind not in _KINDS:
        raise ParameterError(
            f"kind must be one of {', '.join(_KINDS)}, got {show(kind)}.", parameter="kind"
        )
    if guarantee.is_pure and kind != "basic":
        raise ParameterError(
            f"a {kind} filter needs a guarantee with delta above 0. With delta=0 use kind='basic'.",
            parameter="guarantee",
        )
    return kind  # type: ignore[return-value]  # one of the four


def _chosen_order(guarantee: Guarantee, kind: FilterKind, order: Number | None) -> Fraction | None:
    if kind not in ("renyi", "combined"):
        if order is not None:
            raise ParameterError(f"a {kind} filter has no order. Leave it out.", parameter="order")
        return None
    if order is None:
        return best_order(guarantee, kind)
    chosen = exact(order, name="order")
    if chosen <= 1:
        raise ParameterError(f"order must be above 1, got {show(order)}.", parameter="order")
    return chosen
