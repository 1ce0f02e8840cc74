"""A short pair of laws that dominates a long one, in whole numbers."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Final

from discreet.accounting import FinitePairLoss
from discreet.shuffle.messages.binomials import BITS

__all__ = ["dominating_loss"]

_SCALE: Final = 64  # likelihood ratios are whole numbers over 2**_SCALE
_KEPT: Final = 96  # binary digits of the masses that are kept
_LARGEST: Final = 40.0
# In units of the losses' deviation: one rung an eighth up to 8, then one a whole up to 24.
_RUNGS: Final = [*(i / 8 for i in range(65)), *map(float, range(9, 25))]


def dominating_loss(atoms: Iterable[tuple[int, int]], *, deviation: float) -> FinitePairLoss:
    """Return the loss of a pair of at most 163 outcomes that dominates the pair of ``atoms``.

    ``atoms`` are outcomes with lower bounds on 2**BITS times their two probabilities, best in the
    order of their ratio. ``deviation`` is about that of the losses, and decides accuracy alone.

    Claim: it dominates every pair of laws that is nowhere below the atoms.

    Why: docs/proofs/multi_message_shuffling.md, "From laws to a short pair". What lower bounds
    leave out is revealed: an outcome that only one of the laws has. An outcome whose ratio lies
    between two rungs is replaced by these two, such that both masses stay.
    """
    rungs = _ladder(deviation)
    ps, qs = _sorted_in(atoms, rungs)
    # The first and the last reach to the ratios 0 and infinity, where only one law has mass.
    at = [0] * len(rungs)
    at[0] += (ps[0] << _SCALE) // rungs[0]
    at[-1] += qs[-1]
    for i, (low, high) in enumerate(pairwise(rungs)):
        p, q = ps[i + 1] << _SCALE, qs[i + 1]
        at[i] += (high * q - p) // (high - low)
        at[i + 1] += (p - low * q) // (high - low)
    short = BITS - _KEPT
    found = [
        ((q * rung) >> (_SCALE + short), q >> short) for q, rung in zip(at, rungs, strict=True)
    ]
    found = [(p, q) for p, q in found if p or q]
    one = 1 << _KEPT
    left = [one - sum(column) for column in zip(*found, strict=True)] if found else [one, one]
    pairs = [*found, (left[0], 0), (0, left[1])]
    first, second = (
        tuple(Fraction(mass, one) for mass in side) for side in zip(*pairs, strict=True)
    )
    return FinitePairLoss(p=first, q=second)


def _ladder(deviation: float) -> list[int]:
    """Return the ratios that are kept, of any rational ones: they decide accuracy alone."""
    ups = [deviation * rung for rung in _RUNGS if deviation * rung <= _LARGEST]
    losses = [*(-up for up in ups[:0:-1]), *ups]
    return sorted({max(1, round(math.exp(loss) * 2.0**_SCALE)) for loss in losses})


def _sorted_in(atoms: Iterable[tuple[int, int]], rungs: list[int]) -> tuple[list[int], list[int]]:
    """Add up the masses below the first rung, between each and the next, and above the last."""
    ps, qs = [0] * (len(rungs) + 1), [0] * (len(rungs) + 1)
    place = 0
    for p, q in atoms:
        scaled = p << _SCALE
        while place < len(rungs) and scaled > rungs[place] * q:
            place += 1
        while place and scaled < rungs[place - 1] * q:
            place -= 1
        ps[place] += p
        qs[place] += q
    return ps, qs
