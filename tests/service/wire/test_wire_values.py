"""Values on their way: text and binary, both directions, and literals that cannot break out."""

import struct
from datetime import date, datetime, time
from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.values.encoding import encoded
from discreet.service.wire.values.parameters import decoded, literal, sample
from discreet.service.wire.values.types import TYPES, answer_type, declared_type, type_named

VALUES = [
    (True, "bool", b"t", b"\1"),
    (False, "bool", b"f", b"\0"),
    (7, "int2", b"7", b"\0\7"),
    (-7, "int4", b"-7", b"\xff\xff\xff\xf9"),
    (2**40, "int8", b"1099511627776", b"\0\0\1\0\0\0\0\0"),
    (7.0, "int8", b"7", b"\0\0\0\0\0\0\0\7"),  # a column of whole numbers with a NULL in it
    (12.5, "float8", b"12.5", struct.pack("!d", 12.5)),
    (1e300, "float8", b"1e+300", struct.pack("!d", 1e300)),
    (float("inf"), "float8", b"Infinity", struct.pack("!d", float("inf"))),
    (float("nan"), "float8", b"NaN", struct.pack("!d", float("nan"))),
    ("grün", "text", "grün".encode(), "grün".encode()),
    (date(2000, 1, 2), "date", b"2000-01-02", b"\0\0\0\1"),
    ("1999-12-31", "date", b"1999-12-31", b"\xff\xff\xff\xff"),
    (datetime(2000, 1, 1, 0, 0, 1), "timestamp", b"2000-01-01 00:00:01",  # noqa: DTZ001
     struct.pack("!q", 10**6)),
    (time(1, 2, 3), "time", b"01:02:03", struct.pack("!q", 3723 * 10**6)),
    (None, "int8", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "type_", "text", "binary"), VALUES)
def test_values_are_written_as_postgresql_does(value, type_, text, binary):
    assert encoded(value, type_named(type_), is_binary=False) == text
    assert encoded(value, type_named(type_), is_binary=True) == binary


@pytest.mark.parametrize(("value", "type_", "text", "binary"), VALUES)
def test_values_come_back(value, type_, text, binary):
    oid = type_named(type_).oid
    if type_ == "time" or value != value or value == float("inf"):
        return  # no parameters
    meant = date.fromisoformat(value) if isinstance(value, str) and type_ == "date" else value
    assert decoded(text, oid, is_binary=False) == meant
    assert decoded(binary, oid, is_binary=True) == meant


@pytest.mark.parametrize(
    ("value", "type_"), [(1.5, "int8"), (2**64, "int8"), ("x", "float8"), ("x", "date")]
)
def test_values_that_do_not_fit_say_so_without_being_shown(value, type_):
    for is_binary in (False, True):
        with pytest.raises(WireFailure) as caught:
            encoded(value, type_named(type_), is_binary=is_binary)
        assert caught.value.code == "22003"
        assert str(value) not in caught.value.message


def numeric(count, weight, sign, *groups):
    return struct.pack(f"!HhHH{len(groups)}H", count, weight, sign, 0, *groups)


@pytest.mark.parametrize(
    ("value", "type_", "meant"),
    [
        (numeric(2, 0, 0, 1, 5000), "numeric", Decimal("1.5")),
        (numeric(1, -1, 0x4000, 1), "numeric", Decimal("-0.0001")),
        (numeric(0, 0, 0), "numeric", Decimal(0)),
        (numeric(1, 3, 0, 12), "numeric", Decimal(12) * 10**12),
        (numeric(7, 6, 0, 1, 2, 3, 4, 5, 6, 7), "numeric", Decimal("1000200030004000500060007")),
        (struct.pack("!q", 3723 * 10**6 + 5), "time", "01:02:03.000005"),
        (bytes(range(16)), "uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ],
)
def test_binary_values_that_drivers_send_are_read(value, type_, meant):
    assert decoded(value, type_named(type_).oid, is_binary=True) == meant
    assert literal(decoded(value, type_named(type_).oid, is_binary=True)).sql("duckdb")


def test_texts_that_drivers_send_are_read():
    day, key = type_named("date").oid, type_named("uuid").oid
    assert decoded(b"1970-01-01 +00", day, is_binary=False) == date(1970, 1, 1)  # JDBC's setDate
    found = decoded(b"000102030405060708090a0b0c0d0e0f", key, is_binary=False)
    assert found == "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("value", "oid", "is_binary", "code"),
    [
        (b"x", 23, False, "22P02"), (b"1e999999", 1700, False, "22P02"),
        (b"1" * 100, 20, False, "22P02"), (b"nan", 701, False, "22P02"),
        (b"maybe", 16, False, "22P02"), (b"\0", 23, True, "22P02"), (b"\xff", 25, True, "22P02"),
        (b"x", 0, True, "42P18"), (b"\0\0", 17, True, "0A000"), (b"\0\0", 1700, True, "22P02"),
        (b"2000-13-01", 1082, False, "22P02"), (b"\x7f\xff\xff\xff", 1082, True, "22P02"),
        (b"\x7f" + b"\xff" * 7, 1114, True, "22P02"), (b"\0" * 3, 2950, True, "22P02"),
        (numeric(1, 0, 0xC000), 1700, True, "22P02"), (numeric(1, 0, 0, 10_000), 1700, True,
        "22P02"), (numeric(1, 30_000, 0, 1), 1700, True, "22P02"), (numeric(2, 0, 0, 1), 1700, True,
        "22P02"), (numeric(500, 0, 0, *[1] * 500), 1700, True, "22P02"),
        (b"\xff" * 8, 1083, True, "22P02"), (b"no", 2950, False, "22P02"),
    ],
)  # fmt: skip
def test_parameters_that_are_no_values_are_refused(value, oid, is_binary, code):
    with pytest.raises(WireFailure) as caught:
        decoded(value, oid, is_binary=is_binary)
    assert caught.value.code == code


def test_numbers_that_are_not_finite_are_no_literals():
    for value in (float("inf"), float("nan")):
        with pytest.raises(WireFailure):
            literal(value)
    with pytest.raises(WireFailure):
        literal("a\0b")


@given(st.text().filter(lambda text: "\0" not in text))
def test_no_text_gets_out_of_its_literal(text):
    """Whatever a text says, it is one literal, of the same text, wherever it is put."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    for dialect in ("duckdb", "postgres"):
        sql = sqlglot.exp.select(literal(text)).sql(dialect)
        (only,) = sqlglot.parse_one(sql, read=dialect).expressions
        assert only == sqlglot.exp.Literal.string(text)


@given(st.decimals(min_value=-1e20, max_value=1e20, places=9))
def test_decimals_are_written_out(value):
    assert Decimal(literal(value).sql("duckdb").replace(" ", "")) == value


def test_types_have_one_number_each_and_a_sample():
    assert len({one.oid for one in TYPES}) == len(TYPES)
    for one in TYPES:
        assert sample(one.oid, 3).sql("duckdb")


def test_types_of_columns_have_types_of_answers():
    assert declared_type("UBIGINT").name == "numeric"
    assert answer_type("UBIGINT").name == "float8"
    assert answer_type("HUGEINT").name == "int8"
    assert answer_type("BLOB").name == "text"
