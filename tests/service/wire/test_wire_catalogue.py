"""Questions of tools about tables: answered, free; and what hostile ones may do: little."""

import asyncio
from dataclasses import replace

import pytest
import sqlglot

from discreet.errors import TryLater
from discreet.service.wire.catalogue.clerks import CatalogueClerk
from discreet.service.wire.catalogue.emptiness import empty_columns
from discreet.service.wire.catalogue.metadata import DatasetMetadata
from discreet.service.wire.catalogue.rewriting import reads_catalogue_alone, rewritten
from discreet.service.wire.protocol.failures import WireFailure

SHOWN = DatasetMetadata(
    dataset="visits",
    who="ana",
    datasets=("visits", "people"),
    tables={"people": {"id": "BIGINT", "Name": "VARCHAR"}, "visits": {"day": "DATE"}},
)


def tree(text):
    return sqlglot.parse_one(text, read="postgres")


def translated(text):
    return rewritten(tree(text), facts={"version": "PostgreSQL 16.0"}, settings={"timezone": "UTC"})


def ask(*texts, seconds=30.0, rows=1000):
    async def answers():
        clerk = CatalogueClerk(seconds=seconds, rows=rows)
        found = []
        try:
            for text in texts:
                try:
                    found.append((await clerk.ask(SHOWN, translated(text)))[1])
                except WireFailure as failure:
                    found.append(failure.code)
        finally:
            await clerk.close()
        return found

    return asyncio.run(answers())


KNOWN = {
    "SELECT 1 + 1": [[2]],
    "SELECT version(), current_setting('TimeZone'), current_setting('x', true)": [
        ["PostgreSQL 16.0", "UTC", None]
    ],
    "SELECT 'people'::regclass::oid = c.oid FROM pg_class c WHERE relname = 'people'": [[True]],
    "SELECT relname FROM pg_class WHERE oid = 'public.visits'::regclass": [["visits"]],
    "SELECT c.oid::regclass::text FROM pg_class c ORDER BY 1": [["people"], ["visits"]],
    "SELECT to_regclass('nothing')": [[None]],
    'SELECT attname FROM pg_attribute WHERE attrelid = \'"public"."visits"\'::regclass': [["day"]],
    "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> 'a'": [[None]],
    "SELECT string_agg(word, ',') FROM pg_get_keywords() WHERE word <> ALL ('{a,\"b\"}'::text[])": [
        [None]
    ],
    "SELECT typname FROM pg_type WHERE typname = ANY('{int4,text}'::text[]) ORDER BY 1": [
        ["int4"],
        ["text"],
    ],
    "SELECT k.word FROM pg_get_keywords() AS k": [],
    "SELECT trim(s) FROM unnest(string_to_array('a, b', ',')) AS t(s)": [["a"], ["b"]],
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum = 1 "
    "ORDER BY 1": [["day", "date"], ["id", "bigint"]],
    "SELECT typname FROM pg_type WHERE oid = ANY(ARRAY[16, 25]) ORDER BY oid": [["bool"], ["text"]],
    "SELECT datname FROM pg_database WHERE datname !~ '^v'": [["people"]],
    "SELECT table_name, column_name FROM information_schema.columns WHERE data_type = 'text'": [
        ["people", "Name"]
    ],
    "SELECT (current_schemas(true))[2], current_schemas(false)::text IS NULL": [["public", False]],
    "SELECT count(*) FROM pg_index": [[0]],
    "WITH t AS (SELECT 1 AS a) SELECT a FROM t": [[1]],
    "SELECT quote_ident('Name'), quote_ident('name'), E'a\\nb'": [['"Name"', "name", "a\nb"]],
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_index) THEN 1 ELSE 0 END": [[0]],
    "SELECT has_table_privilege('people', 'SELECT'), pg_is_in_recovery()": [[True, False]],
    "SELECT n FROM generate_series(1, 3) AS t(n)": [[1], [2], [3]],
    "SELECT rolname FROM pg_roles WHERE rolcanlogin": [["ana"]],
    "SELECT pg_get_userbyid(relowner) FROM pg_class LIMIT 1": [["discreet"]],
}


@pytest.mark.lengthy
def test_what_tools_ask_is_answered():
    assert dict(zip(KNOWN, ask(*KNOWN), strict=True)) == KNOWN


def test_questions_that_can_have_no_rows_need_no_answer():
    assert empty_columns(tree("SELECT i.indexrelid, 1 AS one, 2 FROM pg_index i")) == [
        "indexrelid", "one", "?column?",
    ]  # fmt: skip
    for text in (
        "SELECT count(*) FROM pg_index",
        "SELECT * FROM pg_index",
        "SELECT relname FROM pg_class LEFT JOIN pg_index ON true",
        "SELECT relname FROM pg_index RIGHT JOIN pg_class ON true",
        "SELECT 1",
        "SELECT 1 UNION SELECT indrelid FROM pg_index",
    ):
        assert empty_columns(tree(text)) is None, text


def test_other_tables_than_the_catalogues_are_for_the_desk():
    assert reads_catalogue_alone(tree("SELECT * FROM information_schema.tables"))
    assert reads_catalogue_alone(tree("WITH p AS (SELECT 1) SELECT * FROM p"))
    for text in (
        "SELECT COUNT(*) FROM people",
        "SELECT 1 FROM pg_class, people",
        "SELECT (SELECT COUNT(*) FROM people)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM people)",
        "WITH pg_x AS (SELECT * FROM people) SELECT * FROM pg_x",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM tables",
        "SELECT * FROM pg_shadow_copy",
        "SELECT * INTO x FROM pg_class",
    ):
        assert not reads_catalogue_alone(tree(text)), text


REFUSED = [
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT getenv('HOME')", "SELECT * FROM duckdb_settings()",
    "SELECT * FROM query('SELECT 1')", "SELECT * FROM pg_read_file('/etc/passwd')",
    "SELECT pg_sleep(100)", "SELECT repeat('x', 1000000000)", "SELECT lpad('x', 1000000000)",
    "SELECT set_config('x', 'y', false)", "SELECT pg_terminate_backend(1)", "SELECT nextval('x')",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
    "SELECT * FROM pg_class FOR UPDATE", "SELECT * FROM pg_catalog.pg_no_such_relation",
    "SELECT * FROM sniff_csv('x')", "SELECT * FROM parquet_scan('x')", "SELECT checkpoint('x')",
    "WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x", "SELECT $1",
    "SELECT x OPERATOR(pg_catalog.@@@) 1 FROM pg_class", "SELECT lo_import('/etc/passwd')",
    "SELECT * FROM pg_class TABLESAMPLE SYSTEM (10)", "VALUES (read_text('/etc/passwd'))",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_nothing_else_is_run(text):
    with pytest.raises(WireFailure):
        translated(text) if reads_catalogue_alone(tree(text)) else pytest.fail("for the desk")


def product(times):
    return ", ".join(f"pg_attribute a{number}" for number in range(times))


@pytest.mark.lengthy
def test_time_memory_and_rows_are_bounded_and_the_next_question_is_answered():
    """Each of these would fill the machine, or never end."""
    doubled = "SELECT relname AS a FROM pg_class"
    for _ in range(40):
        doubled = f"SELECT a || a AS a FROM ({doubled}) AS q"
    replaced = "'aaaaaaaaaaaaaaaa'"
    for _ in range(12):
        replaced = f"replace({replaced}, 'a', 'aaaaaaaaaaaaaaaa')"
    found = ask(
        f"SELECT count(*) FROM pg_type t, {product(20)}",
        "SELECT count(*) FROM " + ", ".join(f"pg_type t{number}" for number in range(8)),
        doubled,
        f"SELECT length({replaced})",
        "SELECT array_agg(x) FROM generate_series(1, 100000000000) AS t(x)",
        "SELECT a.oid FROM pg_type a, pg_type b, pg_type c",
        "SELECT 1",
        seconds=4.0,
    )
    assert set(found[:5]) <= {"0A000", "57014"}
    assert found[5:] == ["54000", [[1]]]


@pytest.mark.lengthy
def test_a_clerk_that_was_ended_is_started_anew():
    async def answers():
        clerk = CatalogueClerk(seconds=30, rows=10)
        try:
            await clerk.ask(SHOWN, "SELECT 1")
            clerk._process.kill()
            first = await asyncio.gather(clerk.ask(SHOWN, "SELECT 1"), return_exceptions=True)
            return first, await clerk.ask(SHOWN, "SELECT 2 AS two")
        finally:
            await clerk.close()

    first, second = asyncio.run(answers())
    assert isinstance(first[0], WireFailure) or first[0][1] == [[1]]
    assert second == ([("two", "INTEGER")], [[2]])


@pytest.mark.lengthy
def test_the_clerks_database_reaches_nothing_outside():
    """Even if something got past the rewriting: the database itself is closed."""

    async def answers():
        clerk = CatalogueClerk(seconds=30, rows=10)
        found = []
        try:
            for sql in (
                "SELECT * FROM read_text('/etc/hostname')",
                "COPY (SELECT 1) TO '/tmp/leak'",
                "SET enable_external_access = true",
                "ATTACH '/tmp/x.db'",
                "INSTALL httpfs",
            ):
                found += await asyncio.gather(clerk.ask(SHOWN, sql), return_exceptions=True)
        finally:
            await clerk.close()
        return [getattr(one, "code", one) for one in found]

    assert asyncio.run(answers()) == ["0A000"] * 5


@pytest.mark.lengthy
def test_a_clerk_runs_no_code_of_the_folder_that_it_is_started_in(tmp_path, monkeypatch):
    """A file json.py beside the data would have been run, and nothing been answered."""
    (tmp_path / "json.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert ask("SELECT 1") == [[[1]]]


@pytest.mark.lengthy
def test_turns_go_round_among_logins_and_nobody_has_many_waiting():
    """Somebody who asks long questions and cancels them kept all others waiting for hours."""

    async def answers():
        clerk = CatalogueClerk(seconds=1.0, rows=10)
        endless = f"SELECT count(*) FROM pg_catalog_.pg_type t, {product(20)}".replace(
            "pg_attribute", "pg_catalog_.pg_attribute"
        )
        try:
            await clerk.ask(SHOWN, "SELECT 1")
            hogs = [asyncio.ensure_future(clerk.ask(SHOWN, endless)) for _ in range(40)]
            await asyncio.sleep(0)
            other = await clerk.ask(replace(SHOWN, who="bob"), "SELECT 2 AS two")
            done = [one for one in hogs if one.done()]
            for one in hogs:
                one.cancel()
            return other, await asyncio.gather(*done, return_exceptions=True)
        finally:
            await clerk.close()

    other, done = asyncio.run(answers())
    assert other[1] == [[2]]
    assert sum(isinstance(one, TryLater) for one in done) == 19  # at once
    assert len(done) < 23
