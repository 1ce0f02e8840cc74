"""The order of a batch is exactly uniform."""

from collections import Counter
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.shuffle.batches.order import permutation, shuffled
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9


def chi_square(drawn, cells: int) -> float:
    """Return how far counts are from uniform."""
    counts = np.array([*Counter(drawn).values()], dtype=float)
    expected = len(drawn) / cells
    return float(((counts - expected) ** 2 / expected).sum() + (cells - counts.size) * expected)


def test_every_order_is_equally_likely_and_a_lazy_one_would_show():
    n, draws = 4, 24_000
    limit = chi2.isf(FALSE_ALARM, factorial(n) - 1)
    drawn = [tuple(permutation(n).tolist()) for _ in range(draws)]
    assert set(drawn) == set(permutations(range(n)))
    assert chi_square(drawn, factorial(n)) < limit
    # Exchanging each place with any place, the usual mistake: some orders come half as often again.
    rng = np.random.default_rng(1)
    wrong = []
    for _ in range(draws):
        order = list(range(n))
        for i in range(n):
            j = int(rng.integers(n))
            order[i], order[j] = order[j], order[i]
        wrong.append(tuple(order))
    assert chi_square(wrong, factorial(n)) > limit


def test_equal_keys_are_drawn_again():
    class Twice:
        """Gives equal keys first, then what a seed gives."""

        is_secure = False

        def __init__(self) -> None:
            self._source, self._reads = SeededSource(1), 0

        def read(self, n: int, /) -> bytes:
            self._reads += 1
            return bytes(n) if self._reads == 1 else self._source.read(n)

    assert permutation(8, source=Twice()).tolist() != list(range(8))


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_nothing_is_lost(n):
    assert sorted(shuffled(list(range(n)))) == list(range(n))


@pytest.mark.slow
def test_no_place_is_kept_in_a_large_batch():
    n, rounds = 1000, 2000
    kept = sum(int((permutation(n) == np.arange(n)).sum()) for _ in range(rounds))
    # The number of things that stay where they were has mean 1 and variance 1.
    assert abs(kept - rounds) < 7 * rounds**0.5
