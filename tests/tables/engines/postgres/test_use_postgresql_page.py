"""What the page about PostgreSQL says is done here, in its own words."""

import re
from pathlib import Path

import psycopg
import pytest

from discreet.testing import PostgresServer

PAGE = Path(__file__).parents[4] / "docs/how-to/use-postgresql.md"
pytestmark = [pytest.mark.needs("postgres"), pytest.mark.lengthy]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_the_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with PostgresServer(settings={"log_statement": "all"}) as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE visits (user_id bigint, place text, pay float8, secret text)"
            )
            connection.execute(
                "INSERT INTO visits SELECT i, 'harbour', i, 'x' FROM generate_series(1, 5000) AS i"
            )
            for block in blocks("sql"):
                for statement in filter(str.strip, block.split(";")):
                    connection.execute(statement.encode())
        place = url.partition("@")[2]
        (code,) = blocks("py")
        assert "@db.example/hr" in code
        exec(code.replace("db.example/hr", place), {"__name__": "__main__"})
        assert "5" in capsys.readouterr().out
        saved = Path("visits.toml").read_text(encoding="utf-8")
        assert 'source = "table://public.visits"' in saved
        assert "choose-another" not in saved
        assert "secret" not in saved
        reader = psycopg.connect(f"postgresql://discreet_reader:choose-another@{place}")
        with reader, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute("CREATE TABLE mine (x int)")
