"""What a table is to Spark: files that differ, frames that cut, settings of the whole cluster."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError
from discreet.tables.engines import Call, ColumnRef, Literal, Scan, Select, SparkEngine
from discreet.tables.engines.spark.session import own_session
from discreet.tables.model.scalar import LARGEST_TEXT

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("spark")]


@pytest.fixture
def unlike(tmp_path):
    """Return what makes a folder of two files whose column ``k`` differs."""

    def made(folder, hot):
        place = tmp_path / folder
        place.mkdir()
        first = {"id": [1, 2], "x": [1, 9], "k": [1, 2]}
        pq.write_table(pa.table(first), place / "a.parquet")
        pq.write_table(pa.table({"id": [3], "x": [hot], "k": ["no number"]}), place / "b.parquet")
        return place

    return made


def test_files_whose_types_differ_are_refused(unlike, spark):
    with pytest.raises(DataError, match="'k' is not of the same type in all files"):
        SparkEngine(spark).look("rows", unlike("two", 7))


def test_what_is_in_a_file_does_not_decide_whether_it_is_read(unlike, spark, monkeypatch):
    """As far away, where files cannot be looked at: with x = 3 statistics would pass one over."""
    monkeypatch.setattr("discreet.tables.engines.spark.looking.is_parquet", lambda path: False)
    engine, is_large = SparkEngine(spark), Call("greater", (ColumnRef("x"), Literal(5, "int64")))
    asked = Select(Scan("rows"), (("k", ColumnRef("k")),), (is_large,))
    for hot in (7, 3):
        source = engine.look("rows", unlike(f"hot_{hot}", hot))
        with engine.open({"rows": source}) as opened, pytest.raises(DataError, match="carry out"):
            opened.rows(asked)


@pytest.mark.parametrize(
    "cut",
    [
        "limit(3)", "offset(2)", "sample(0.5, 1)", "limit(3).where('k = 1')",
        "selectExpr('id', 'row_number() OVER (ORDER BY id) AS n')",
        "where('id IN (SELECT id FROM range(9) LIMIT 2)')",
    ],
)  # fmt: skip
def test_a_frame_in_which_rows_decide_about_others(cut, spark):
    frame = eval(f"frame.{cut}", {"frame": spark.range(9).selectExpr("id", "id % 3 AS k")})
    with pytest.raises(DataError, match="rows decide which rows of others are there"):
        SparkEngine(spark).look("rows", frame)


def test_a_frame_that_is_made_row_by_row_or_by_person(spark):
    frame = spark.range(9).selectExpr("id", "id % 3 AS k")
    own = "rank() OVER (PARTITION BY k ORDER BY id) AS n"
    for fine in (frame.where("k = 1"), frame.groupBy("k").count(), frame.selectExpr("k", own)):
        assert SparkEngine(spark).look("rows", fine).columns


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text_files_are_for_public_tables_only(kind, spark, tmp_path):
    """One person's quote could swallow the lines of others, and a bad line stop the question."""
    text = {"csv": 'id,k\n1,"a\n2,b\n', "json": '{"id": 1}\nbad\n'}[kind]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "rows.txt").write_text(text)
    options = f"OPTIONS (header true, multiLine true, mode 'FAILFAST', path '{tmp_path}/rows')"
    spark.sql(f"CREATE TABLE texts (id INT, k STRING) USING {kind} {options}")
    engine = SparkEngine(spark)
    try:
        for given in ("texts", spark.table("texts"), spark.table("texts").where("id = 1")):
            with pytest.raises(DataError, match=f"Spark reads {kind.upper()} files here"):
                engine.look("rows", given)
        assert engine.look("rows", "texts", is_public=True).columns
    finally:
        spark.sql("DROP TABLE texts")


def test_what_the_cluster_sets_for_all_sessions_changes_no_meaning(spark):
    usual = own_session(spark)
    odd = {
        "spark.sql.legacy.interval.enabled": "true",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.icu.caseMappings.enabled": "false",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.ansi.enabled": "true",
    }
    of_all = spark.sparkContext._jsc.sc().conf()
    try:
        for name, value in odd.items():
            of_all.set(name, value)
        assert spark.newSession().conf.get("spark.sql.legacy.interval.enabled") == "true"
        ours = own_session(spark)
        for name in odd:
            assert ours.conf.get(name, None) == usual.conf.get(name, None)
    finally:
        for name in odd:
            of_all.remove(name)


def test_a_huge_text_is_not_read(spark, tmp_path):
    """One of a gigabyte would take the memory of an executor, and the question with it."""
    sizes = [3, LARGEST_TEXT, LARGEST_TEXT + 1]
    texts = pa.table(
        {"id": [1, 2, 3], "t": ["é" * (size // 2) + "x" * (size % 2) for size in sizes]}
    )
    pq.write_table(texts, tmp_path / "rows.parquet")
    engine = SparkEngine(spark)
    asked = Select(
        Scan("rows"), (("id", ColumnRef("id")), ("n", Call("byte_length", (ColumnRef("t"),))))
    )
    with engine.open({"rows": engine.look("rows", tmp_path / "rows.parquet")}) as opened:
        found = opened.rows(asked).reveal_without_noise().sort_by("id")["n"].to_pylist()
    assert found == [3, LARGEST_TEXT, None]
