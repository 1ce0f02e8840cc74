"""A database's tables, protected where they are: who may read, what is said, what is lost."""

import contextlib
import pickle
import sys
import threading
import time

import psycopg
import pytest

import discreet
from discreet import Guarantee
from discreet.errors import AlreadyCharged, DataError, MissingExtra, ParameterError, Refused
from discreet.ledger import Ledger
from discreet.tables import Resources
from discreet.tables.engines import (
    Call,
    Cells,
    ColumnRef,
    Groups,
    Key,
    Literal,
    Norm,
    PostgresEngine,
    Query,
    Scan,
    Select,
    Sums,
    engine_named,
)
from discreet.testing import PostgresServer

pytestmark = pytest.mark.needs("postgres")

COUNT = "SELECT place, COUNT(*) AS n FROM visits GROUP BY place"
SLEEPY = "SELECT COUNT(*) AS n FROM visits WHERE name ILIKE '%a%b%c%d%' OR INITCAP(name) = 'x'"
PLACES = {"place": {"keys": ["harbour", "market", None]}}
SECRET = "a secret of Ana's"


@pytest.fixture
def database(postgres):
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE visits (user_id bigint, place text, name text, pay numeric(9,2))"
        )
        connection.execute(
            "INSERT INTO visits SELECT i / 4, "
            "CASE i %% 3 WHEN 0 THEN 'harbour' WHEN 1 THEN 'market' END, %s, i "
            "FROM generate_series(0, 3999) AS i",
            [SECRET],
        )
    return url


@contextlib.contextmanager
def protected(url, folder, source="visits", **more):
    engine = more.pop("engine", None) or PostgresEngine(url)
    fields = {
        "unit": "user_id",
        "guarantee": Guarantee(epsilon=50, delta=1e-6),
        "ledger": folder / "budget.db",
        "columns": PLACES,
        "rows": 4,  # of everybody, so that no limit has to be found out
    }
    with discreet.protect(source, name="visits", engine=engine, **{**fields, **more}) as table:
        yield table


def test_a_question_is_answered(database, tmp_path):
    with protected(database, tmp_path) as table:
        found = table.sql(COUNT, epsilon=20).to_arrow().to_pydict()
        assert found["place"] == ["harbour", "market", None]
        assert all(abs(n - 1333) < 60 for n in found["n"])  # 300 scales of noise
        assert table.quote(COUNT, epsilon=1).fits


def test_frame_verbs_and_sums(database, tmp_path):
    with protected(database, tmp_path) as table:
        asked = table.where("pay < 1000").group_by("place").agg(n=discreet.tables.count())
        assert sum(asked.release(epsilon=20).to_arrow().to_pydict()["n"]) == pytest.approx(
            1000, abs=60
        )
        found = table.sql("SELECT AVG(CLAMP(pay, 0, 4000)) AS pay FROM visits", epsilon=20)
        assert found.to_arrow().to_pydict()["pay"][0] == pytest.approx(2000, abs=100)


def test_a_table_is_the_same_however_the_url_is_written(database):
    engine, other = PostgresEngine(database), PostgresEngine(f"{database}?application_name=x")
    one, two = engine.look("visits", "visits"), other.look("v", ("public", "visits"))
    assert one.identities == two.identities
    assert one.identities[0].startswith("postgresql:")
    assert one.columns == (
        ("user_id", "BIGINT"), ("place", "VARCHAR"), ("name", "VARCHAR"), ("pay", "DECIMAL(9,2)"),
    )  # fmt: skip


def test_the_version_follows_changes(database):
    engine = PostgresEngine(database)
    before = engine.look("visits", "visits")
    assert engine.version(before) == before.version
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DELETE FROM visits WHERE user_id = 1")
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert engine.version(before) != before.version


def test_partitions_are_one_table_and_each_is_known(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE days (user_id int, d date) PARTITION BY RANGE (d)")
        connection.execute(
            "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"
        )
    engine = PostgresEngine(database)
    whole, part = engine.look("days", "days"), engine.look("days", "days_1")
    assert set(part.identities) < set(whole.identities)


@pytest.mark.parametrize(
    "changed",
    [
        "CREATE TABLE more (LIKE days); ALTER TABLE days ATTACH PARTITION more "
        "FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
        "ALTER TABLE days DETACH PARTITION days_1",
        "ALTER TABLE days RENAME TO old; CREATE VIEW days AS SELECT user_id, d FROM old",
        "ALTER TABLE days RENAME TO old; CREATE TABLE days (user_id int, d date)",
        "ALTER TABLE days ALTER user_id TYPE text",
    ],
)
def test_a_name_that_stands_for_something_else_is_noticed_and_not_read(changed, database):
    """A view in its place could fail on one row, or make a row of several people's."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE days (user_id int, d date) PARTITION BY RANGE (d)")
        connection.execute(
            "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"
        )
        engine = PostgresEngine(database)
        before = engine.look("days", "days")
        with engine.open({"days": before}) as opened:
            asked = Select.of("days", unit="user_id")
            assert opened.rows(asked).reveal_without_noise().num_rows == 0
            connection.execute(changed)
            assert engine.version(before) != before.version
            with pytest.raises(DataError, match="another table by now"):
                opened.rows(asked)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW seen AS SELECT * FROM visits",
        "CREATE MATERIALIZED VIEW seen AS SELECT * FROM visits",
        "CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;"
        "CREATE FOREIGN TABLE seen (user_id int) SERVER f OPTIONS (filename '/dev/null')",
    ],
)
def test_views_can_be_public_but_not_protected(made, database):
    with psycopg.connect(database, autocommit=True) as connection:
        try:
            connection.execute(made)
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("the server has no file_fdw")
    engine = PostgresEngine(database)
    with pytest.raises(DataError, match=r"view|foreign table"):
        engine.look("seen", "seen")
    assert engine.look("seen", "seen", is_public=True).columns


def test_tables_that_are_not_there_and_odd_names(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "odd.one"')
        connection.execute('CREATE TABLE "odd.one"."100% ""it""" ("a%s" int, "1e5" text)')
    engine = PostgresEngine(database)
    found = engine.look("odd", ("odd.one", '100% "it"'))
    assert [name for name, _ in found.columns] == ["a%s", "1e5"]
    for given in ("nowhere", "no.where", "a.b.c", 7):
        with pytest.raises(DataError):
            engine.look("visits", given)


def test_the_url_is_never_shown(database, monkeypatch):
    password = psycopg.conninfo.conninfo_to_dict(database)["password"]
    assert password not in repr(PostgresEngine(database))
    monkeypatch.setenv("DISCREET_POSTGRES_URL", database)
    engine = engine_named("postgres")
    assert engine == PostgresEngine()
    assert engine.look("visits", "visits").columns
    monkeypatch.delenv("DISCREET_POSTGRES_URL")
    with pytest.raises(ParameterError, match="DISCREET_POSTGRES_URL"):
        engine.look("visits", "visits")
    for url in ("postgresql://a:hidden@127.0.0.1:1/x", "postgresql://a:hidden@h:port/x"):
        with pytest.raises((DataError, ParameterError)) as caught:
            PostgresEngine(url).look("visits", "visits")
        assert "hidden" not in str(caught.value)
        assert caught.value.__context__ is None


def test_a_declaration_names_the_engine_and_no_url(database, tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_POSTGRES_URL", database)
    with protected(database, tmp_path) as table:
        file = tmp_path / "visits.toml"
        table.save(file)
    said = file.read_text()
    assert 'engine = "postgres"' in said
    assert "table://public.visits" in said
    assert "postgres" not in said.replace('engine = "postgres"', "")
    with discreet.tables.open_tables(file, ledger=tmp_path / "budget.db") as table:
        assert table.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).columns == ("n",)


def test_a_read_only_role_is_enough_and_sees_what_it_was_granted(database, postgres, tmp_path):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'pw'")
        connection.execute("GRANT SELECT (user_id, place) ON visits TO reader")
        # What a user has set for itself must not change an answer.
        for name, value in (
            ("search_path", "nowhere"), ("transform_null_equals", "on"),
            ("TimeZone", "'Asia/Tokyo'"),
            ("DateStyle", "'SQL, DMY'"), ("extra_float_digits", "-15"),
            ("default_transaction_read_only", "off"),
            ("standard_conforming_strings", "off"),
        ):  # fmt: skip
            connection.execute(f"ALTER ROLE reader SET {name} = {value}")
    rest = database.partition("@")[2]
    reader = f"postgresql://reader:pw@{rest}"
    with protected(reader, tmp_path) as table:
        assert [name for name, _ in PostgresEngine(reader).look("v", "visits").columns] == [
            "user_id", "place",
        ]  # fmt: skip
        found = table.sql("SELECT COUNT(*) AS n FROM visits WHERE place IS NULL", epsilon=20)
        assert found.to_arrow().to_pydict()["n"][0] == pytest.approx(1333, abs=60)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY reader")
        connection.execute("DROP ROLE reader")


def test_row_security_is_an_error_and_not_fewer_rows(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS watched")
        connection.execute("CREATE ROLE watched LOGIN PASSWORD 'pw'")
        connection.execute("GRANT SELECT ON visits TO watched")
        connection.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
    rest = database.partition("@")[2]
    with pytest.raises(DataError, match="row-level security") as caught:
        PostgresEngine(f"postgresql://watched:pw@{rest}").look("visits", "visits")
    assert caught.value.__context__ is None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY watched")
        connection.execute("DROP ROLE watched")


REFUSED = [
    "SELECT COUNT(*) AS n FROM visits WHERE name ~ '\\bno\\b'",
    "SELECT REGEXP_EXTRACT(name, 'a|ab') AS k, COUNT(*) FROM visits GROUP BY k",
    "SELECT REGEXP_REPLACE(name, 'x*', '-', 'g') AS k, COUNT(*) FROM visits GROUP BY k",
    "SELECT COUNT(*) AS n FROM visits JOIN (SELECT a.fee FROM places AS a FULL JOIN places AS b "
    "ON a.fee < b.fee) AS p ON pay = p.fee",
    "SELECT COUNT(*) AS n FROM visits WHERE STRPTIME(name, '%B %d %Y') > DATE '2024-01-01'",
]


@pytest.mark.parametrize("question", REFUSED)
def test_what_postgres_cannot_do_is_refused_for_free(question, database, tmp_path):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE places (fee float8)")
    with protected(database, tmp_path, public={"places": "places"}) as table:
        left = table.remaining
        for ask in (table.quote, table.sql):
            with pytest.raises(Refused, match="the engine of these tables cannot do"):
                ask(question, epsilon=1)
        assert table.remaining == left


def test_a_question_takes_no_longer_than_it_may(database, tmp_path):
    """Whether it is the server that stops, or whoever asks."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE visits SET name = repeat('abc ', 100000) WHERE user_id < 50")
    with protected(database, tmp_path, resources=Resources(seconds=1)) as table:
        began = time.monotonic()
        with pytest.raises(DataError, match="longer than it may") as caught:
            table.sql(SLEEPY, epsilon=1)
        assert time.monotonic() - began < 20
        assert "The charge stands" in str(caught.value)
        assert caught.value.__context__ is None
    engine = PostgresEngine(database, seconds=1)
    capitals = Select(Scan("visits"), (("x", Call("initcap", (ColumnRef("name"),))),))
    with (
        engine.open({"visits": engine.look("visits", "visits")}) as opened,
        pytest.raises(DataError, match="longer than it may"),
    ):
        opened.rows(capitals)


def test_nothing_can_be_dropped_while_a_question_is_held(database):
    engine = PostgresEngine(database)
    opened = engine.open({"visits": engine.look("visits", "visits")})
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("SET lock_timeout = '100ms'")
        with opened.holding(), pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("DROP TABLE visits")
        other.execute("DROP TABLE visits")
    with pytest.raises(DataError, match="still there"), opened.holding():
        pass
    opened.close()
    with pytest.raises(DataError, match="closed"), opened.holding():
        pass


def test_a_table_that_is_gone_costs_nothing(database, tmp_path):
    with protected(database, tmp_path) as table:
        left = table.remaining
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP TABLE visits")
        with pytest.raises(DataError):
            table.sql(COUNT, epsilon=1)
        assert table.remaining == left


@pytest.mark.lengthy
@pytest.mark.parametrize("how", ["backend", "server"])
def test_a_connection_that_is_lost_in_mid_query(how, tmp_path):
    """The charge is kept, the ledger verifies, and asking again with the key charges nothing."""
    with PostgresServer() as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE visits (user_id bigint, place text, name text)")
            connection.execute(
                "INSERT INTO visits SELECT i, 'harbour', repeat('abc ', 100000) "
                "FROM generate_series(1, 200) AS i"
            )
        with protected(url, tmp_path) as table:
            before = table.remaining
            stopper = threading.Thread(target=_stop, args=(server, url, how))
            stopper.start()
            with pytest.raises(DataError, match="connection to PostgreSQL was lost") as caught:
                table.sql(SLEEPY, epsilon=1, key="asked once")
            stopper.join()
            assert "The charge stands" in str(caught.value)
            assert caught.value.__context__ is None
            left = table.remaining
            assert left < before
            server.start()
            # A server that was killed has forgotten its counts, by which data is known to be as
            # it was; to ask for other data is to ask anew, and needs another key.
            with pytest.raises((AlreadyCharged, ParameterError), match="Nothing was spent"):
                table.sql(SLEEPY, epsilon=1, key="asked once")
            assert table.remaining == left
            assert table.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).columns == ("n",)
        with Ledger.open(tmp_path / "budget.db") as ledger:
            assert ledger.verify().size > 0


def _stop(server, url, how):
    """Wait until a question runs, and end what it runs in."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(1000):
            found = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%ILIKE%' "
                "AND pid <> pg_backend_pid()"
            ).fetchone()
            if found is not None:
                break
            time.sleep(0.01)
        assert found is not None
        if how == "backend":
            connection.execute("SELECT pg_terminate_backend(%s)", found)
            return
    server.kill()


def test_the_log_of_the_server_has_no_salt_and_no_key(tmp_path):
    """Statements are logged, their parameters are not, as the page for DBAs says."""
    settings = {
        "log_statement": "all", "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0", "log_min_duration_statement": "0",
        "log_error_verbosity": "terse",
    }  # fmt: skip
    with PostgresServer(settings=settings) as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE visits (user_id bigint, place text, name text)")
        engine = PostgresEngine(url)
        with engine.open({"visits": engine.look("visits", "visits")}) as opened:
            people = Query(
                rows=Select.of("visits", unit="user_id", key_0="place"),
                keys=(Key(name="place", type="text", values=None),),
                tables=("visits",),
            )
            asked = Sums(
                query=people, cells=(Cells(kind="rows"),), bounding=Groups(groups=1, rows=1),
                salt="pepper", groups=(("a key",), ("another key",)),
            )  # fmt: skip
            opened.aggregate(asked)
            assert "pepper" not in opened.sql(asked)
        log = server.log()
    assert "WITH" in log
    assert "pepper" not in log
    assert "a key" not in log


def test_rows_come_in_batches_of_bounded_size(database):
    engine = PostgresEngine(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO visits SELECT i, 'x' FROM generate_series(1, 120000) AS i")
    with engine.open({"visits": engine.look("visits", "visits")}) as opened:
        found = opened.rows(Select.of("visits", unit="user_id", place="place"))
        table = found.reveal_without_noise()
        assert table.num_rows == 124_000
        assert max(len(batch) for batch in table.to_batches()) <= 50_000


def test_questions_of_one_answer_read_one_snapshot(database):
    engine = PostgresEngine(database)
    with engine.open({"visits": engine.look("visits", "visits")}) as opened:
        asked = Select.of("visits", unit="user_id")
        with opened.holding():
            before = opened.rows(asked).reveal_without_noise().num_rows
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute("DELETE FROM visits")
            assert opened.rows(asked).reveal_without_noise().num_rows == before
        assert opened.rows(asked).reveal_without_noise().num_rows == 0


def test_threads_share_a_connection(database):
    engine = PostgresEngine(database)
    counts = []
    with engine.open({"visits": engine.look("visits", "visits")}) as opened:

        def ask():
            for _ in range(3):
                found = opened.rows(Select.of("visits", unit="user_id")).reveal_without_noise()
                counts.append(found.num_rows)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == [4000] * 18


def test_settings_can_be_pickled_without_a_connection(database):
    engine = PostgresEngine(database, seconds=5)
    assert pickle.loads(pickle.dumps(engine)) == engine


def test_a_missing_driver_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match="postgres"):
        PostgresEngine("postgresql://a@b/c").look("visits", "visits")


def test_what_cannot_be_sent_is_an_error_without_it(database):
    engine = PostgresEngine(database)
    with engine.open({"visits": engine.look("visits", "visits")}) as opened:
        odd = Call("equal", (ColumnRef("place"), Literal("\ud800", "text")))
        with pytest.raises(DataError, match="could not carry out") as caught:
            opened.rows(Select(Scan("visits"), (("ok", odd),)))
        assert caught.value.__context__ is None


@pytest.mark.lengthy
def test_very_many_public_keys(database):
    engine = PostgresEngine(database)
    people = Query(
        rows=Select.of("visits", unit="user_id", key_0="user_id"),
        keys=(Key(name="user_id", type="int64", values=None),),
        tables=("visits",),
    )
    with engine.open({"visits": engine.look("visits", "visits")}) as opened:
        asked = Sums(
            query=people, cells=(Cells(kind="rows"),), bounding=Norm(limit=4, order=1), salt="",
            groups=tuple((key,) for key in range(500, 300_000)),
        )  # fmt: skip
        found = opened.aggregate(asked).reveal_without_noise()
        assert len(opened.sql(asked)) < 5000
    assert sorted(found["key_0"].to_pylist()) == list(range(500, 1000))
    assert set(found["cell_0"].to_pylist()) == {4 << 20}


def test_units_that_are_equal_are_one_however_they_are_written(postgres):
    """Whether its zeros, its blanks or its collation differ: a rank depends on the value alone."""
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (n numeric, c char(5), k text)")
        for number, text in (("1.5", "a"), ("1.50", "a  "), ("1.500", "a")):
            for key in range(40):
                connection.execute("INSERT INTO t VALUES (%s, %s, %s)", [number, text, key])
    engine = PostgresEngine(url)
    with engine.open({"t": engine.look("t", "t")}) as opened:
        for unit in ("n", "c"):
            people = Query(
                rows=Select.of("t", unit=unit, key_0="k"),
                keys=(Key(name="k", type="text", values=None),),
                tables=("t",),
            )
            for salt in "abc":
                asked = Sums(
                    query=people, cells=(Cells(kind="rows"),), salt=salt,
                    bounding=Groups(groups=1, rows=3),
                )  # fmt: skip
                found = opened.aggregate(asked).reveal_without_noise()
                assert found["cell_0"].to_pylist() == [3 << 20]
