"""Differences of answers that are rounded, cut off or blurred."""

import numpy as np

from discreet.attacks.differencing.interfaces import Group
from discreet.attacks.differencing.trackers import individual_tracker

__all__ = ["averaged", "over_the_edge"]


def over_the_edge(
    count: Group,
    target: str,
    *,
    key: str,
    keys: tuple[int, int],
    secret: str,
    bounds: tuple[int, int],
) -> int | None:
    """Read a whole secret off rounded counts, by a crowd in which one person tips the rounding.

    The crowd is everybody else below some ``key``; halving finds the one that is one person short
    of the next rounded number. From then on, adding the target if their secret is at least x moves
    the answer or does not, and halving the ``bounds`` finds the secret. Rounding and a minimum
    size protect from neither. None where answers do not behave like rounded counts.

    >>> people = [(at, 10 * at) for at in range(100)]
    >>> def count(where):  # the interface reads SQL in this demonstration by eval
    ...     text = where.replace("AND NOT", "and not").replace("AND", "and").replace("OR", "or")
    ...     text = text.replace(" = ", " == ")
    ...     return round(sum(eval(text, {"id": i, "pay": p}) for i, p in people), -1)
    >>> over_the_edge(count, "id = 7", key="id", keys=(0, 99), secret="pay", bounds=(0, 1000))
    70
    """
    low, high = keys[0] + (keys[1] - keys[0]) // 2, keys[1] + 1
    crowd = f"{key} < {{}} AND NOT ({target})"
    start = count(crowd.format(low))
    if start is None or count(crowd.format(high)) == start:
        return None
    while high - low > 1:  # the answer at low is the first one, at high it is another
        middle = (low + high) // 2
        low, high = (middle, high) if count(crowd.format(middle)) == start else (low, middle)
    edge = f"({crowd.format(low)})"

    def tips(least: int) -> bool:
        return count(f"{edge} OR (({target}) AND {secret} >= {least})") != start

    least, beyond = bounds[0], bounds[1] + 1
    if not tips(least) or tips(beyond):
        return None
    while beyond - least > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if tips(middle) else (least, middle)
    return least


def averaged(
    group: Group, target: str, *, key: str, keys: tuple[int, int], times: int, seed: int = 0
) -> tuple[float, float] | None:
    """Average differences over many crowds, and return the mean and its standard error.

    Rounding errors of different crowds are as good as independent, and so is blur, also where the
    same question always gets the same one: no question is asked twice.

    >>> averaged(lambda where: 8.0 if " OR " in where else 5.0, "id = 7", key="id", keys=(0, 99),
    ...          times=4)
    (3.0, 0.0)
    """
    dice = np.random.default_rng(seed)
    wide = keys[1] - keys[0] + 1
    found = []
    for _ in range(times):
        first = keys[0] + int(dice.integers(max(1, wide // 3)))
        last = keys[1] - int(dice.integers(max(1, wide // 3)))
        said = individual_tracker(group, target, cover=f"{key} BETWEEN {first} AND {last}")
        if said is not None:
            found.append(said)
    if len(found) < 2:
        return None
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))
