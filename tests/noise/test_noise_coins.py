"""Coins: their probabilities to any precision, their frequencies, the ties that need more bits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import noise
from discreet.errors import ParameterError
from discreet.noise.coins import bernoulli_odds
from discreet.noise.enclosure import chance_exp, chance_logistic, chance_odds, chance_rational

FALSE_ALARM = 1e-9
SAMPLES = 1_000_000
BAND = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * SAMPLES))  # Hoeffding

COINS = [
    (noise.bernoulli, {"p": Fraction(1, 3)}, 1 / 3),
    (noise.bernoulli, {"p": 0.9}, 0.9),
    (noise.bernoulli_exp, {"x": Fraction(1, 7)}, math.exp(-1 / 7)),
    (noise.bernoulli_exp, {"x": 2}, math.exp(-2)),
    (noise.bernoulli_logistic, {"x": 1}, 1 / (1 + math.e)),
    (noise.bernoulli_logistic, {"x": -0.5}, 1 / (1 + math.exp(-0.5))),
    (bernoulli_odds, {"x": 1, "factor": 4}, 4 / (4 + math.e)),
    (bernoulli_odds, {"x": -1.5, "factor": Fraction(1, 30)}, 1 / (1 + 30 * math.exp(-1.5))),
    (bernoulli_odds, {"x": 0, "factor": 2}, 2 / 3),
]


@pytest.mark.parametrize(("coin", "parameters", "p"), COINS)
def test_heads_come_as_often_as_they_should(coin, parameters, p):
    share = coin(**parameters, size=SAMPLES).mean()
    assert abs(share - p) <= BAND
    # 20% off is more than 2 * BAND off for all of these, so a miss is as rare as a false alarm.
    assert abs(share - 0.8 * p) > BAND
    assert abs(share - 1.2 * p) > BAND
    scalars = 20_000
    tossed = sum(coin(**parameters) for _ in range(scalars)) / scalars
    assert abs(tossed - p) <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * scalars))


@given(
    x=st.fractions(-40, 40),
    factor=st.fractions(Fraction(1, 10**6), 10**6),
    bits=st.integers(1, 200),
)
def test_floors_of_probabilities_are_right(x, factor, bits):
    with mpmath.workdps(160):
        odds = mpmath.mpf(factor.numerator) / factor.denominator
        odds *= mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        expected = int(mpmath.floor(odds / (1 + odds) * mpmath.mpf(2) ** bits)) if x else None
        logistic = 1 / (1 + mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))
        expected_logistic = int(mpmath.floor(logistic * mpmath.mpf(2) ** bits)) if x else None
        exponential = mpmath.exp(-abs(mpmath.mpf(x.numerator) / x.denominator))
        expected_exp = int(mpmath.floor(exponential * mpmath.mpf(2) ** bits))
    if x:
        assert chance_odds(x, factor)(bits) == expected
        assert chance_logistic(x)(bits) == expected_logistic
    else:
        share = factor / (1 + factor)
        assert chance_odds(x, factor)(bits) == chance_rational(share)(bits)
    assert chance_exp(abs(x))(bits) == expected_exp


class Script:
    """A source that plays back given bytes and fails when they run out."""

    is_secure = False

    def __init__(self, *parts):
        self.parts = list(parts)

    def read(self, n, /):
        part = self.parts.pop(0)
        assert len(part) == n
        return part


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_tie_reads_on_and_decides_at_the_first_difference(offset):
    chance = chance_odds(Fraction(1), Fraction(4))
    first, next_64 = chance(16), chance(80) & (2**64 - 1)
    words = np.array([first - 1, first, first + 1], dtype="<u2").tobytes()
    more = (next_64 + offset).to_bytes(8, "little")
    parts = [words, more]
    if offset == 0:  # still a tie after 80 bits
        parts.append(((chance(144) & (2**64 - 1)) - 1).to_bytes(8, "little"))
    source = Script(*parts)
    heads = bernoulli_odds(1, 3, factor=4, source=source)
    assert heads.tolist() == [True, offset <= 0, False]
    assert not source.parts


@pytest.mark.parametrize(
    ("coin", "bad"),
    [
        (noise.bernoulli, {"p": 1.5}),
        (noise.bernoulli, {"p": float("nan")}),
        (noise.bernoulli, {"p": True}),
        (noise.bernoulli_exp, {"x": -1}),
        (noise.bernoulli_logistic, {"x": float("inf")}),
        (bernoulli_odds, {"x": 1, "factor": 0}),
        (bernoulli_odds, {"x": "1", "factor": 1}),
    ],
)
def test_bad_parameters_draw_nothing(coin, bad, no_randomness):
    for size in (None, 3):
        with pytest.raises(ParameterError):
            coin(**bad, size=size, source=no_randomness)


def test_certain_coins_and_shapes():
    assert noise.bernoulli(1, size=(2, 2)).all()
    assert not noise.bernoulli(0, size=1000).any()
    assert noise.bernoulli_exp(0, size=5).all()
    assert bernoulli_odds(1, factor=2, size=(2, 0)).shape == (2, 0)
    assert isinstance(bernoulli_odds(1, factor=2), bool)
