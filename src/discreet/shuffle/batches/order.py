"""A uniformly random order."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet.noise import SYSTEM, Source
from discreet.noise.source import words

__all__ = ["permutation", "shuffled"]

T = TypeVar("T")


def permutation(n: int, *, source: Source = SYSTEM) -> npt.NDArray[np.int64]:
    """Return the numbers below ``n`` in an order that is exactly uniform.

    Why: it is the order of n random keys. Given that no two are equal, all n! orders are equally
    likely, since exchanging keys changes nothing in their law. If two are equal, which happens with
    probability below n^2 / 2^65, all are drawn again.

    >>> sorted(permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    while True:
        keys = words(source, n, "<u8")
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) != 0).all():  # sorted, so equal ones are neighbours
            return order


def shuffled(things: Sequence[T], *, source: Source = SYSTEM) -> list[T]:
    """Return things in a uniformly random order.

    >>> sorted(shuffled("cab"))
    ['a', 'b', 'c']
    """
    return [things[i] for i in permutation(len(things), source=source).tolist()]
