"""A law of preference keeps its promise as exactly as 64 bits allow."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.local import BitCoins, Preference
from discreet.noise.enclosure import exp_bounds

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=60)


def is_within(ratio, epsilon):
    _, high = exp_bounds(Fraction(epsilon), 500)
    return ratio * high <= 2**500


@given(epsilon=epsilons, outputs=st.integers(2, 10**9), data=st.data())
def test_no_ratio_is_above_the_promise_and_one_more_would_be(epsilon, outputs, data):
    preferred = data.draw(st.integers(1, outputs - 1))
    try:
        law = Preference.calibrated(epsilon=epsilon, outputs=outputs, preferred=preferred)
    except ParameterError:
        return  # an epsilon below what the coins can tell
    assert is_within(law.ratio, epsilon)
    assert is_within(law.ratio, law.epsilon)
    if law.keep + 1 < 2**64:
        bolder = Preference(outputs=outputs, preferred=preferred, keep=law.keep + 1)
        assert not is_within(bolder.ratio, epsilon)


@given(outputs=st.integers(2, 50), keep=st.integers(1, 2**64 - 1), data=st.data())
def test_hits_are_chances_of_sets(outputs, keep, data):
    preferred = data.draw(st.integers(1, outputs - 1))
    own, other = Fraction(keep, preferred), Fraction(2**64 - keep, outputs - preferred)
    if own <= other:
        with pytest.raises(ParameterError, match="keep"):
            Preference(outputs=outputs, preferred=preferred, keep=keep)
        return
    law = Preference(outputs=outputs, preferred=preferred, keep=keep)
    shared = data.draw(st.integers(0, preferred))
    assert law.hit(shared=shared) == (own * shared + other * (preferred - shared)) / 2**64


@given(epsilon=st.fractions(min_value=Fraction(1, 10**6), max_value=40))
def test_bit_coins_keep_the_promise_and_one_less_would_not(epsilon):
    for law in (BitCoins.symmetric(epsilon=epsilon), BitCoins.optimized(epsilon=epsilon)):
        assert is_within(law.ratio, epsilon)
        assert is_within(law.ratio, law.epsilon)
    flat = BitCoins.optimized(epsilon=epsilon)
    assert not is_within(BitCoins(own=flat.own, other=flat.other - 1).ratio, epsilon)
    even = BitCoins.symmetric(epsilon=epsilon)
    assert not is_within(BitCoins(own=even.own + 1, other=even.other - 1).ratio, epsilon)


def test_impossible_laws_are_refused():
    for bad in ({"outputs": 1}, {"preferred": 4}, {"preferred": 0}, {"keep": 0}, {"keep": 2**64}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            Preference(**({"outputs": 4, "preferred": 1, "keep": 2**63} | bad))
    for own, other in ((0, 1), (2**64, 1), (5, 5), (5, 6), (5, 0)):
        with pytest.raises(ParameterError, match=r"own|other"):
            BitCoins(own=own, other=other)
    for make in (BitCoins.symmetric, BitCoins.optimized):
        with pytest.raises(ParameterError, match="epsilon"):
            make(epsilon=1e-30)
