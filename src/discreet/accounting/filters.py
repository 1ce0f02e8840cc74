"""Filters: one guarantee for operations chosen one by one, after seeing earlier answers."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add, and_
from typing import Literal, Never, final

from discreet._exact import Number, exact, show
from discreet.accounting import _filter_record as record
from discreet.accounting._filter_costs import cost
from discreet.accounting._filter_limits import best_order, tracks_for
from discreet.accounting._filter_units import Units
from discreet.accounting.composition import ComposedLoss
from discreet.accounting.loss import Loss
from discreet.errors import BudgetExceeded, NotCopyable, ParameterError
from discreet.privacy import Guarantee, Neighbours

__all__ = ["Filter", "Kind", "Quote"]

Kind = Literal["basic", "zcdp", "renyi", "combined"]
_Sums = tuple[int | float, ...]  # two for each track; only a cost may be infinite

_KINDS = ("basic", "zcdp", "renyi", "combined")
_RELATIONS = (None, Neighbours.add_remove, Neighbours.replace_one, Neighbours.zero_out)
_JUST_ABOVE_1 = math.nextafter(1, 2)
_REMEMBERED = 4096  # losses whose costs are kept, so that repeated ones are looked up


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Say whether a loss fits, and what share of the filter is used before and after it.

    It is true where the loss fits. ``used_after`` is infinite for a loss without a finite cost.

    >>> bool(Quote(fits=True, used=0.25, used_after=0.5))
    True
    """

    fits: bool
    used: float
    used_after: float

    def __bool__(self) -> bool:
        return self.fits


@final
class Filter:
    """Keep a guarantee whatever is asked next: mechanisms and parameters may follow the answers.

    Claim: if every operation is charged before it runs and runs only if the charge went through,
    everything released together is (epsilon, delta)-DP, for the neighbouring relation of the
    losses. The losses may be chosen by someone who has seen all earlier answers and works against
    the filter; refused losses cost nothing and others may be tried.

    Why: docs/proofs/filters.md. ``kind`` says which sums are kept:

    - ``"basic"``: epsilons and deltas [RRUV16];
    - ``"zcdp"``: rho and delta of approximate zCDP [WRRW23];
    - ``"renyi"``: Renyi divergences of one ``order``, fixed now, and deltas [FZ21; Lec21];
    - ``"combined"``: basic and Renyi side by side with a share of delta each; a loss fits while one
      of the two still holds everything. The split is what makes this sound.

    Left out, it is ``"combined"``, or ``"basic"`` if delta is 0.

    ``used`` is the share of the filter that is used up. It is no statement about the privacy lost
    so far: a filter promises its guarantee for the whole, not a smaller one for a part.

    A filter changes as it is charged, threads may share it, and it cannot be copied, since two
    copies would spend one budget twice. ``settings`` and ``state`` go to a database, and
    :meth:`restored` brings it back.

    >>> from discreet.accounting import GaussianLoss, LaplaceLoss
    >>> f = Filter(Guarantee(epsilon=3, delta=1e-6))
    >>> f.ask(LaplaceLoss(noise_multiplier=1))
    Quote(fits=True, used=0.0, used_after=0.333...)
    >>> quote = f.charge(LaplaceLoss(noise_multiplier=1))
    >>> f.charge(GaussianLoss(noise_multiplier=1))
    Traceback (most recent call last):
        ...
    discreet.errors.BudgetExceeded: this loss would bring the filter from 0.3333 to ... of its
    limit. Nothing was spent. Ask for less: more noise, a smaller sampling rate or fewer steps.
    >>> round(f.used, 3)
    0.333
    """

    __slots__ = (
        "_costs", "_lock", "_neighbours", "_order", "_relation", "_spent", "_tracks", "_units",
        "guarantee", "kind",
    )  # fmt: skip

    guarantee: Guarantee
    kind: Kind

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        kind: Kind | None = None,
        order: Number | None = None,
        neighbours: Neighbours | str | None = None,
    ) -> None:
        if not isinstance(guarantee, Guarantee):
            raise ParameterError(
                "a filter is opened with a guarantee: Filter(Guarantee(epsilon=..., delta=...)).",
                parameter="guarantee",
            )
        self.guarantee = guarantee
        self.kind = _chosen_kind(guarantee, kind)
        self._order = _chosen_order(guarantee, self.kind, order)
        self._tracks = tracks_for(guarantee, self.kind, self._order)
        self._units = tuple(
            Units.up_to(limit) for t in self._tracks for limit in (t.divergence, t.failure)
        )
        self._neighbours = _chosen_neighbours(neighbours)
        self._relation = self._neighbours
        self._spent: tuple[int, ...] = (0,) * len(self._units)
        self._costs: dict[Loss, _Sums] = {}
        self._lock = threading.Lock()

    @property
    def order(self) -> Fraction | None:
        """The Renyi order it was opened with, where its kind has one."""
        return self._order or None

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """How far the sums may go, in the order of ``state``.

        For each track a divergence (epsilon, rho, or that of the Renyi order) and a delta.
        """
        return tuple(units.amount for units in self._units)

    @property
    def used(self) -> float:
        """The share of the filter that is used, from 0 to 1, rounded up. It is no odometer."""
        return self._share(self._spent)

    @property
    def settings(self) -> dict[str, object]:
        """What was fixed when it was opened, as data that JSON keeps exactly."""
        return {
            "form": record.FORM,
            "kind": self.kind,
            "epsilon": str(Fraction(self.guarantee.epsilon)),
            "delta": str(Fraction(self.guarantee.delta)),
            "order": str(self._order) if self._order else None,
            "neighbours": self._neighbours.value if self._neighbours else None,
            "limits": [[units.exponent, units.limit] for units in self._units],
        }

    @property
    def state(self) -> tuple[int, ...]:
        """What was charged so far, as a few whole numbers; the last stands for the relation."""
        with self._lock:
            return (*self._spent, _RELATIONS.index(self._relation))

    @classmethod
    def restored(cls, settings: Mapping[str, object], state: Sequence[int]) -> "Filter":
        """Bring back a filter from its ``settings`` and ``state``.

        Limits are taken as they were recorded, so that an improved formula never changes an open
        account, and refused where they exceed what the guarantee allows.

        >>> from discreet.accounting import PureLoss
        >>> f = Filter(Guarantee(epsilon=2), kind="basic")
        >>> _ = f.charge(PureLoss(epsilon=1.5))
        >>> Filter.restored(f.settings, f.state).used
        0.75
        """
        epsilon, delta, order = (record.number(settings, n) for n in ("epsilon", "delta", "order"))
        found = cls(
            Guarantee(epsilon=epsilon or 0, delta=delta or 0),
            kind=record.field(settings, "kind"),  # type: ignore[arg-type]  # checked there
            order=order,
            neighbours=record.field(settings, "neighbours"),  # type: ignore[arg-type]
        )
        found._units = record.units(settings, found._units)
        spent, relation = record.counts(state, len(found._units) + 1, last=len(_RELATIONS))
        found._spent, found._relation = spent, _RELATIONS[relation]
        if found._neighbours not in (None, found._relation):
            raise record.unreadable("its relation is another than that of the settings")
        return found

    def ask(self, loss: Loss) -> Quote:
        """Say whether ``loss`` would fit now; nothing is charged.

        >>> from discreet.accounting import PureLoss
        >>> f = Filter(Guarantee(epsilon=1), kind="basic")
        >>> f.ask(PureLoss(epsilon=0.25))
        Quote(fits=True, used=0.0, used_after=0.25)
        >>> bool(f.ask(PureLoss(epsilon=2)))
        False
        """
        costs = self._cost(loss)
        with self._lock:
            self._agreed(loss)
            return self._quote(tuple(map(add, self._spent, costs)))

    def charge(self, loss: Loss) -> Quote:
        """Record ``loss``, or raise :class:`BudgetExceeded` and leave everything as it was.

        Charge before the operation runs. An interactive session (sparse vector, training) is
        charged in full before its first answer; then it may be interleaved with anything else.

        >>> from discreet.accounting import PureLoss
        >>> f = Filter(Guarantee(epsilon=1), kind="basic")
        >>> f.charge(PureLoss(epsilon=0.25)).used_after
        0.25
        """
        costs = self._cost(loss)
        with self._lock:
            relation = self._agreed(loss)
            sums = tuple(map(add, self._spent, costs))
            quote = self._quote(sums)
            if quote.fits:
                # A sum beyond its limit never comes back, so how far beyond need not be known.
                self._spent = tuple(
                    int(min(total, units.limit + 1))
                    for total, units in zip(sums, self._units, strict=True)
                )
                self._relation = relation
                return quote
        raise BudgetExceeded(used=quote.used, would_be=quote.used_after)

    def _cost(self, loss: Loss) -> _Sums:
        """Return what a loss adds to each sum, in units."""
        if not isinstance(loss, Loss):
            raise ParameterError(
                f"loss must be a loss such as GaussianLoss(noise_multiplier=...), got an object "
                f"of type {type(loss).__name__}. A mechanism has one as its .loss.",
                parameter="loss",
            )
        known = self._costs.get(loss)
        if known is not None:
            return known
        amounts = [amount for track in self._tracks for amount in cost(loss, track)]
        found = tuple(units.of(a) for units, a in zip(self._units, amounts, strict=True))
        if len(self._costs) >= _REMEMBERED:
            self._costs.clear()
        self._costs[loss] = found
        return found

    def _quote(self, sums: _Sums) -> Quote:
        within = [total <= units.limit for total, units in zip(sums, self._units, strict=True)]
        fits = any(map(and_, within[::2], within[1::2]))
        # Shares are rounded to the nearest float; whether it fits is decided in whole numbers.
        after = self._share(sums) if fits else max(self._share(sums), _JUST_ABOVE_1)
        return Quote(fits=fits, used=self._share(self._spent), used_after=after)

    def _share(self, sums: _Sums) -> float:
        """Return the share used of the track with most room; in a track the scarcer sum counts."""
        shares = list(map(Units.share, self._units, sums))
        return min(map(max, shares[::2], shares[1::2]))

    def _agreed(self, loss: Loss) -> Neighbours | None:
        """Return the relation that all losses so far and this one share, or refuse this one."""
        relation = loss.relation if isinstance(loss, ComposedLoss) else loss.neighbours
        if None not in (relation, self._relation) and relation != self._relation:
            raise ParameterError(
                f"this loss holds for {relation}, but the filter counts losses for "
                f"{self._relation}. Nothing was spent. State it for that relation first: compute "
                "its sensitivity for it, or convert its guarantee with discreet.privacy.convert.",
                parameter="loss",
            )
        return self._relation if relation is None else relation

    def __repr__(self) -> str:
        at = f", order={float(self._order):.4g}" if self._order else ""
        return f"Filter({self.guarantee}, kind={self.kind!r}{at}, used={self.used:.4g})"

    def __reduce__(self) -> Never:
        raise NotCopyable(
            "a filter cannot be copied or pickled: two copies would spend one budget twice. Keep "
            "its settings and state, and use Filter.restored where it is not open any more."
        )

    def __copy__(self) -> Never:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> Never:
        self.__reduce__()


def _chosen_kind(guarantee: Guarantee, kind: object) -> Kind:
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


def _chosen_order(guarantee: Guarantee, kind: Kind, order: Number | None) -> Fraction:
    if kind not in ("renyi", "combined"):
        if order is not None:
            raise ParameterError(f"a {kind} filter has no order. Leave it out.", parameter="order")
        return Fraction(0)
    if order is None:
        return best_order(guarantee, kind)
    chosen = exact(order, name="order")
    if chosen <= 1:
        raise ParameterError(f"order must be above 1, got {show(order)}.", parameter="order")
    return chosen


def _chosen_neighbours(neighbours: Neighbours | str | None) -> Neighbours | None:
    if neighbours is None or neighbours in tuple(Neighbours):
        return None if neighbours is None else Neighbours(neighbours)
    raise ParameterError(
        f"neighbours must be one of {', '.join(Neighbours)}, got {show(neighbours)}.",
        parameter="neighbours",
    )
