"""How alike two sketches are, and when that is no chance.

Two tables are taken for one if

- they are small and the same in every cell; or
- their units are the same to half of the smaller one, and are not merely counted through; or
- values of a column are the same to half, and so is what stands beside them, both counted beyond
  chance; or there is nothing beside them in one of the tables, and they are not counted through.

Beyond chance means two things. Of the values that could be the same, *kappa* = (found - chance) /
(1 - chance) is counted. And among other people, whose rows have nothing to do with these, that many
agreements would come by chance with a probability of at most ``FALSE_ALARM``, for all columns of
two tables together: docs/proofs/recognition.md.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from discreet.ledger.recognition.sketch import SampleSketch, TableSketch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FALSE_ALARM", "SHARE", "are_alike", "chance_of_agreements"]

SHARE: Final = 0.5  # of the smaller table that two tables have to share
FALSE_ALARM: Final = 1e-9
_FEWEST: Final = 20  # values in common that say something without what is beside them


def are_alike(one: TableSketch, other: TableSketch) -> bool:
    """Say whether two tables hold the same people."""
    if one.whole and one.whole == other.whole:
        return True
    return any(_share_units(a, b) for a in one.samples for b in other.samples)


def _share_units(a: SampleSketch, b: SampleSketch) -> bool:
    import numpy as np

    limit = min(a.limit, b.limit)
    at_a, at_b = (
        int(np.searchsorted(one.keys, np.uint64(limit - 1), side="right")) for one in (a, b)
    )
    if not at_a or not at_b:
        return False
    _, in_a, in_b = np.intersect1d(
        a.keys[:at_a], b.keys[:at_b], assume_unique=True, return_indices=True
    )
    found = len(in_a) / min(at_a, at_b)
    # Of values that nobody is known by, some are the same among any people.
    share = found if a.is_unit or b.is_unit else _kappa(found, max(a.chance, b.chance))
    if share < SHARE:
        return False
    is_serial = a.is_serial or b.is_serial
    are_units = a.is_unit and b.is_unit
    is_alone = not a.beside or not b.beside
    if not is_serial and are_units and len(in_a) >= _FEWEST:
        return True
    if not is_serial and is_alone and _is_rare(found, min(at_a, at_b), max(a.chance, b.chance)):
        return True
    alarm = FALSE_ALARM / max(1, 9 * len(a.beside) * len(b.beside))
    return any(
        share * kappa >= SHARE and chance <= alarm
        for kappa, chance in _agreements([x[in_a] for x in a.beside], [y[in_b] for y in b.beside])
    )


def _is_rare(found: float, count: int, chance: float) -> bool:
    """Say whether such a share of so many is unlikely, were each there with this chance."""
    p = max(chance, 1 / count)
    if found <= p:
        return False
    missed = (1 - found) * math.log((1 - found) / (1 - p)) if found < 1 else 0.0
    return -count * (found * math.log(found / p) + missed) <= math.log(FALSE_ALARM)


def _kappa(found: float, chance: float) -> float:
    return (found - chance) / (1 - chance) if chance < 1 else 0.0


def _agreements(
    ours: "list[npt.NDArray[np.uint16]]", theirs: "list[npt.NDArray[np.uint16]]"
) -> Iterator[tuple[float, float]]:
    """Go through pairs of columns that agree mostly: how far beyond chance, and how unlikely."""
    import numpy as np

    for x in ours:
        for y in theirs:
            is_there = (x != 0) & (y != 0)
            count = int(is_there.sum())
            agreed = int((x[is_there] == y[is_there]).sum())
            if agreed < SHARE * count or not agreed:
                continue  # kappa is at most the share that agrees
            by_x, by_y = (np.bincount(one[is_there], minlength=1 << 16) for one in (x, y))
            cross = int(by_x @ by_y)
            chance = chance_of_agreements(agreed, count, cross)
            yield _kappa(agreed / count, cross / count**2), chance


def chance_of_agreements(agreed: int, count: int, cross: int) -> float:
    """Bound the chance that ``agreed`` of ``count`` pairs agree, were they paired at random.

    ``cross`` is the number of all pairs, of any with any, that agree.

    Why: the number of agreements X has the mean cross / count. Pr[|X - mean| >= t] <= 2 exp(-t^2 /
    (4 mean + 2 t)) [Cha07, Proposition 1.1]. For few pairs this is better: k given places agree
    with probability at most the product of how many fit each, over count (count - 1) ... (count -
    k + 1); summed over all choices of k places, Pr[X >= k] <= cross^k / (k! count! / (count - k)!).

    >>> chance_of_agreements(20, 20, 20) < 1e-10  # twenty different values, all in their place
    True
    >>> chance_of_agreements(50, 100, 5000)  # two values, half of them in their place
    1.0
    """
    mean = cross / count
    beyond = agreed - mean
    bounds = [0.0]
    if beyond > 0:
        bounds.append(math.log(2) - beyond**2 / (4 * mean + 2 * beyond))
    if cross > 0:
        bounds += (
            k * math.log(cross)
            - math.lgamma(count + 1)
            + math.lgamma(count - k + 1)
            - math.lgamma(k + 1)
            for k in range(1, agreed + 1)
        )
    return math.exp(min(bounds))
