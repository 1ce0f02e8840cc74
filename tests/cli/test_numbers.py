"""Numbers on the command line: read exactly, shown on the safe side."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._words import of_100
from discreet.cli.numbers import for_json, parse, parse_exactly


@given(number=st.integers() | st.floats(allow_nan=False))
def test_parse_reads_what_python_writes(number):
    assert parse(repr(number)) == number
    assert type(parse(repr(number))) is type(number)


@given(number=st.fractions())
def test_parse_reads_fractions(number):
    assert parse(f"{number.numerator}/{number.denominator}") == number


@pytest.mark.parametrize("text", ["", "lots", "1/0", "1/x", "0x10"])
def test_what_is_no_number_is_handed_on(text):
    assert parse(text) == text


@given(number=st.decimals(allow_nan=False, allow_infinity=False, min_value=-9, max_value=9))
def test_decimals_are_what_they_say(number):
    assert parse_exactly(str(number)) == Fraction(number)


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "nan", "inf", "lots", "1/0", ""])
def test_monstrous_exponents_are_not_written_out(text):
    found = parse_exactly(text)
    assert not isinstance(found, Fraction)
    assert repr(found) == repr(parse(text))


@given(percent=st.integers(0, 1000))
def test_of_100_is_exact_for_what_it_can_show(percent):
    share = Fraction(percent, 1000)
    assert of_100(share, up=True) == of_100(share, up=False)
    assert Fraction(of_100(share, up=True)) == 100 * share


@given(share=st.floats(0, 1) | st.fractions(0, 1))
def test_of_100_brackets_the_share(share):
    low, high = Fraction(of_100(share, up=False)), Fraction(of_100(share, up=True))
    assert 0 <= low <= 100 * Fraction(share) <= high <= 100
    assert high - low <= Fraction(1, 10)


def test_of_100_has_no_signed_zero_and_no_exponent():
    assert of_100(0.0, up=False) == "0"
    assert of_100(1e-300, up=True) == "0.001"
    assert of_100(1.0, up=True) == "100"


def test_json_never_sees_an_infinity():
    assert for_json(Fraction(10**400)) == str(10**400)
    assert math.isfinite(for_json(Fraction(1, 3)))
