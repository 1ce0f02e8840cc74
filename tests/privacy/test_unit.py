"""Units read well, survive JSON, and take every string for a column."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.privacy import Period, Unit

names = st.text(min_size=1).filter(lambda s: s.strip())


@st.composite
def units(draw):
    make = draw(st.sampled_from([Unit.column, Unit.household, lambda _: Unit.record()]))
    unit = make(draw(names))
    if unit.kind != "record" and draw(st.booleans()):
        unit = unit.per(draw(st.sampled_from(list(Period))), time=draw(st.none() | names))
    return unit.group(draw(st.integers(1, 9)))


@given(unit=units())
def test_json_brings_the_same_unit_back(unit):
    assert Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit


@given(unit=units())
def test_repr_builds_the_same_unit(unit):
    assert eval(repr(unit), {"Unit": Unit}) == unit


@pytest.mark.lengthy
@given(unit=units(), other=units())
def test_equal_units_are_interchangeable(unit, other):
    assert (unit == other) == (unit.to_dict() == other.to_dict())
    assert len({unit, Unit.from_dict(unit.to_dict())}) == 1


@given(name=names)
def test_a_string_is_always_a_column(name):
    assert Unit.of(name) == Unit.column(name)


def test_even_a_string_that_sounds_like_something_else():
    assert Unit.of("record") == Unit.column("record") != Unit.record()
    assert Unit.of("household") != Unit.household("household")


@given(unit=units())
def test_of_keeps_units(unit):
    assert Unit.of(unit) is unit


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (Unit.record(), "one record"),
        (Unit.record().group(3), "any 3 records"),
        (Unit.column("user_id"), "all records of one user_id"),
        (Unit.column("user_id").per("month"), "all records of one user_id in one month"),
        (
            Unit.column("user_id").per("day", time="at").group(2),
            "all records of any 2 values of user_id in one day of at",
        ),
        (Unit.household("home"), "all records of one household (home)"),
        (Unit.household("home").group(2), "all records of any 2 households (home)"),
    ],
)
def test_units_read_as_sentences(unit, text):
    assert str(unit) == text


def test_groups_of_groups_multiply_and_order_does_not_matter():
    assert Unit.record().group(2).group(3) == Unit.record().group(6)
    user = Unit.column("u")
    assert user.group(2).per("week") == user.per("week").group(2)


@pytest.mark.parametrize("bad", ["", "  ", None, 3, b"user"])
def test_a_column_needs_a_name(bad):
    with pytest.raises(ParameterError, match="name of a column"):
        Unit.column(bad)
    with pytest.raises(ParameterError, match="name of a column"):
        Unit.of(bad)


@pytest.mark.parametrize("bad", ["hour", "Day", "", None, 7])
def test_unknown_periods_are_refused(bad):
    with pytest.raises(ParameterError, match="period must be one of day, week, month, year"):
        Unit.column("u").per(bad)


def test_a_record_has_no_period_and_no_column():
    with pytest.raises(ParameterError, match=r"Unit\.column\(name\)\.per"):
        Unit.record().per("day")
    with pytest.raises(ParameterError, match="a record has no column"):
        Unit(kind="record", name="user_id")


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2"])
def test_bad_group_sizes(bad):
    with pytest.raises(ParameterError, match=r"^k must be"):
        Unit.record().group(bad)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "person"},
        {"kind": "column"},
        {"kind": "record", "name": "x"},
        {"kind": "column", "name": "x", "period": "hour"},
        {"kind": "column", "name": "x", "time": "t"},
        {"kind": "column", "name": "x", "size": 0},
        {"kind": "column", "name": "x", "until": 2030},
    ],
)
def test_bad_data_is_refused(bad):
    with pytest.raises(ParameterError):
        Unit.from_dict(bad)


def test_a_unit_is_frozen():
    with pytest.raises(AttributeError):
        Unit.record().size = 2
