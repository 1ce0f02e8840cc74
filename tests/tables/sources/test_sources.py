"""Sources: what can be opened, what is refused and how, and when data counts as changed."""

import csv
import datetime
import decimal
import gzip
import os
import tempfile
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, ParameterError
from discreet.tables.engines import DuckDBConnection, open_sources
from discreet.tables.model.bounds import WEIGHT_STEPS, Norm
from discreet.tables.model.query import Key, Query
from discreet.tables.model.relation import Select
from discreet.tables.model.scalar import Call, ColumnRef, Literal
from discreet.tables.model.statements import Cells, Sums

TABLE = pa.table({"user_id": [1, 2, 2], "region": ["a", None, "b"], "x": [0.5, None, 2.0]})
DAY = datetime.date(2026, 1, 31)
COLUMNS = (("user_id", "BIGINT"), ("region", "VARCHAR"), ("x", "DOUBLE"))


def query(column="user_id", table="people", where=()):
    rows = replace(Select.of(table, unit=column), where=where)
    return Query(rows=rows, tables=(table,))


def compare(function, number):
    return Call(function, (ColumnRef("user_id"), Literal(number, "int64")))


def count(source, *where, column="user_id", **options):
    """Return how many rows an engine sees."""
    return count_in(open_sources({"people": source}, **options), *where, column=column)


def count_in(sources, *where, column="user_id"):
    bounding = Norm(limit=100_000, order=1)
    asked = query(column, where=where)
    statement = Sums(query=asked, cells=(Cells(kind="rows"),), bounding=bounding, salt="")
    with DuckDBConnection(sources) as engine:
        (cell,) = engine.aggregate(statement).reveal_without_noise()["cell_0"].to_pylist()
    return cell // WEIGHT_STEPS


def frames():
    yield "arrow", TABLE
    yield "record batches", pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    yield "pandas", pd.DataFrame({"user_id": [1, 2, 2], "region": ["a", None, "b"], "x": [1.0] * 3})
    yield "polars", pl.DataFrame({"user_id": [1, 2, 2], "region": ["a", None, "b"], "x": [1.0] * 3})
    lazy = {"user_id": [1, 2, 2], "region": ["a", None, "b"], "x": [1.0] * 3}
    yield "lazy polars", pl.DataFrame(lazy).lazy()
    yield (
        "arrays",
        {
            "user_id": np.array([1, 2, 2]),
            "region": np.array(["a", "b", "c"]),
            "x": np.array([1.0, np.nan, 2.0]),
        },
    )


@pytest.mark.parametrize("name", [name for name, _ in frames()])
def test_frames_of_all_libraries(name):
    source = dict(frames())[name]
    tables = open_sources({"people": source})
    assert tables["people"].columns == COLUMNS
    assert tables["people"].location is None
    assert not tables.has_changed()
    assert count(dict(frames())[name]) == 3


@pytest.mark.lengthy
def test_parquet_as_path_glob_list_and_folder(tmp_path):
    for number in range(3):
        pq.write_table(TABLE, tmp_path / f"part{number}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    one = tmp_path / "part0.parquet"
    for source, wanted in [
        (one, 3),
        (str(one), 3),
        (str(tmp_path / "*.parquet"), 9),
        ([one, tmp_path / "part1.parquet"], 6),
        (tmp_path, 9),
        ([one, one], 3),
    ]:
        opened = open_sources({"people": source})["people"]
        assert opened.columns == COLUMNS
        assert opened.kind == "parquet"
        assert len(opened.identities) * 3 == wanted == count(source)
    assert open_sources({"people": one})["people"].identities == (str(one.resolve()),)


def test_names_of_folders_are_no_columns(tmp_path):
    for year in (2025, 2026):
        (tmp_path / f"user_id={year}").mkdir()
        pq.write_table(TABLE, tmp_path / f"user_id={year}" / "a.parquet")
    assert open_sources({"people": tmp_path})["people"].columns == COLUMNS
    assert count(tmp_path, compare("equal", 2)) == 4
    assert count(tmp_path, compare("equal", 2025)) == 0


def test_files_must_agree(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE.drop_columns(["x"]), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="different columns"):
        open_sources({"people": tmp_path})
    (tmp_path / "c.csv").write_text("user_id\n1\n")
    with pytest.raises(DataError, match=r"all end in \.parquet or all in \.csv"):
        open_sources({"people": tmp_path})


def test_a_changed_file_is_a_new_version(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    before = open_sources({"people": path})
    assert not before.has_changed()
    assert before.version == open_sources({"people": path}).version
    pq.write_table(pa.concat_tables([TABLE, TABLE]), path)
    assert before.has_changed()
    after = before.reopened()
    assert after.version != before.version
    assert after["people"].identities == before["people"].identities


def test_a_new_file_in_a_folder_is_a_new_version(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    before = open_sources({"people": tmp_path})
    pq.write_table(TABLE, tmp_path / "b.parquet")
    assert before.has_changed()


def test_a_lost_or_changed_column_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    before = open_sources({"people": path})
    pq.write_table(TABLE.drop_columns(["region"]), path)
    with pytest.raises(DataError, match="no longer has the column 'region'"):
        before.reopened()
    pq.write_table(TABLE.set_column(2, "x", pa.array(["u", "v", "w"])), path)
    with pytest.raises(DataError, match="'x' of table 'people' was of type DOUBLE and now is"):
        before.reopened()
    pq.write_table(TABLE.append_column("new", pa.array([1, 2, 3])), path)
    assert ("new", "BIGINT") in before.reopened()["people"].columns
    path.unlink()
    assert before.has_changed()


@pytest.mark.parametrize("ending", ["people.csv", "people.csv.gz"])
def test_csv_types_are_pinned_and_misfits_are_null(tmp_path, ending):
    path = tmp_path / ending
    write(path, "user_id,region,x\n1,a,0.5\n2,,oops\nthree,b,2\n")
    types = {"people": {"user_id": "BIGINT", "x": "DOUBLE"}}
    opened = open_sources({"people": path}, types=types)["people"]
    assert opened.columns == COLUMNS
    assert count(path, Call("is_null", (ColumnRef("x"),)), compare("equal", 2), types=types) == 1
    assert count(path, types=types) == 2  # "three" is nobody


def test_csv_types_are_guessed_once(tmp_path):
    path = tmp_path / "people.csv"
    write(path, "user_id,region,x\n1,a,0.5\n2,b,2\n")
    before = open_sources({"people": path})
    assert before["people"].columns == COLUMNS
    write(path, "user_id,region,x\n1,a,0.5\n2,b,no number\n")
    assert before.has_changed()
    assert before.reopened()["people"].columns == COLUMNS


def test_csv_lines_that_do_not_fit_never_raise(tmp_path):
    path = tmp_path / "people.csv"
    types = {"people": {"user_id": "BIGINT", "region": "VARCHAR", "x": "DOUBLE"}}
    lines = "".join(f"{i},a,1.5\n" for i in range(100))
    write(path, f"user_id,region,x\n{lines}1,2,3,4,5\n7\n{10**30},é,1e999\n")
    assert count(path, types=types) >= 100


def write(path, text):
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


ODD_LINES = {
    "an open quote": '7,"x',
    "text behind a quote": '7,"x"y,1',
    "quotes in a row": '7,""""x"","""',
    "a quoted line break": '7,"x\ny",1',
    "a lone carriage return": "7,x\r",
    "carriage returns": "7,x\ry\r\r",
    "another end of line": "7,x,1\r\n7,x,1",
    "few fields": "7",
    "many fields": "7" + ",x" * 100,
    "no fields": "",
    "a backslash": "7,x\\",
    "control signs": "7,\0\x1f,\x1e\x0b\x0c",
    "no Unicode": "7,\udcff\udcfe,1",
    "a very long line": "7," + "x" * 5_000_000,
}


@pytest.mark.lengthy
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ODD_LINES)
def test_no_line_of_a_csv_file_changes_how_others_are_read(tmp_path, name, end):
    others = [f'{i},"a, ""b""",0.5' for i in range(100, 140)]
    types = {"people": {"user_id": "BIGINT", "region": "VARCHAR", "x": "DOUBLE"}}
    path = tmp_path / "people.csv"
    for place in (0, 20, 40):
        lines = ["user_id,region,x", *others[:place], ODD_LINES[name], *others[place:]]
        write(path, end.join(lines) + end * (place != 40))
        opened = open_sources({"people": path}, types=types)
        known = compare("greater_equal", 100)
        same = Call("equal", (ColumnRef("region"), Literal('a, "b"', "text")))
        half = Call("equal", (ColumnRef("x"), Literal(0.5, "double")))
        assert count_in(opened, known, same, half) == 40
        assert count_in(opened, known) == 40


def test_one_open_quote_of_a_long_file_swallows_nothing(tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"{i},region,0.5" for i in range(200_000)]
    lines[1000] = '-1,"'
    write(path, "user_id,region,x\n" + "\n".join(lines))
    assert count(path, compare("greater_equal", 0)) == 199_999


fields = st.text(alphabet="ab\"',;|\t é\\", max_size=6)


@pytest.mark.lengthy
@settings(max_examples=20, deadline=None, database=None)
@given(
    rows=st.lists(st.lists(fields, min_size=3, max_size=3), min_size=1, max_size=30),
    delimiter=st.sampled_from(",;|\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_csv_files_are_read_as_python_writes_them(rows, delimiter, quoting):
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = os.path.join(folder, "a.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
            writer.writerows([["a", "b", "c"], *rows])
        types = dict.fromkeys("abc", "VARCHAR")
        opened = open_sources({"t": path}, types={"t": types})["t"]
        found = connection.execute(f"SELECT * FROM {opened.reading.reader}").fetchall()
    assert found == [tuple(field or None for field in row) for row in rows]


def test_csv_files_must_begin_alike(tmp_path):
    write(tmp_path / "a.csv", "user_id,x\n1,2\n")
    write(tmp_path / "b.csv", "x,user_id\n1,2\n")
    with pytest.raises(DataError, match="same line of names"):
        open_sources({"people": tmp_path})


def collated(tmp_path):
    """Write a database in which capital letters and accents do not count."""
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE humans(user_id VARCHAR COLLATE NOCASE, region VARCHAR COLLATE NOACCENT)"
        )
        rows = [("ann", "cafe"), ("ANN", "café"), ("Ann", "cafe")]
        connection.executemany("INSERT INTO humans VALUES (?, ?)", rows)
        connection.execute("CREATE VIEW seen AS SELECT * FROM humans")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE VIEW other.humans AS SELECT * FROM main.humans")
    return path


def test_collations_merge_no_units_and_no_keys(tmp_path):
    keys = (Key(name="region", type="text", values=None),)
    rows = Select.of("people", unit="user_id", key_0="region")
    asked = Query(rows=rows, tables=("people",), keys=keys)
    cells = (Cells(kind="rows"),)
    statement = Sums(query=asked, cells=cells, bounding=Norm(limit=1, order=1), salt="")
    with DuckDBConnection({"people": f"{collated(tmp_path)}::humans"}) as engine:
        found = engine.aggregate(statement).reveal_without_noise().to_pylist()
    # Merged, the three would be one unit that counts 1 in all.
    assert {row["key_0"]: row["cell_0"] // WEIGHT_STEPS for row in found} == {"cafe": 2, "café": 1}


@pytest.mark.parametrize("view", ["seen", "main.seen", "SEEN", "other.humans"])
def test_views_are_refused_unless_public(tmp_path, view):
    path = collated(tmp_path)
    with pytest.raises(DataError, match=r"is a view, .* protect its base tables"):
        open_sources({"people": f"{path}::{view}"})
    opened = open_sources({"people": TABLE}, public={"seen": f"{path}::{view}"})
    assert opened["seen"].is_public


def test_a_table_that_became_a_view_is_refused(tmp_path):
    path = collated(tmp_path)
    opened = open_sources({"people": f"{path}::humans"})
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP VIEW seen; DROP VIEW other.humans")
        connection.execute("ALTER TABLE humans RENAME TO base")
        connection.execute("CREATE VIEW humans AS SELECT * FROM base")
    assert opened.has_changed()
    with pytest.raises(DataError, match="is a view"):
        opened.reopened()


@pytest.mark.lengthy
def test_the_same_data_is_not_protected_and_public(tmp_path):
    path, second, folder = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "parts"
    folder.mkdir()
    pq.write_table(TABLE, path)
    os.link(path, second)
    (folder / "link.parquet").symlink_to(path)
    database = collated(tmp_path)
    for one, other in [
        (path, path),
        (path, second),
        (path, folder),
        (folder, str(tmp_path / "*.parquet")),
        (TABLE, TABLE),
        (f"{database}::humans", (str(database), "main.Humans")),
    ]:
        with pytest.raises(ParameterError, match="same data as the protected table 'people'"):
            open_sources({"people": one}, public={"shown": other})
    assert len(open_sources({"people": path, "again": second}, public={"t": TABLE})) == 3


def test_a_file_that_joins_a_public_folder_is_noticed(tmp_path):
    path, folder = tmp_path / "a.parquet", tmp_path / "public"
    folder.mkdir()
    pq.write_table(TABLE, path)
    pq.write_table(TABLE, folder / "b.parquet")
    opened = open_sources({"people": path}, public={"shown": folder})
    os.link(path, folder / "c.parquet")
    with pytest.raises(ParameterError, match="same data"):
        opened.reopened()


def not_unicode():
    return pa.array([b"ok", b"\xff\xfesecret"], pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    "values",
    [
        not_unicode(),
        pa.chunked_array([pa.array(["fine"] * 2), not_unicode()]).slice(2),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), not_unicode()),
        np.array(["ok", "\ud800"], dtype=object),
    ],
    ids=["texts", "chunks", "categories", "objects"],
)
def test_texts_that_are_no_unicode_are_null(values):
    given = {"user_id": np.array([1, 2]), "name": values}
    frame = given if isinstance(values, np.ndarray) else pa.table(given)
    is_null = Call("is_null", (ColumnRef("name"),))
    assert count(frame, is_null) == count(frame, is_null, compare("equal", 2)) == 1


def test_bytes_of_a_parquet_file_that_are_no_text_are_question_marks(tmp_path):
    pq.write_table(pa.table({"user_id": [1, 2], "name": not_unicode()}), tmp_path / "a.parquet")
    marks = Call("equal", (ColumnRef("name"), Literal("??secret", "text")))
    assert count(tmp_path / "a.parquet", marks) == 1


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_parquet_files_with_coarse_times_hold_the_same_as_frames(tmp_path, unit, zone):
    moments = pa.array([0, 1_769_860_800, None], pa.timestamp("s", zone)).cast(
        pa.timestamp(unit, zone)
    )
    columns = {
        "user_id": [1, 2, 3], "at": moments, "name": pa.array(["a", "é", None]).dictionary_encode(),
        "half": pa.array(np.array([0.5, 1, 2], np.float16)), "price": [decimal.Decimal("1.5")] * 3,
        "long": pa.array([1, 2, 3], pa.duration("s")), "items": [[1], [2], None], "day": [DAY] * 3,
        "wide": pa.array([decimal.Decimal(1)] * 3, pa.decimal256(50, 0)), "flag": [True] * 3,
        "fine": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "key": pa.array([b"k" * 16] * 3, pa.uuid()),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    opened = open_sources({"people": tmp_path})
    names = [name for name in columns if name not in ("long", "items")]
    with opened.connected() as engine, duckdb.connect() as plain:
        found = engine.rows(Select.of("people", **{name: name for name in names}))
        files = f"read_parquet('{tmp_path}/*.parquet')"
        plain.execute("SET TimeZone = 'UTC'")
        shown = ", ".join(f'"{name}"' for name in names)
        wanted = plain.sql(f"SELECT {shown} FROM {files}").to_arrow_table()
    by_unit = [
        sorted(table.to_pylist(), key=lambda row: row["user_id"])
        for table in (found.reveal_without_noise(), wanted)
    ]
    assert by_unit[0] == by_unit[1]
    assert dict(opened["people"].columns)["items"] == "BIGINT[]"


def test_files_with_times_of_different_units_are_refused(tmp_path):
    for unit in ("ms", "us"):
        table = pa.table({"user_id": [1], "at": pa.array([0], pa.timestamp(unit))})
        pq.write_table(table, tmp_path / f"{unit}.parquet")
    with pytest.raises(DataError, match="different columns or types"):
        open_sources({"people": tmp_path})


@pytest.mark.lengthy
def test_databases_are_read_only(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows_", TABLE)
        connection.execute("CREATE TABLE humans AS SELECT * FROM rows_")
    for source in (f"{path}::humans", (str(path), "humans"), f"{path}::main.humans"):
        opened = open_sources({"people": source})["people"]
        assert (opened.kind, opened.columns) == ("database", COLUMNS)
        assert count(source) == 3
    before = path.read_bytes()
    assert open_sources({"people": f"{path}::humans"})["people"].location == f"{path}::humans"
    assert path.read_bytes() == before
    with pytest.raises(DataError, match="has no table 'nobody'"):
        open_sources({"people": f"{path}::nobody"})
    with pytest.raises(DataError, match="there is no file"):
        open_sources({"people": f"{tmp_path / 'none.duckdb'}::humans"})


def test_objects_of_several_types_get_the_type_of_nearly_all():
    mixed = pd.DataFrame(
        {"user_id": range(20), "x": pd.Series([*range(19), "secret"], dtype=object)}
    )
    opened = open_sources({"people": mixed})
    assert opened["people"].columns == (("user_id", "BIGINT"), ("x", "BIGINT"))
    assert opened["people"].untyped == ("x",)
    assert count(mixed, Call("is_null", (ColumnRef("x"),))) == 1
    types = {"people": {"X": "VARCHAR", "user_id": "DOUBLE"}}  # the latter has a type of its own
    opened = open_sources({"people": mixed}, types=types)
    assert opened["people"].columns == (("user_id", "BIGINT"), ("x", "VARCHAR"))
    assert opened.reopened()["people"].columns == opened["people"].columns


def test_pandas_columns_of_many_kinds():
    moment = pd.Timestamp("2026-01-31 12:00", tz="Europe/Berlin")
    frame = pd.DataFrame(
        {
            "user_id": pd.array([1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["a", "b", "a"]),
            "text": np.array(["a", None, "b"], dtype=object),
            "when": [moment] * 3,
            "day": [datetime.date(2026, 1, 31)] * 3,
            "price": [decimal.Decimal("1.50")] * 3,
            "flag": [True, False, True],
        },
        index=[7, 8, 9],
    )
    columns = dict(open_sources({"people": frame})["people"].columns)
    assert columns["user_id"] == "BIGINT"
    assert columns["kind"] == columns["text"] == "VARCHAR"
    assert columns["when"].startswith("TIMESTAMPTZ") or "TIME ZONE" in columns["when"]
    assert columns["price"].startswith("DECIMAL")
    assert columns["flag"] == "BOOLEAN"
    assert count(frame) == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame({1: [1]}), "must be named by non-empty texts"),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), "two columns named 'A'"),
        (pa.table({}), "has no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "two columns named 'a'"),
        ({}, "has no columns"),
        ({"a": np.zeros((2, 2))}, "must have one dimension"),
        ({"a": np.zeros(2), "b": np.zeros(3)}, "must have the same length"),
        (3, "is a int, and no source of tables"),
        ("nowhere.parquet", "there is no file 'nowhere.parquet'"),
    ],
)
def test_what_cannot_be_read_is_refused_without_showing_values(source, message):
    with pytest.raises(DataError, match=message) as caught:
        open_sources({"people": source})
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_is_no_parquet(tmp_path):
    (tmp_path / "a.parquet").write_text("secret")
    with pytest.raises(DataError, match="cannot be read as parquet") as caught:
        open_sources({"people": tmp_path / "a.parquet"})
    assert caught.value.__context__ is None
    (tmp_path / "a[1].parquet").write_text("secret")
    with pytest.raises(DataError, match="read as"):
        open_sources({"people": tmp_path / "a[1].parquet"})


def test_tables_without_rows(tmp_path):
    empty = TABLE.slice(0, 0)
    pq.write_table(empty, tmp_path / "a.parquet")
    assert count(empty) == count(tmp_path / "a.parquet") == 0


def test_names_of_tables_must_differ():
    with pytest.raises(ParameterError, match="two tables are named 'People'"):
        open_sources({"people": TABLE}, public={"People": TABLE})
    with pytest.raises(ParameterError, match="without quotes"):
        open_sources({'a"b': TABLE})
    opened = open_sources({"people": TABLE}, public={"regions": TABLE.slice(0, 2)})
    assert [table.is_public for table in opened.values()] == [False, True]


def test_the_version_of_a_frame_is_its_content():
    shuffled = TABLE.take([2, 0, 1])
    other = TABLE.slice(0, 2)
    versions = [open_sources({"people": t})["people"].version for t in (TABLE, shuffled, other)]
    assert versions[0] == versions[1] != versions[2]


def test_odd_names_of_columns_and_files(tmp_path):
    table = pa.table({"us'er \"id": [1, 2], "SELECT": ["a", "b"], "größe; --": [1.0, 2.0]})
    path = tmp_path / "it's; --.parquet"
    pq.write_table(table, path)
    for source in (table, path):
        names = [name for name, _ in open_sources({"people": source})["people"].columns]
        assert names == table.column_names
    assert count(path, column="us'er \"id") == 2


def test_paths_are_resolved_when_opened(tmp_path, monkeypatch):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    opened = open_sources({"people": "a.parquet"})["people"]
    assert os.path.isabs(opened.identities[0])
    assert opened.location == "a.parquet"
