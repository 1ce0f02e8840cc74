"""What a job sets aside in a budget, and how much of it comes back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from discreet.accounting import FilterRules, Loss
from discreet.accounting.filters import PRICING, FilterSums
from discreet.errors import LedgerError
from discreet.ledger.rules.balance import add, read_sums, write_sums

__all__ = ["Hold", "is_priced"]


@final
@dataclass(frozen=True, slots=True)
class Hold:
    """What a job sets aside in one budget.

    A track whose price is the sum of its steps' prices gives back what never began. Any other was
    priced as a whole, by a bound that holds for the whole run only: it is spent with the first
    step. Choosing the cheaper of the two bounds afterwards would not be covered by either proof.
    """

    times: tuple[int, ...]
    each: tuple[FilterSums, ...]  # for every part of the loss; zero in tracks that are priced whole
    whole: FilterSums  # zero in tracks that are priced step by step
    dead: FilterSums  # infinite where this loss has no finite price: that track is of no more use

    @classmethod
    def of(
        cls,
        rules: FilterRules,
        whole: FilterSums,
        parts: Sequence[tuple[Loss, int]],
        *,
        by_steps: bool,
    ) -> "Hold":
        """Work out what a job of these parts sets aside, ``whole`` being the price of all."""
        times = tuple(count for _, count in parts)
        prices = [rules.price(part) for part, _ in parts]
        stepwise: FilterSums = (0,) * len(whole)
        for one, count in zip(prices, times, strict=True):
            stepwise = add(stepwise, tuple(p if p == math.inf else p * count for p in one))
        slack = sum(times)  # a price is rounded up to the next unit, once or once a step
        is_finite = [w != math.inf for w in whole]
        # Both sums of a track, its divergence and its delta, or neither: they are one bound.
        same = [
            by_steps and s != math.inf != w and 0 <= s - w <= slack
            for s, w in zip(stepwise, whole, strict=True)
        ]
        chosen = [same[i - i % 2] and same[i - i % 2 + 1] for i in range(len(whole))]
        return cls(
            times=times,
            each=tuple(tuple(p if chosen[i] else 0 for i, p in enumerate(one)) for one in prices),
            whole=tuple(0 if chosen[i] or not is_finite[i] else w for i, w in enumerate(whole)),
            dead=tuple(0 if finite else math.inf for finite in is_finite),
        )

    @property
    def document(self) -> dict[str, object]:
        """The hold as an entry writes it."""
        return {
            "times": list(self.times),
            "each": [write_sums(one) for one in self.each],
            "whole": write_sums(self.whole),
            "dead": write_sums(self.dead),
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Hold":
        """Read back what :attr:`document` wrote."""
        return cls(
            times=tuple(document["times"]),
            each=tuple(map(read_sums, document["each"])),
            whole=read_sums(document["whole"]),
            dead=read_sums(document["dead"]),
        )

    def held(self, times: Sequence[int]) -> FilterSums:
        """Return what so many steps hold, nothing having begun."""
        return tuple(
            w + sum(int(one[i]) * n for one, n in zip(self.each, times, strict=True))
            for i, w in enumerate(self.whole)
        )

    def spent(self, steps: Sequence[int], *, first: bool) -> FilterSums:
        """Return what beginning these steps moves from held to spent."""
        moved = self.held(steps)
        return moved if first else tuple(m - w for m, w in zip(moved, self.whole, strict=True))

    def unspent(self, left: Sequence[int], *, started: bool) -> FilterSums:
        """Return what is given back when the job ends."""
        return self.spent(left, first=not started)

    def checked(self, computed: "Hold", *, pricing: int) -> "Hold":
        """Return this hold, which is on record, if it is the one that is asked for."""
        pairs = [(self.whole, computed.whole), (self.dead, computed.dead)]
        pairs += list(zip(self.each, computed.each, strict=True))
        if self.times != computed.times or not all(
            is_priced(a, b, pricing=pricing)
            for one, other in pairs
            for a, b in zip(one, other, strict=True)
        ):
            raise LedgerError("a reservation holds something else than its loss costs.")
        return self


def is_priced(recorded: int | float, computed: int | float, *, pricing: int) -> bool:
    """Say whether a price on record is the computed one.

    The last digits of a logarithm may differ between machines. Where it was found by other
    formulas it may be higher, as it was before somebody proved a better bound: that is safe. It may
    also be lower by a thousandth, which numerical bounds leave open: both are above the truth.
    """
    if math.inf in (recorded, computed):
        return recorded == computed or (recorded == math.inf and pricing != PRICING)
    short = computed - recorded
    return short * 10**3 <= computed if pricing != PRICING else abs(short) * 10**9 <= computed
