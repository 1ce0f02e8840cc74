"""Filters: one guarantee for operations chosen one by one, after seeing earlier answers."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import Never, final

from discreet._exact import Number
from discreet.accounting.filters import record
from discreet.accounting.filters.rules import FilterKind, FilterRules, FilterSums
from discreet.accounting.losses.loss import Loss
from discreet.errors import BudgetExceeded, NotCopyable
from discreet.privacy import Guarantee, Neighbours

__all__ = ["Filter", "FilterQuote"]

_RELATIONS = (None, Neighbours.add_remove, Neighbours.replace_one, Neighbours.zero_out)
_JUST_ABOVE_1 = math.nextafter(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FilterQuote:
    """Say whether a loss fits, and what share of the filter is used before and after it.

    It is true where the loss fits. ``used_after`` is infinite for a loss without a finite cost.

    >>> bool(FilterQuote(fits=True, used=0.25, used_after=0.5))
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
    FilterQuote(fits=True, used=0.0, used_after=0.333...)
    >>> quote = f.charge(LaplaceLoss(noise_multiplier=1))
    >>> f.charge(GaussianLoss(noise_multiplier=1))
    Traceback (most recent call last):
        ...
    discreet.errors.BudgetExceeded: this loss would bring the filter from 33.33% to ...
    used. Nothing was spent. Ask for less: more noise, a smaller sampling rate or fewer steps.
    >>> round(f.used, 3)
    0.333
    """

    __slots__ = ("_lock", "_relation", "_spent", "rules")

    rules: FilterRules

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        kind: FilterKind | None = None,
        order: Number | None = None,
        neighbours: Neighbours | str | None = None,
    ) -> None:
        self._open(FilterRules(guarantee, kind=kind, order=order, neighbours=neighbours))

    def _open(self, rules: FilterRules) -> None:
        self.rules = rules
        self._relation = rules.neighbours
        self._spent: tuple[int, ...] = (0,) * len(rules.units)
        self._lock = threading.Lock()

    @property
    def guarantee(self) -> Guarantee:
        """What it promises for everything that is ever charged to it."""
        return self.rules.guarantee

    @property
    def kind(self) -> FilterKind:
        """Which sums it keeps."""
        return self.rules.kind

    @property
    def order(self) -> Fraction | None:
        """The Renyi order it was opened with, where its kind has one."""
        return self.rules.order

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """How far the sums may go, in the order of ``state``.

        For each track a divergence (epsilon, rho, or that of the Renyi order) and a delta.
        """
        return self.rules.limits

    @property
    def used(self) -> float:
        """The share of the filter that is used, from 0 to 1, rounded up. It is no odometer."""
        return self.rules.share(self._spent)

    @property
    def settings(self) -> dict[str, object]:
        """What was fixed when it was opened, as data that JSON keeps exactly."""
        return self.rules.settings

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
        found = cls.__new__(cls)
        found._open(FilterRules.from_settings(settings))
        width = len(found.rules.units)
        spent, relation = record.counts(state, width + 1, last=len(_RELATIONS))
        found._spent, found._relation = spent, _RELATIONS[relation]
        if found.rules.neighbours not in (None, found._relation):
            raise record.unreadable("its relation is another than that of the settings")
        return found

    def ask(self, loss: Loss) -> FilterQuote:
        """Say whether ``loss`` would fit now; nothing is charged.

        >>> from discreet.accounting import PureLoss
        >>> f = Filter(Guarantee(epsilon=1), kind="basic")
        >>> f.ask(PureLoss(epsilon=0.25))
        FilterQuote(fits=True, used=0.0, used_after=0.25)
        >>> bool(f.ask(PureLoss(epsilon=2)))
        False
        """
        costs = self.rules.price(loss)
        with self._lock:
            self.rules.relation(loss, self._relation)
            return self._quote(tuple(map(add, self._spent, costs)))

    def charge(self, loss: Loss) -> FilterQuote:
        """Record ``loss``, or raise :class:`BudgetExceeded` and leave everything as it was.

        Charge before the operation runs. An interactive session (sparse vector, training) is
        charged in full before its first answer; then it may be interleaved with anything else.

        >>> from discreet.accounting import PureLoss
        >>> f = Filter(Guarantee(epsilon=1), kind="basic")
        >>> f.charge(PureLoss(epsilon=0.25)).used_after
        0.25
        """
        costs = self.rules.price(loss)
        with self._lock:
            relation = self.rules.relation(loss, self._relation)
            sums = tuple(map(add, self._spent, costs))
            quote = self._quote(sums)
            if quote.fits:
                # A sum beyond its limit never comes back, so how far beyond need not be known.
                self._spent = tuple(
                    int(min(total, units.limit + 1))
                    for total, units in zip(sums, self.rules.units, strict=True)
                )
                self._relation = relation
                return quote
        way_out = self.rules.way_out(sums)
        raise BudgetExceeded(used=quote.used, would_be=quote.used_after, way_out=way_out)

    def _quote(self, sums: FilterSums) -> FilterQuote:
        fits = self.rules.fits(sums)
        # Shares are rounded to the nearest float; whether it fits is decided in whole numbers.
        after = self.rules.share(sums)
        after = after if fits else max(after, _JUST_ABOVE_1)
        return FilterQuote(fits=fits, used=self.rules.share(self._spent), used_after=after)

    def __repr__(self) -> str:
        at = f", order={float(self.order):.4g}" if self.order else ""
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
