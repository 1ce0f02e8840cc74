"""What a count shows that is hidden by fair coins, of which there is a random number."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

from discreet.accounting import FinitePairLoss
from discreet.shuffle.messages.binomials import BITS, floored_binomial
from discreet.shuffle.messages.dominating import dominating_loss

__all__ = ["hidden_shift_loss"]

_MOST_LEVELS: Final = 256
_WORK: Final = 1 << 16  # outcomes, about
_HALF: Final = Fraction(1, 2)


@lru_cache(maxsize=64)
def hidden_shift_loss(*, trials: int, chance: Fraction, shift: int) -> FinitePairLoss:
    """Return the loss of (T, A + shift) against (T, A), with A of T fair coins heads.

    T is binomial: ``trials`` coins of this ``chance``.

    Claim: the loss's pair dominates this pair and its reverse, and those of all smaller shifts. It
    is tight but for a quarter per cent of T and a 300th of a loss's variance.

    Why: docs/proofs/multi_message_shuffling.md. Fewer coins hide less, so where values of T are
    many, runs of them are lowered to the first.

    >>> loss = hidden_shift_loss(trials=10_000, chance=Fraction(1, 50), shift=1)
    >>> f"{loss.delta_upper(epsilon=0.5):.2g}"
    '1.4e-05'
    """
    typical = max(1.0, float(trials * chance))
    atoms = _outcomes(trials, chance, shift)
    return dominating_loss(atoms, deviation=2 * shift / math.sqrt(typical))


def _outcomes(trials: int, chance: Fraction, shift: int) -> Iterator[tuple[int, int]]:
    first, masses = floored_binomial(trials, chance)
    for coins, mass in _levels(first, masses):
        _, law = floored_binomial(coins, _HALF)
        beyond = [0] * shift
        for p, q in zip(beyond + law, law + beyond, strict=True):
            yield p * mass >> BITS, q * mass >> BITS


def _levels(first: int, masses: list[int]) -> Iterator[tuple[int, int]]:
    """Return values of T with their masses, or runs of them at the first of the run."""
    width = 12 * math.sqrt(first + len(masses))  # of a law of fair coins
    most = min(_MOST_LEVELS, max(1, int(_WORK / width)))
    run = -(-len(masses) // most)
    for start in range(0, len(masses), run):
        yield first + start, sum(masses[start : start + run])
