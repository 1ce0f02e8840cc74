"""The range of an expression holds whatever the expression can be."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.tables.sql.expressions import intervals
from discreet.tables.sql.expressions.intervals import Interval

ENDS = st.fractions(min_value=-20, max_value=20, max_denominator=8)


@st.composite
def inside(draw: st.DrawFn) -> tuple[Interval, Fraction]:
    """Draw an interval, perhaps open to one side or both, and a number in it."""
    x, below, above = draw(ENDS), draw(ENDS), draw(ENDS)
    low = draw(st.sampled_from([None, x - abs(below), x]))
    high = draw(st.sampled_from([None, x + abs(above), x]))
    return (low, high), x


def holds(interval: Interval, x: Fraction) -> bool:
    low, high = interval
    return (low is None or low <= x) and (high is None or x <= high)


@pytest.mark.lengthy
@given(one=inside(), other=inside())
def test_arithmetic_stays_inside(
    one: tuple[Interval, Fraction], other: tuple[Interval, Fraction]
) -> None:
    (a, x), (b, y) = one, other
    assert holds(intervals.add(a, b), x + y)
    assert holds(intervals.subtract(a, b), x - y)
    assert holds(intervals.multiply(a, b), x * y)
    assert holds(intervals.negate(a), -x)
    assert holds(intervals.absolute(a), abs(x))
    assert holds(intervals.hull([a, b]), x)
    if y != 0:
        assert holds(intervals.divide(a, b), x / y)
    for rounding in (math.floor, math.ceil, round, math.trunc):
        assert holds(intervals.rounded(a), Fraction(rounding(x)))


@pytest.mark.lengthy
@given(parts=st.lists(st.tuples(inside(), st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_least_and_greatest_leave_nulls_out(
    parts: list[tuple[tuple[Interval, Fraction], bool, bool]],
) -> None:
    spans = [span for (span, _), _, _ in parts]
    always = [is_always for _, is_always, _ in parts]
    there = [x for (_, x), is_always, is_there in parts if is_always or is_there]
    if there:
        assert holds(intervals.least(spans, always), min(there))
        assert holds(intervals.greatest(spans, always), max(there))


@pytest.mark.lengthy
@given(one=inside())
def test_increasing_functions_are_rounded_outwards(one: tuple[Interval, Fraction]) -> None:
    span, x = one
    found = intervals.monotone(math.exp, span, least=0.0)
    assert holds(found, Fraction(math.exp(float(x))))
    if x >= 0:
        low = max(span[0], Fraction(0)) if span[0] is not None else Fraction(0)
        root = intervals.monotone(math.sqrt, (low, span[1]), least=0.0)
        assert holds(root, Fraction(math.sqrt(float(x))))


def test_ranges_are_tight_where_that_is_easy() -> None:
    unit = (Fraction(0), Fraction(1))
    assert intervals.add(unit, unit) == (0, 2)
    assert intervals.multiply((Fraction(-1), Fraction(2)), (Fraction(-3), Fraction(1))) == (-6, 3)
    assert intervals.absolute((Fraction(-3), Fraction(-1))) == (1, 3)
    assert intervals.divide(unit, (Fraction(-2), Fraction(-1))) == (-1, 0)
    assert intervals.divide(unit, (Fraction(-1), Fraction(1))) == intervals.ANY


def test_bounds_cannot_be_made_to_grow_without_end() -> None:
    span: Interval = (Fraction(1, 3), Fraction(7, 3))
    for _ in range(40):  # doubles the digits each time, or would
        span = intervals.multiply(span, span)
    assert span == intervals.ANY


@pytest.mark.parametrize("end", [Fraction(10) ** 400, None])
def test_only_finite_bounds_are_bounds(end: Fraction | None) -> None:
    assert intervals.bounded((Fraction(0), end)) is None
