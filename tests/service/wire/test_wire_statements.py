"""Cutting text into statements, and questions with values in them."""

import time
from contextlib import suppress

import pytest
import sqlglot
from sqlglot import exp

from discreet.service.wire.protocol.failures import WireFailure, failure_of
from discreet.service.wire.session.execution import questioned
from discreet.service.wire.session.questions import (
    asked_question,
    parameter_types,
    shape_question,
)
from discreet.service.wire.session.statements import cut, parsed, without_public


def test_text_is_cut_at_semicolons_and_nowhere_else():
    text = "SELECT ';' ; -- no; \n BEGIN;; SHOW x; EXPLAIN SELECT $$;$$ /* ; */"
    found = cut(text)
    assert [one.first for one in found] == ["SELECT", "BEGIN", "SHOW", "EXPLAIN"]
    assert all(text[one.offset :].startswith(one.text) for one in found)
    assert cut(" ; \n -- nothing\n") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT $1,$2", 2), ("SELECT 1 IN ($1,$2,$3)", 3), ("SELECT $1+$2||$3", 3),
        ("SELECT $1::int,$2::int", 2), ("SELECT E'\\'$1,', \"$2,\", a$3,$$ $4,$$,$a$ $5,$a$ "
        "-- $6,\n,$1/* $7,$8 */,$2", 2),
    ],
)  # fmt: skip
def test_parameters_need_no_blanks_between_them(text, count):
    """Drivers write IN (?,?) as IN ($1,$2), of which the parser takes $1,$ for a quote."""
    (found,) = cut(text)
    assert found.parameters == count
    for quoted in ("'$1,'", '"$2,"', "a$3", "$$ $4,$$", "$a$ $5,$a$"):
        assert (quoted in found.text) == (quoted in text)


@pytest.mark.parametrize(
    "text",
    ["/*" * 50_000, "$" * 100_000, "$a" * 50_000, "'" * 99_999, "$a$" * 33_333, "e'\\" * 33_000,
     "$" + "a" * 99_999, "$1" * 50_000, "".join(f"$a{number}$" for number in range(15_000))],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_finding_parameters_takes_no_longer_than_reading(text):
    started = time.process_time()
    with suppress(WireFailure):
        cut(text)
    assert time.process_time() - started < 10


def test_a_prepared_statement_is_one():
    with pytest.raises(WireFailure, match="one statement"):
        cut("SELECT 1; SELECT 2", single=True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT '", "42601"), ("x" * 100_001, "54000"), ("1 " * 20_000, "54000"),
        ("(" * 300, "54001"), ("[" * 300, "54001"), ('SELECT "', "42601"), ("/* a", "42601"),
    ],
)  # fmt: skip
def test_text_that_is_too_much_or_open_is_refused(text, code):
    with pytest.raises(WireFailure) as caught:
        cut(text)
    assert caught.value.code == code


def asked(text, *values):
    (statement,) = cut(text)
    return asked_question(statement, [exp.convert(value) for value in values], "people")


def test_a_question_without_values_goes_to_the_desk_as_it_was_written():
    text = "SELECT  COUNT(*)\nFROM people -- all"
    assert asked(text).text == text


def test_names_of_the_only_schema_are_blanked():
    for name in ("public.people", '"public"."people"', "people.public.people"):
        (statement,) = cut(f"SELECT COUNT(*) FROM {name} WHERE public.people.age > 1")
        made = without_public(statement, "people")
        assert len(made) == len(statement.text)
        meant = "SELECT COUNT(*) FROM people WHERE people.age > 1"
        assert made.replace('"', "").split() == meant.split()


def test_values_are_literals_whatever_they_say():
    hostile = "x' OR 1=1; DROP TABLE people --"
    made = asked("SELECT COUNT(*) FROM people WHERE sex = $1 AND age > $2::int", hostile, 30)
    tree = sqlglot.parse_one(made.text, read="duckdb")
    assert [one.this for one in tree.find_all(exp.Literal)] == [hostile, "30"]
    assert len(sqlglot.parse(made.text, read="duckdb")) == 1


def test_every_parameter_needs_a_value():
    for text in ("SELECT COUNT(*) FROM people WHERE age > $2", "SELECT $2::int"):
        with pytest.raises(WireFailure) as caught:
            asked(text, 1)
        assert caught.value.code == "08P01"


def test_the_shape_of_a_question_needs_no_values():
    (statement,) = cut(
        "SELECT sex, COUNT(*) AS n FROM people WHERE sex = $1 GROUP BY sex HAVING COUNT(*) > $2 "
        "LIMIT $3"
    )
    made = shape_question(statement, [25, 701, 20], "people").text
    assert made == "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def test_types_of_parameters_are_those_said_or_cast_to():
    (statement,) = cut("SELECT $1::bigint, $2, CAST($3 AS date), $4 LIMIT $5")
    assert parameter_types(statement, [0, 0, 0, 16]) == [20, 25, 1082, 16, 20]


def test_explain_is_about_the_question_after_it():
    assert questioned(cut("EXPLAIN VERBOSE SELECT 1")[0]).text == "SELECT 1"
    assert questioned(cut("explain (costs off) (select 1)")[0]).text == "(select 1)"
    assert questioned(cut("SET x = 1")[0]) is None
    for text in ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN (FORMAT JSON) SELECT 1", "EXPLAIN",
                 "EXPLAIN DROP TABLE x"):  # fmt: skip
        with pytest.raises(WireFailure):
            questioned(cut(text)[0])


def test_mistakes_of_ours_are_told_in_one_fixed_text():
    for error in (ValueError("alice earns 7"), KeyError("alice"), MemoryError("alice")):
        told = failure_of(error)
        assert told.code == "XX000"
        assert "alice" not in str(told.fields())


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
@pytest.mark.parametrize("opened", ["DATE(", "ARRAY[", "CHAR(", "STRUCT(", "DECIMAL("])
def test_no_text_keeps_the_parser_busy_for_long(dialect, opened):
    """Each level took it twice as long as the one before; 40 of them are longer than a life."""
    closed = {"(": ")", "[": "]"}[opened[-1]]
    with pytest.raises(WireFailure) as caught:
        parsed("SELECT " + 40 * opened + "1" + 40 * closed, dialect)
    assert caught.value.code == "54001"
    assert parsed(f"SELECT {3 * opened}1{3 * closed}", dialect) is not None
