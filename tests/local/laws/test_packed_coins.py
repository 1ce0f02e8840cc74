"""Packed coins show heads with exactly the chance they are given."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.local.laws.packed import packed_coins
from discreet.noise import SYSTEM

FALSE_ALARM = 1e-9
BYTES = 40_000


class Scripted:
    """A source that gives given bytes, then ones for ever."""

    is_secure = False

    def __init__(self, given):
        self.given = list(given)

    def read(self, n, /):
        return bytes((self.given.pop(0) if self.given else 255) for _ in range(n))


@pytest.mark.parametrize("place", range(1, 12))
def test_a_coin_shows_the_digit_where_it_stops(place):
    """The whole law: it stops at a place with chance 2**-place, and shows the digit there."""
    for chance in (0b1011_0011_0101 << 52, 0b0100_1100_1011 << 52 | 1):
        coins = packed_coins(chance, 1, source=Scripted([255] * (place - 1) + [0]))
        assert coins[0] == 255 * (chance >> (64 - place) & 1)


def test_a_coin_that_never_stops_shows_tails():
    assert packed_coins(2**64 - 1, 3, source=Scripted([])).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "chance", [Fraction(1, 2), Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000)]
)
def test_coins_and_their_neighbours_are_fair_and_a_wrong_chance_would_show(chance):
    coins = packed_coins(int(chance * 2**64), BYTES, source=SYSTEM)
    pairs = np.bincount(coins & 3, minlength=4)  # neighbouring bits are independent
    p, q = float(chance), 1 - float(chance)
    expected = BYTES * np.array([q * q, p * q, q * p, p * p])
    keep = expected > 5
    found = ((pairs - expected)[keep] ** 2 / expected[keep]).sum()
    assert found <= stats.chi2.isf(FALSE_ALARM, keep.sum())
    heads, total = int(np.bitwise_count(coins).sum()), 8 * BYTES
    assert stats.binomtest(heads, total, p).pvalue > FALSE_ALARM
    assert (
        stats.binomtest(heads, total, p * 0.95 if p < 0.9 else p * 0.995).pvalue < FALSE_ALARM
        or p < 0.01
    )


def test_certain_tails_and_no_coins():
    assert not packed_coins(0, 100, source=SYSTEM).any()
    assert packed_coins(1 << 63, 0, source=SYSTEM).size == 0
