"""Directions that a public number stands for, the same for the device and for everybody else."""

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["best_directions", "directions", "of_nearest", "philox"]

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint32]

_ROUNDS: Final = 10
_MULTIPLIERS: Final = np.array([0xD2511F53, 0xCD9E8D57], dtype=np.uint64)
_KEY_STEPS: Final = np.array([0x9E3779B9, 0xBB67AE85], dtype=np.uint32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_NODES: Final = 300  # of a Gauss-Legendre rule


def directions(
    seeds: npt.NDArray[np.int64], index: npt.NDArray[np.int64], *, dimension: int
) -> Floats:
    """Return unit vectors, one for each pair of a seed below 2**32 and an index below 2**32.

    They are as good as independent and uniform on the sphere: coordinate 4 b + j is the normal
    quantile of (w + 1/2) / 2**32, where w is word j of Philox 4x32-10 with key (seed, 0) and
    counter (b, index, 0, 0), and the vector is then scaled to length 1.

    >>> vectors = directions(np.array([5, 5]), np.array([0, 1]), dimension=3)
    >>> np.round(vectors, 3)
    array([[...]])
    """
    from scipy.special import ndtri

    seeds, index = np.broadcast_arrays(seeds, index)
    blocks = -(-dimension // 4)
    counter = np.zeros((4, *seeds.shape, blocks), dtype=np.uint32)
    counter[0] = np.arange(blocks)
    counter[1] = index[..., None]
    words = philox(counter, key=seeds[..., None].astype(np.uint32))
    words = np.moveaxis(words, 0, -1).reshape(*seeds.shape, 4 * blocks)[..., :dimension]
    normal = ndtri((words + 0.5) * 2.0**-32)
    return np.asarray(normal / np.linalg.norm(normal, axis=-1, keepdims=True))


def philox(counter: Words, *, key: Words) -> Words:
    """Encrypt counters by Philox 4x32-10 [SMDS11], whose second half of the key is 0.

    >>> [hex(int(word)) for word in philox(np.zeros((4, 1), np.uint32), key=np.uint32([0]))[:, 0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    first, second, third, fourth = counter
    key_one, key_two = key, np.uint32(0)
    for round_ in range(_ROUNDS):
        if round_:
            key_one = key_one + _KEY_STEPS[0]
            key_two = np.uint32((int(key_two) + int(_KEY_STEPS[1])) & 0xFFFFFFFF)
        left = first.astype(np.uint64) * _MULTIPLIERS[0]
        right = third.astype(np.uint64) * _MULTIPLIERS[1]
        first = (right >> np.uint64(32)).astype(np.uint32) ^ second ^ key_one
        third = (left >> np.uint64(32)).astype(np.uint32) ^ fourth ^ key_two
        second, fourth = (right & _LOW).astype(np.uint32), (left & _LOW).astype(np.uint32)
    return np.stack(np.broadcast_arrays(first, second, third, fourth))


@lru_cache(maxsize=256)
def of_nearest(*, dimension: int, count: int, nearest: int, power: int = 1) -> float:
    """Return the expected sum of the ``nearest`` largest of ``count`` directions' projections.

    Or of the ``power`` of these projections.

    Why: a projection of a uniform direction is 2 B - 1 for a Beta number B with both parameters
    (dimension - 1) / 2. It is the u-th from above, as a share, for a uniform u; and of the other
    count - 1 fewer than ``nearest`` are beyond it with a binomial chance.

    >>> round(of_nearest(dimension=3, count=2, nearest=1), 9)   # E max of two on [-1, 1]
    0.333333333
    """
    from scipy.special import betainc

    beyond, weights, projection = _projections(dimension)
    among = betainc(count - nearest, nearest, 1 - beyond)
    return float(count * np.sum(weights * projection**power * among))


@lru_cache(maxsize=16)
def _projections(dimension: int) -> tuple[Floats, Floats, Floats]:
    """Return shares of directions, what each stands for, and the projection they are beyond."""
    from scipy.special import betaincinv

    nodes, weights = _rule()
    angle = (nodes + 1) * (np.pi / 4)
    beyond = np.sin(angle) ** 2  # crowds the nodes at both ends
    half = (dimension - 1) / 2
    projection = 1 - 2 * betaincinv(half, half, beyond)
    return beyond, weights * (np.pi / 4) * np.sin(2 * angle), projection


@lru_cache(maxsize=1)
def _rule() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(_NODES)  # takes longer than all that uses it


@lru_cache(maxsize=64)
def best_directions(*, dimension: int, count: int, ratio: float) -> int:
    """Return how many nearest directions to prefer, when they are ``ratio`` times as likely.

    >>> best_directions(dimension=101, count=256, ratio=2.718281828)
    89
    """

    def gain(nearest: int) -> float:
        total = of_nearest(dimension=dimension, count=count, nearest=nearest)
        return total * (ratio - 1) / (nearest * ratio + count - nearest)

    # It rises and then falls: halve the interval where it does.
    low, high = 1, max(1, count // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if gain(middle) < gain(middle + 1) else (low, middle)
    return low
