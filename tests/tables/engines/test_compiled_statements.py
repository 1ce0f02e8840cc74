"""The text of statements: one SELECT, the same for equal statements, readable by other dialects."""

import logging
from dataclasses import replace
from fractions import Fraction

import pytest
import sqlglot

from discreet.errors import ParameterError
from discreet.tables.engines.compile.keys import key_text
from discreet.tables.engines.compile.statement import compile as compile_in
from discreet.tables.engines.compile.text import as_double, number
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.bounds import Groups, Norm
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Distinct, Profile, Sums, ValueGrid


def compiled(statement):
    return compile_in(statement, dialect=DUCKDB).text


QUERY = Query(
    rows=Select.of("t", unit="user_id", key_0="region", key_1="day", value_0="x", value_1="y"),
    keys=(
        Key(name="region", type="text", values=None),
        Key(name="day", type="date", values=None),
    ),
    values=(Value(text="x", bounds=None), Value(text="y", bounds=None)),
    tables=("t",),
)
BOUNDS = ((Fraction(0), Fraction(200_000)), (Fraction(-1, 3), Fraction(1)))
CELLS = (
    Cells(kind="rows"),
    Cells(kind="present", values=(0,), with_absent=True),
    Cells(kind="sum", values=(0,), bounds=BOUNDS[:1]),
    Cells(kind="linear", values=(0,), bounds=BOUNDS[:1]),
    Cells(kind="quadratic", values=(1,), bounds=BOUNDS[1:]),
    Cells(kind="moments", values=(0, 1), bounds=BOUNDS, with_absent=True),
)
UNITS = Cells(kind="units", own=Norm(limit=2, order=2))
TOTAL = Cells(kind="total", values=(0,), bounds=BOUNDS[:1], own=Norm(limit=9, order=2))
SUMS = Sums(query=QUERY, cells=CELLS, bounding=Norm(limit=3, order=2), salt="secret")
STATEMENTS = {
    "norm": SUMS,
    "first norm": replace(SUMS, bounding=Norm(limit=3, order=1)),
    "groups": replace(SUMS, bounding=Groups(groups=2, rows=3)),
    "rows": replace(SUMS, bounding=None, query=replace(QUERY, unit_is_row=True)),
    "place": replace(
        SUMS, cells=CELLS[:1], grid=ValueGrid(value=0, low=Fraction(0), high=Fraction(9), points=10)
    ),
    "least": replace(SUMS, least=Fraction(1, 2)),
    "units": replace(SUMS, cells=(UNITS, *CELLS), least=Fraction(1, 2)),
    "total": replace(SUMS, cells=(TOTAL,), bounding=None),
    "totals": Profile(
        query=QUERY, of="total", edges=(Fraction(1),), value=0, bounds=BOUNDS[0], order=2
    ),
    "listed": replace(SUMS, groups=(("a", "2026-01-31"), (None, None), ("b", "2026-01-31"))),
    "crossed": replace(SUMS, groups=tuple((a, d) for a in "ab" for d in ("2026-01-31", None))),
    "distinct": Distinct(query=QUERY, value=0, most=3, salt="secret"),
    "profile": Profile(query=QUERY, of="norm", edges=(Fraction(1), Fraction(5, 2))),
    "largest": Profile(query=QUERY, of="largest", edges=(Fraction(1), Fraction(5, 2)), value=0),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres"])
def test_sqlglot_reads_and_transpiles(name, dialect):
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    (parsed,) = sqlglot.parse(compiled(STATEMENTS[name]), read="duckdb")
    assert isinstance(parsed, sqlglot.exp.Select)
    assert parsed.sql(dialect=dialect)


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_salt_is_a_parameter(name):
    text = compiled(STATEMENTS[name])
    assert "secret" not in text
    assert ("$salt" in text) == (name in ("groups", "distinct"))


def test_ranks_are_left_out_where_nothing_can_be_dropped():
    few = replace(STATEMENTS["groups"], groups=(("a", None), ("b", None)))
    assert "$salt" not in compiled(few)
    assert "$salt" in compiled(replace(few, bounding=Groups(groups=1, rows=3)))


@pytest.mark.parametrize(("limit", "type_"), [(2047, "INTEGER"), (2048, "BIGINT")])
def test_cells_are_as_narrow_as_the_limit_allows(limit, type_):
    rows = replace(SUMS, cells=CELLS[:1], bounding=Norm(limit=limit, order=2))
    assert f"CAST(TRUNC((1048576 * row_count) * weight) AS {type_})" in compiled(rows)


def test_a_value_that_all_cells_are_of_is_looked_for_once():
    mean = replace(SUMS, cells=CELLS[3:4])
    assert mean.needed == (0,)
    text = compiled(mean)
    assert text.count("value_0 IS NOT NULL") == 1
    assert "COUNT(value_0)" not in text
    assert "value_0 IS NULL" not in text
    for beside in (CELLS[0], CELLS[1], CELLS[4], UNITS):
        both = replace(mean, cells=(beside, *mean.cells))
        assert both.needed == ()
        assert "COUNT(value_0)" in compiled(both)


def test_one_group_needs_no_join():
    alone = replace(SUMS, query=replace(QUERY, keys=()))
    assert " JOIN " not in compiled(alone).replace("\n", " ")
    assert " JOIN " in compiled(SUMS).replace("\n", " ")


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"bounding": None}, "bounding"),
        ({"query": replace(QUERY, unit_is_row=True)}, "bounding"),
        ({"bounding": Groups(groups=1, rows=1), "least": Fraction(1)}, "least"),
        ({"cells": ()}, "cells"),
        ({"cells": (Cells(kind="units"),)}, "cells"),
        ({"cells": (replace(CELLS[0], own=Norm(limit=1, order=1)), CELLS[1])}, "cells"),
        ({"cells": (UNITS, *CELLS), "bounding": Groups(groups=1, rows=1)}, "bounding"),
        ({"cells": (UNITS,)}, "bounding"),
        ({"cells": (Cells(kind="linear", values=(0, 1), bounds=BOUNDS),)}, "cells"),
        ({"cells": (Cells(kind="linear", values=(0,)),)}, "bounds"),
        (
            {"cells": (Cells(kind="linear", values=(0,), bounds=((Fraction(1), Fraction(0)),)),)},
            "bounds",
        ),
        ({"groups": (("a",),)}, "groups"),
        ({"groups": (("a", b"x"),)}, "groups"),
        ({"groups": (("a\0", None),)}, "groups"),
    ],
)
def test_what_makes_no_sense_is_refused(change, parameter):
    with pytest.raises(ParameterError) as caught:
        compiled(replace(SUMS, **change))
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    "change",
    [{"edges": ()}, {"edges": (Fraction(2), Fraction(1))}, {"value": 0}, {"of": "largest"}],
)
def test_profiles_that_make_no_sense_are_refused(change):
    with pytest.raises(ParameterError):
        compiled(replace(STATEMENTS["profile"], **change))


@pytest.mark.parametrize("value", [0.1, 1e300, 5e-324, -2.0, 1 / 3, 123456789.123456789])
def test_numbers_are_read_back_as_they_were(value):
    import duckdb

    with duckdb.connect() as connection:
        asked = f"SELECT {number(value)}, TYPEOF({number(value)})"
        row = connection.execute(asked).fetchone()
    assert row == (value, "DOUBLE")


def test_bounds_beyond_all_doubles_are_the_last_ones():
    assert as_double(Fraction(10**400)) == 1.7976931348623157e308


def test_keys_have_the_type_of_their_column():
    day = Key(name="day", type="date", values=None)
    assert key_text(float("nan"), day) is key_text(None, day) is None
    assert key_text(True, Key(name="b", type="boolean", values=None)) == "true"
    assert key_text(3, Key(name="n", type="int64", values=None)) == "3"
    text = compiled(STATEMENTS["crossed"])
    assert "CAST(key_0 AS VARCHAR)" in text
    assert "CAST(key_1 AS DATE)" in text


def test_public_keys_are_no_part_of_the_text():
    few, many = ((tuple((f"it's {i}", None) for i in range(n))) for n in (2, 2000))
    made = [compile_in(replace(SUMS, groups=groups), dialect=DUCKDB) for groups in (few, many)]
    assert made[0].text == made[1].text
    assert [len(made[1].keys[0].columns[1][1]), len(made[1].keys[1].columns[1][1])] == [2000, 1]
