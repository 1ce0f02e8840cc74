"""Declarations: what is written is read back, what is wrong is refused with its place."""

import tomllib
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables import (
    Declaration,
    DeclaredColumn,
    DeclaredTable,
    column_kind,
    load,
)
from discreet.tables.declarations.reading import read_declaration

SMALL = """
name = "people"
unit = "user_id"
[guarantee]
epsilon = 3
[tables.people]
source = "people.parquet"
[tables.people.columns]
"""


def people(columns=None, **changes):
    table = DeclaredTable(source="people.parquet", columns=columns or {})
    usual = {
        "name": "people",
        "unit": Unit.column("user_id"),
        "guarantee": Guarantee(epsilon=3, delta=1e-6),
        "tables": {"people": table},
    }
    return Declaration(**{**usual, **changes})


def loaded(tmp_path, text):
    path = tmp_path / "people.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


# TOML cannot hold lone surrogates, and neither can a file in UTF-8.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(lambda name: bool(name.strip()))
numbers = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(),
)
bounds = (
    st.tuples(numbers, numbers)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: tuple(sorted(pair)))
)


def with_null(keys):
    return st.tuples(keys, st.booleans()).map(lambda p: (*p[0], None) if p[1] else tuple(p[0]))


keys = with_null(
    st.one_of(
        st.lists(texts, min_size=1, max_size=3, unique=True),
        st.lists(st.integers(-(10**20), 10**20), min_size=1, max_size=3, unique=True),
        st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=3, unique=True),
        st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
    )
)
columns = st.builds(
    DeclaredColumn,
    bounds=st.one_of(st.none(), bounds),
    keys=st.one_of(st.none(), keys),
    total=st.one_of(st.none(), numbers.filter(lambda number: number > 0)),
)
units = st.one_of(
    names.map(lambda name: Unit.column(f"u{name}")),
    names.map(lambda name: Unit.household(f"u{name}").group(2)),
    names.map(lambda name: Unit.column(f"u{name}").per("day", time=f"t{name}")),
    st.just(Unit.record()),
)


def uniquely(keys_of, values):
    return st.dictionaries(keys_of, values, max_size=3).filter(
        lambda made: len({name.lower() for name in made}) == len(made)
    )


tables = st.builds(
    DeclaredTable,
    source=st.one_of(st.none(), texts),
    columns=uniquely(texts.map(lambda name: f"c{name}"), columns),
)
counts = st.one_of(st.none(), st.integers(1, 10**9))
declarations = st.builds(
    Declaration,
    name=names,
    unit=units,
    guarantee=st.builds(
        Guarantee,
        epsilon=st.one_of(st.integers(0, 100), st.floats(0, 100), st.fractions(0, 100)),
        delta=st.one_of(st.just(0), st.floats(1e-300, 1), st.fractions(0, 1)),
    ),
    ledger=st.one_of(st.none(), texts),
    neighbours=st.sampled_from(Neighbours),
    tables=uniquely(texts.map(lambda name: f"p{name}"), tables).filter(bool),
    public=uniquely(texts.map(lambda name: f"q{name}"), tables),
    rows=counts,
    groups=counts,
    size=counts,
)


@pytest.mark.lengthy
@given(declaration=declarations)
def test_a_declaration_is_read_back_exactly(declaration, tmp_path_factory):
    path = tmp_path_factory.mktemp("declared") / "d.toml"
    path.write_text(declaration.to_toml(), encoding="utf-8", newline="\n")
    again = load(path)
    assert again == declaration
    assert again.to_toml() == declaration.to_toml()


@pytest.mark.lengthy
@given(declaration=declarations, type_=st.text(max_size=10))
def test_comments_about_types_change_nothing(declaration, type_):
    types = {
        name: {**dict.fromkeys(table.columns, type_), "zz\n[evil]": type_, "num": "INTEGER"}
        for name, table in declaration.tables.items()
    }
    commented = declaration.to_toml(types)
    assert read_declaration(tomllib.loads(commented), file="d.toml") == declaration


def test_the_file_is_small_and_readable(tmp_path):
    declared = people(
        {"region": DeclaredColumn(keys=("north", "south", None)),
         "income": DeclaredColumn(bounds=(0, 200_000))},
        ledger="budget.db", rows=10, public={"regions": DeclaredTable(source="regions.csv")},
    )  # fmt: skip
    assert declared.to_toml().split("\n", 1)[1] == (
        'name = "people"\nledger = "budget.db"\nunit = "user_id"\nneighbours = "add_remove"\n'
        "rows = 10  # of one unit count, at most\n\n[guarantee]\nepsilon = 3\ndelta = 1e-06\n\n"
        '[tables.people]\nsource = "people.parquet"\n\n[tables.people.columns]\n'
        'region = { keys = ["north", "south"], null = true }\n'
        'income = { bounds = [0, 200000] }\n\n[public.regions]\nsource = "regions.csv"\n'
    )


def test_infer_and_select_are_the_same_as_nothing(tmp_path):
    said = SMALL + 'age = { bounds = "infer", keys = "select" }\njob = {}\n'
    columns = loaded(tmp_path, said).tables["people"].columns
    assert columns == {"age": DeclaredColumn(), "job": DeclaredColumn()}


def test_dates_of_toml_become_iso_texts(tmp_path):
    made = loaded(tmp_path, SMALL + "day = { keys = [2026-01-01, 2026-01-02] }")
    assert made.tables["people"].columns["day"].keys == ("2026-01-01", "2026-01-02")


def test_values_of_numpy_and_dates_become_plain():
    declared = DeclaredColumn(bounds=[np.float64(0.5), np.int64(3)], keys=[np.str_("a"), "b"])
    assert declared == DeclaredColumn(bounds=(0.5, 3), keys=("a", "b"))
    assert people({"x": declared}).to_toml().endswith('{ bounds = [0.5, 3], keys = ["a", "b"] }\n')
    assert DeclaredColumn(keys=[np.bool_(True), None]).keys == (True, None)
    assert DeclaredColumn(keys=[date(2026, 1, 31)]).keys == ("2026-01-31",)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (SMALL + "age = { bound = [0, 1] }", "tables.people.columns.age.bound", "mean bounds?"),
        (SMALL + "age = { bounds = [5, 1] }", "tables.people.columns.age.bounds", "lower one"),
        (SMALL + "age = { bounds = [5, 5] }", "tables.people.columns.age.bounds", "lower one"),
        (SMALL + "age = { bounds = [nan, 1] }", "tables.people.columns.age.bounds", "finite"),
        (SMALL + "age = { bounds = [0, inf] }", "tables.people.columns.age.bounds", "finite"),
        (SMALL + "age = { bounds = [0] }", "tables.people.columns.age.bounds", "two numbers"),
        (SMALL + "age = { bounds = 7 }", "tables.people.columns.age.bounds", "two numbers"),
        (SMALL + 'age = { bounds = ["a", 1] }', "tables.people.columns.age.bounds", "number"),
        (SMALL + 'age = { bounds = ["1/0", 1] }', "tables.people.columns.age.bounds", "number"),
        (SMALL + "age = { bounds = [true, 2] }", "tables.people.columns.age.bounds", "number"),
        (SMALL + 'age = { bounds = "guess" }', "tables.people.columns.age.bounds", "infer"),
        (SMALL + "age = { keys = [] }", "tables.people.columns.age.keys", "at least one"),
        (SMALL + "age = { total = 0 }", "tables.people.columns.age.total", "above 0"),
        (SMALL + 'age = { total = "much" }', "tables.people.columns.age.total", "number"),
        (SMALL + "age = { keys = [1, 1] }", "tables.people.columns.age.keys", "once"),
        (SMALL + "age = { keys = [1, 1.0] }", "tables.people.columns.age.keys", "once"),
        (SMALL + 'age = { keys = [1, "a"] }', "tables.people.columns.age.keys", "all texts"),
        (SMALL + "age = { keys = [nan] }", "tables.people.columns.age.keys", "finite"),
        (SMALL + "age = { keys = [[1]] }", "tables.people.columns.age.keys", "all texts"),
        (SMALL + 'age = { keys = "all" }', "tables.people.columns.age.keys", "select"),
        (SMALL + "age = { null = true }", "tables.people.columns.age.null", "list of keys"),
        (SMALL + "age = { keys = [1], null = 3 }", "tables.people.columns.age.null", "true or"),
        (SMALL + "age = 7", "tables.people.columns.age", "table of keys"),
        (SMALL + "age = {}\nAGE = {}", "tables.people.columns", "upper and lower"),
        (SMALL + 'user_id = { keys = ["a"] }', "tables.people.columns.user_id.keys", "public"),
        (SMALL + 'User_ID = { keys = ["a"] }', "tables.people.columns.User_ID.keys", "public"),
        (SMALL.replace("unit =", "units ="), "units", "mean unit?"),
        (SMALL.replace('unit = "user_id"', ""), "unit", "missing"),
        (SMALL.replace('"user_id"', "7"), "unit", "table of keys"),
        (SMALL.replace('"user_id"', '" "'), "unit", "name of a column"),
        (SMALL.replace('"user_id"', '{ kind = "robot" }'), "unit", "kind must be"),
        (SMALL.replace('"user_id"', '{ knd = "record" }'), "unit.knd", "mean kind?"),
        (SMALL.replace('"user_id"', '{ kind = "record", size = "2" }'), "unit.size", "whole"),
        (SMALL.replace("epsilon = 3", ""), "guarantee.epsilon", "missing"),
        (SMALL.replace("epsilon = 3", "epsilon = -3"), "guarantee", "at least 0"),
        (SMALL.replace("epsilon = 3", "epsilon = nan"), "guarantee", "finite"),
        (SMALL.replace("epsilon = 3", "epsilon = true"), "guarantee.epsilon", "number"),
        (SMALL.replace("epsilon = 3", "epsilom = 3"), "guarantee.epsilom", "mean epsilon?"),
        (SMALL.replace("epsilon = 3", "epsilon = 3\ndelta = 2"), "guarantee", "delta"),
        (SMALL.replace("source =", "sources ="), "tables.people.sources", "mean source?"),
        (SMALL.replace('"people.parquet"', "7"), "tables.people.source", "text"),
        ("rows = 0\n" + SMALL, "rows", "at least 1"),
        ("rows = 1.5\n" + SMALL, "rows", "whole number"),
        ("rows = true\n" + SMALL, "rows", "whole number"),
        ("size = -1\n" + SMALL, "size", "at least 1"),
        ('neighbours = "friends"\n' + SMALL, "neighbours", "add_remove"),
        ("neighbours = 1\n" + SMALL, "neighbours", "text"),
        (SMALL.replace('"people"', '""'), "name", "not empty"),
        (SMALL.replace('name = "people"', ""), "name", "missing"),
        (SMALL + '[public.People]\nsource = "x"', "table", "upper and lower"),
        (SMALL.split("[tables")[0], "tables", "at least one"),
        ("tables = 1\n" + SMALL.split("[tables")[0], "tables", "table of keys"),
        ("not toml", "path", "no TOML"),
        (SMALL + "age = { bounds = [0, 1] }\nage = {}", "path", "no TOML"),
    ],
)
def test_what_is_wrong_is_refused_with_file_and_place(tmp_path, text, place, words):
    with pytest.raises(ParameterError) as caught:
        loaded(tmp_path, text)
    assert caught.value.parameter == place
    assert "people.toml" in str(caught.value)
    assert words in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ParameterError) as caught:
            load(path)
        assert caught.value.parameter == "path"


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="no TOML"):
        load(tmp_path / "x.toml")


@pytest.mark.parametrize(
    "ledger", ["postgresql://ana:secret@host/db", "postgresql://h/db?password=secret",
               "host=h password=secret"],
)  # fmt: skip
def test_a_password_is_not_written_to_a_public_file(tmp_path, ledger):
    with pytest.raises(ParameterError, match="password") as caught:
        people(ledger=ledger).save(tmp_path / "p.toml")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "p.toml").exists()


@pytest.mark.parametrize("ledger", ["postgresql://ana@host:5432/db", "C:/data/budget.db", "b@c:d"])
def test_an_address_without_password_is_written(tmp_path, ledger):
    people(ledger=ledger).save(tmp_path / "p.toml")
    assert load(tmp_path / "p.toml").ledger == ledger


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="could not be written"):
        people().save(tmp_path / "nowhere" / "p.toml")


class TestCatalog:
    SCHEMA = {"people": {"user_id": "BIGINT", "Region": "VARCHAR", "income": "DOUBLE"}}  # noqa: RUF012

    def test_declared_facts_join_the_types_of_the_source(self):
        declared = people(
            {"region": DeclaredColumn(keys=("a", "b")), "income": DeclaredColumn(bounds=(0, 0.1))},
            rows=10, groups=3, size=1000, neighbours=Neighbours.replace_one,
        )  # fmt: skip
        catalog = declared.catalog(self.SCHEMA)
        made = {column.name: column for column in catalog.tables[0].columns}
        assert made["Region"].keys == ("a", "b")  # names differ in case only
        assert made["income"].bounds == (0, Fraction(0.1))
        assert (made["user_id"].type, made["user_id"].bounds, made["user_id"].keys) == (
            "BIGINT", None, None,
        )  # fmt: skip
        assert (catalog.rows, catalog.groups, catalog.size) == (10, 3, 1000)
        assert catalog.neighbours is Neighbours.replace_one
        assert catalog.unit == declared.unit

    def test_a_new_column_is_private(self):
        schema = {"people": {**self.SCHEMA["people"], "diagnosis": "VARCHAR"}}
        new = people().catalog(schema).tables[0].columns[-1]
        assert (new.name, new.bounds, new.keys) == ("diagnosis", None, None)

    def test_a_column_that_vanished_is_named(self):
        declared = people({"age": DeclaredColumn(bounds=(0, 120))})
        with pytest.raises(DataError, match="column 'age' of table 'people'"):
            declared.catalog(self.SCHEMA)

    def test_every_protected_table_needs_the_unit_and_public_ones_do_not(self):
        with pytest.raises(DataError, match="no column 'user_id'"):
            people().catalog({"people": {"region": "VARCHAR"}})
        per_day = people(unit=Unit.column("user_id").per("day", time="seen"))
        with pytest.raises(DataError, match="no column 'seen'"):
            per_day.catalog(self.SCHEMA)
        declared = people(public={"regions": DeclaredTable()})
        made = declared.catalog({**self.SCHEMA, "regions": {"region": "VARCHAR"}})
        assert [table.is_public for table in made.tables] == [False, True]

    def test_a_table_without_source_is_named(self):
        with pytest.raises(DataError, match="'people'"):
            people().catalog({})

    @pytest.mark.parametrize(
        ("type_", "facts"),
        [
            ("VARCHAR", {"bounds": (0, 1)}),
            ("BOOLEAN", {"bounds": (0, 1)}),
            ("DATE", {"bounds": (0, 1)}),
            ("VARCHAR", {"keys": (1, 2)}),
            ("INTEGER", {"keys": ("1", "2")}),
            ("BOOLEAN", {"keys": (0, 1)}),
            ("DATE", {"keys": (20260101,)}),
            ("DATE", {"keys": ("2026-01-01", "2026-13-01")}),
            ("TIMESTAMP", {"keys": ("noon",)}),
            ("INTEGER[]", {"keys": (1,)}),
        ],
    )
    def test_facts_that_do_not_fit_the_type_are_refused(self, type_, facts):
        declared = people({"x": DeclaredColumn(**facts)})
        with pytest.raises(ParameterError, match=r"tables\.people\.columns\.x\.(bounds|keys)"):
            declared.catalog({"people": {"user_id": "BIGINT", "x": type_}})

    @pytest.mark.parametrize(
        ("type_", "facts"),
        [
            ("DATE", {"keys": ("2026-01-01",)}),
            ("TIMESTAMP", {"keys": ("2026-01-01T00:00:00", "2026-01-01T12:00:00", None)}),
            ("TIME", {"keys": ("12:00:00",)}),
            ("BOOLEAN", {"keys": (False, True, None)}),
            ("DECIMAL(18,3)", {"bounds": (0, 1), "keys": (1, 2.5)}),
            ("ENUM('a', 'b')", {"keys": ("a",)}),
            ("VARCHAR", {"keys": (None,)}),
        ],
    )
    def test_facts_that_fit_are_taken(self, type_, facts):
        declared = people({"x": DeclaredColumn(**facts)})
        made = declared.catalog({"people": {"user_id": "BIGINT", "x": type_}})
        assert made.tables[0].columns[1].keys == facts.get("keys")


@pytest.mark.lengthy
def test_types_of_a_real_engine_are_known():
    import duckdb

    wanted = {
        "number": ["TINYINT", "UBIGINT", "HUGEINT", "DECIMAL(9,2)", "FLOAT", "DOUBLE", "INTEGER"],
        "boolean": ["BOOLEAN"],
        "text": ["VARCHAR", "UUID", "ENUM('a', 'b(')"],
        "time": ["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"],
        "other": ["BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "INTERVAL", "MAP(INTEGER, INTEGER)",
                  "INTEGER[3]", "VARCHAR[]", "DECIMAL(9,2)[]", "ENUM('a')[]"],
    }  # fmt: skip
    for kind, types in wanted.items():
        for type_ in types:
            with duckdb.connect() as connection:
                told = connection.sql(f"SELECT CAST(NULL AS {type_}) AS x").types[0]
            assert column_kind(str(told)) == kind, (type_, told)
