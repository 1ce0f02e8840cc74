"""Rows of protected tables for others to compute with: whose they are, and how values look."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee, Sensitive, Unit
from discreet.tables import protect
from discreet.tables.rows import UNIT, read_public, read_rows

FRAME = pa.table(
    {
        "who": pa.array(["a", "a\0", "a", None, "b"]),
        "age": pa.array([1, None, 3, 4, 5], pa.int32()),
        "pay": pa.array([0.5, float("nan"), None, 4.0, float("inf")]),
        "ok": pa.array([True, None, False, True, True]),
        "day": pa.array([datetime.date(2026, 1, 31), None, None, None, None]),
        "bytes": pa.array([b"x"] * 5),
    }
)


@pytest.fixture
def tables(tmp_path):
    def make(unit="who", source=FRAME, **more):
        return protect(
            source, name="t", unit=unit, guarantee=Guarantee(epsilon=1, delta=1e-6),
            ledger=tmp_path / "budget.db", **more,
        )  # fmt: skip

    return make


def read(protected, *columns):
    found = read_rows(protected, columns, table="t")
    assert isinstance(found, Sensitive)
    return found.reveal_without_noise()


def test_units_are_told_apart_exactly_and_nobody_has_no_rows(tables):
    with tables() as protected:
        found = read(protected, "age")
    ages = dict(zip(found["age"].tolist(), found[UNIT].tolist(), strict=True))
    assert len(found[UNIT]) == 4  # the row of nobody is left out
    assert found[UNIT].dtype == np.int64
    by_age = {age: unit for age, unit in ages.items() if age == age}
    assert by_age[1.0] == by_age[3.0] != by_age[5.0]
    assert len(set(found[UNIT].tolist())) == 3  # a text with a zero at its end is another


def test_values_look_as_they_do_to_questions(tables):
    with tables(unit=Unit.record()) as protected:
        found = read(protected, "age", "pay", "ok", "day")
    assert UNIT not in found
    order = np.argsort(np.nan_to_num(found["age"], nan=2))
    assert np.isnan(found["pay"][order][1:3]).all()
    assert found["pay"][order][4] == np.inf
    assert found["ok"][order].tolist() == [True, None, False, True, True]
    assert found["day"][order][0] == "2026-01-31"


def test_a_column_of_no_use_is_refused_by_its_type(tables):
    with tables() as protected, pytest.raises(ParameterError, match="BLOB"):
        read_rows(protected, ["bytes"], table="t")


@pytest.mark.lengthy
def test_public_rows_come_from_files_that_are_not_protected(tables, tmp_path):
    (tmp_path / "own.csv").write_text("who,age\na,1\nb,2\n")
    (tmp_path / "other.csv").write_text("age,more\n7,x\n8,y\n")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "own.csv")
    with tables(source=str(tmp_path / "own.csv")) as protected:
        asked = {"columns": ["age"], "table": "t"}
        found = read_public(protected, **asked, place=str(tmp_path / "other.csv"))
        assert sorted(found["age"].tolist()) == [7, 8]
        for name in ("own.csv", "link.csv"):
            with pytest.raises(ParameterError, match="same data as the protected table"):
                read_public(protected, **asked, place=str(tmp_path / name))
        with pytest.raises(DataError, match="has no column 'who'"):
            read_public(protected, ["who"], table="t", place=str(tmp_path / "other.csv"))


@pytest.mark.lengthy
def test_rows_that_changed_are_registered_first(tables, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("who,age\na,1\n")
    with tables(source=str(path)) as protected:
        before = protected.account.sources()
        path.write_text("who,age\na,1\nb,2\n")
        assert sorted(read(protected, "age")["age"].tolist()) == [1, 2]
        assert protected.account.sources() != before
