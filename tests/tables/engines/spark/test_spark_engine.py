"""Spark's engine in use: what a table is, what is refused, and what must not show."""

import logging
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError, MissingExtra, ParameterError, Refused
from discreet.ledger import Ledger
from discreet.privacy import Guarantee
from discreet.tables import open_tables, protect
from discreet.tables.engines import (
    Call,
    Cells,
    ColumnRef,
    DuckDBEngine,
    Groups,
    Key,
    Norm,
    Query,
    Select,
    SparkEngine,
    Sums,
)
from discreet.tables.engines.progress import time_limit
from discreet.tables.engines.spark import connection as module

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("spark")]

PEOPLE = pa.table(
    {
        "user_id": [i // 3 for i in range(900)],
        "region": [("north", "south", "east")[i % 3] for i in range(900)],
        "age": [i % 90 for i in range(900)],
    }
)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "people"
    place.mkdir()
    pq.write_table(PEOPLE.slice(0, 500), place / "a.parquet")
    pq.write_table(PEOPLE.slice(500), place / "b.parquet")
    return place


def protected(given, engine, path, **more):
    return protect(
        given,
        name="people",
        unit="user_id",
        guarantee=Guarantee(epsilon=50, delta=1e-6),
        ledger=path / "budget.db",
        columns={"region": {"keys": ["north", "south", "east", "west"]}},
        engine=engine,
        **more,
    )


def counted(salt="salt"):
    people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
    return Sums(
        query=people, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt=salt
    )


def test_a_question_from_text_to_answer(spark, frame_of, tmp_path):
    """Noise of scale 3 x 3 around 300 each: off by 150 with a chance below 1e-6."""
    with protected(frame_of(PEOPLE), SparkEngine(spark), tmp_path) as people:
        question = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
        assert people.quote(question, epsilon=2).fits
        answer = people.sql(question, epsilon=2, bounding=Norm(limit=3, order=1))
        found = dict(zip(answer["region"], answer["n"], strict=True))
        assert set(found) == {"north", "south", "east", "west"}
        assert abs(found["north"] - 300) < 150
        assert abs(found["west"]) < 150
        again = people.sql(question, epsilon=2, bounding=Norm(limit=3, order=1))
        assert list(again["n"]) == list(answer["n"])
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.verify()


def test_the_same_files_are_the_same_data_to_duckdb(spark, folder):
    spark.sql("CREATE DATABASE IF NOT EXISTS things")
    spark.sql(f"CREATE TABLE IF NOT EXISTS things.people USING parquet LOCATION '{folder}'")
    try:
        theirs = DuckDBEngine().look("people", folder)
        engine = SparkEngine(spark)
        for given in (folder, str(folder), spark.read.parquet(str(folder)), "things.people"):
            ours = engine.look("people", given)
            assert set(theirs.identities) <= set(ours.identities)
            assert ours.places == theirs.places
            assert ours.version == theirs.version
            assert dict(ours.columns) == dict(theirs.columns)
        assert (
            "spark:`spark_catalog`.`things`.`people`"
            in engine.look("p", "things.people").identities
        )
    finally:
        spark.sql("DROP TABLE things.people")


def test_a_declaration_names_a_table_of_the_catalogue(spark, folder, tmp_path):
    """And not a file of that name beside the declaration."""
    spark.sql("CREATE DATABASE IF NOT EXISTS declared")
    spark.sql(f"CREATE TABLE declared.people USING parquet LOCATION '{folder}'")
    try:
        with protected("declared.people", SparkEngine(spark), tmp_path) as people:
            people.save(tmp_path / "people.toml")
        said = (tmp_path / "people.toml").read_text()
        assert 'source = "table://`spark_catalog`.`declared`.`people`"' in said
        with open_tables(tmp_path / "people.toml") as people:  # in the session that there is
            assert people.tables["people"]["user_id"] == "BIGINT"
    finally:
        spark.sql("DROP DATABASE declared CASCADE")


def test_a_new_version_is_noticed(spark, folder):
    engine = SparkEngine(spark)
    source = engine.look("people", folder)
    assert engine.version(source) == source.version
    pq.write_table(PEOPLE, folder / "c.parquet")
    assert engine.version(source) != source.version


def test_what_is_no_table(spark, frame_of, tmp_path):
    engine = SparkEngine(spark)
    with pytest.raises(DataError, match="no use for int"):
        engine.look("people", 3)
    with pytest.raises(DataError, match="Spark cannot read it") as caught:
        engine.look("people", "nowhere.at_all")
    assert caught.value.__context__ is None
    with pytest.raises(DataError, match="there is no file"):
        engine.look("people", tmp_path / "none.parquet")
    frame = frame_of(PEOPLE)
    frame.createOrReplaceTempView("seen")
    assert engine.look("people", "seen").columns == engine.look("people", frame).columns
    with pytest.raises(DataError, match="random numbers"):
        engine.look("people", frame.selectExpr("*", "rand() AS u"))
    with pytest.raises(ParameterError, match="SparkSession"):
        SparkEngine("local[2]")


def test_a_view_may_be_public_only(spark):
    spark.sql("CREATE OR REPLACE VIEW some_view AS SELECT 1 AS user_id")
    try:
        with pytest.raises(DataError, match="is a view"):
            SparkEngine(spark).look("people", "some_view")
        assert SparkEngine(spark).look("people", "some_view", is_public=True).is_public
    finally:
        spark.sql("DROP VIEW some_view")


def test_without_pyspark(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"discreet\[spark\]"):
        SparkEngine(object())


def test_what_spark_cannot_do_is_refused_before_a_charge(spark, frame_of, tmp_path):
    with protected(frame_of(PEOPLE), SparkEngine(spark), tmp_path) as people:
        for pattern in ("(a+)+$", ".*.*x", "a+b", "(n|s)*th", r"\bnorth", "[a-z]*[a-z]*h"):
            with pytest.raises(Refused, match="Java could take very long"):
                people.sql(f"SELECT COUNT(*) FROM people WHERE region ~ '{pattern}'", epsilon=1)
            with pytest.raises(Refused, match="Nothing was spent"):
                people.quote(f"SELECT COUNT(*) FROM people WHERE region ~ '{pattern}'", epsilon=1)
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert ledger["people"].remaining == 1


def test_the_session_of_the_user_stays_as_it_is(spark, frame_of, tmp_path):
    before = set(spark.sql("SET").toPandas()["key"]), spark.catalog.listTables()
    with protected(frame_of(PEOPLE), SparkEngine(spark), tmp_path) as people:
        people.sql("SELECT region, COUNT(*) FROM people GROUP BY region", epsilon=1)
        assert spark.catalog.listTables("global_temp") == spark.catalog.listTables()
    after = set(spark.sql("SET").toPandas()["key"]), spark.catalog.listTables()
    assert before == after


@pytest.mark.parametrize(
    "name",
    ["my people", "select", "a.b", "ünï", "it's"],
)
def test_names_of_tables(name, spark, frame_of):
    engine = SparkEngine(spark)
    table = PEOPLE.rename_columns(["user_id", 'it\'s `a` "column".', "Größe"])
    with engine.open({name: engine.look(name, frame_of(table))}) as connection:
        rows = Select.of(name, unit="user_id", value_0='it\'s `a` "column".', value_1="Größe")
        assert connection.rows(rows).reveal_without_noise().num_rows == 900


def test_the_salt_is_in_no_plan(spark, frame_of, capfd, monkeypatch):
    """Event logs and the web page have plans: a value of a table is not shown there."""
    plans = []
    collect = module.to_arrow

    def watched(frame):
        frame.explain("extended")
        plans.append(frame.schema.simpleString())
        return collect(frame)

    monkeypatch.setattr(module, "to_arrow", watched)
    engine = SparkEngine(spark, portable=True)
    salted = Sums(
        query=Query(
            rows=Select.of("people", unit="user_id", key_0="region"),
            keys=(Key(name="key_0", type="text", values=None),),
            tables=("people",),
        ),
        cells=(Cells(kind="rows"),),
        bounding=Groups(groups=1, rows=2),
        salt="a-very-secret-salt",
    )
    with engine.open({"people": engine.look("people", frame_of(PEOPLE))}) as one:
        assert one.aggregate(salted).reveal_without_noise().num_rows == 3
        assert "secret" not in one.sql(salted)
    said = capfd.readouterr()
    assert plans
    assert "own_place" in said.out
    assert "secret" not in said.out + said.err


def test_an_error_shows_no_value(spark, caplog, capfd, tmp_path):
    """A frame that fails by itself: its message would quote the value that it could not take."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    pq.write_table(pa.table({"user_id": ["1", "s3cr3t"]}), tmp_path / "p.parquet")
    frame = spark.read.parquet(str(tmp_path)).selectExpr("CAST(user_id AS BIGINT) AS user_id")
    engine = SparkEngine(spark)
    with (
        caplog.at_level(logging.INFO),
        engine.open({"people": engine.look("people", frame)}) as connection,
        pytest.raises(DataError, match="withheld") as caught,
    ):
        connection.aggregate(counted())
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    said = capfd.readouterr()
    assert "s3cr3t" not in caplog.text + said.out + said.err


def test_a_question_is_stopped(spark):
    slow = spark.range(10**12).selectExpr("id % 7 AS user_id", "sha2(string(id), 512) AS x")
    engine = SparkEngine(spark)
    with engine.open({"people": engine.look("people", slow)}) as connection:
        with time_limit(2), pytest.raises(DataError, match="took longer"):
            connection.aggregate(counted())
        assert spark.range(3).count() == 3


def test_many_public_keys(spark, frame_of):
    """A list of a hundred thousand keys is a table beside the statement."""
    people = Query(
        rows=Select.of("people", unit="user_id", key_0="age"),
        keys=(Key(name="key_0", type="int64", values=None),),
        tables=("people",),
    )
    statement = Sums(
        query=people, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt="",
        groups=tuple((key,) for key in range(50, 100_050)),
    )  # fmt: skip
    engine = SparkEngine(spark)
    with engine.open({"people": engine.look("people", frame_of(PEOPLE))}) as connection:
        found = connection.aggregate(statement).reveal_without_noise()
    assert sorted(found["key_0"].to_pylist()) == list(range(50, 90))


def test_a_stopped_engine(spark, frame_of):
    engine = SparkEngine(spark)
    connection = engine.open({"people": engine.look("people", frame_of(PEOPLE))})
    connection.close()
    connection.close()
    with pytest.raises(DataError, match="closed"):
        connection.aggregate(counted())


def test_zones_and_collations(spark):
    """A moment with a zone is read in UTC, and texts by their bytes, whatever the session says."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = spark.sql(
        "SELECT 1 AS id, TIMESTAMP_LTZ '2024-01-01 09:00:00' AS z, 'A' COLLATE UTF8_LCASE AS s "
        "UNION ALL SELECT 2, NULL, 'a' COLLATE UTF8_LCASE"
    )
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    engine = SparkEngine(spark)
    source = engine.look("rows", frame)
    assert source.columns[1:] == (("z", "TIMESTAMP WITH TIME ZONE"), ("s", "VARCHAR"))
    with engine.open({"rows": source}) as connection:
        rows = Select.of("rows", id="id", z="z", s="s")
        utc = Call("from_utc", (ColumnRef("z"),))
        rows = replace(rows, columns=(*rows.columns, ("u", utc)))
        found = connection.rows(rows).reveal_without_noise().sort_by("id").to_pydict()
    assert str(found["u"][0]) == "2024-01-01 00:00:00"
    assert found["s"] == ["A", "a"]
