"""The real psql, as somebody types into it."""

import os
import subprocess

import pytest

pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.needs("psql"),
]


def psql(wire, *commands, **where):
    """Run commands, and return what was printed and what was told beside it."""
    given = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", wire.url(**where), *given],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PGCONNECT_TIMEOUT": "60"},
    )  # fmt: skip
    return done.stdout.strip(), done.stderr.strip()


def test_a_question_is_answered_and_its_price_told(wire):
    before = wire.desk.datasets["people"].remaining
    out, told = psql(
        wire,
        "SET discreet.epsilon = 0.5",
        "SELECT sex, COUNT(*) AS n FROM public.people WHERE age > 20 GROUP BY sex ORDER BY sex",
    )
    rows = [line.split("|") for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["female", "male"]
    assert all(500 < float(row[1]) < 1200 for row in rows)
    assert "NOTICE:  Price: epsilon=0.5, " in told
    assert "Left: " in told
    assert wire.desk.datasets["people"].remaining < before
    who, _, offer = wire.desk.asked[-1]
    assert (who, offer.who) == ("ana", "ana")


def test_the_same_question_is_free_and_notices_can_be_off(wire):
    question = "SELECT COUNT(*) AS n FROM people"
    set_up = "SET discreet.share = '0.1%'"
    first, _ = psql(wire, set_up, question)
    left = wire.desk.datasets["people"].remaining
    again, told = psql(wire, set_up, question)
    assert first == again
    assert "Asked before, so free now" in told
    assert wire.desk.datasets["people"].remaining == left
    assert psql(wire, set_up, "SET discreet.notices = off", question)[1] == ""


def test_error_bars_are_columns_where_they_are_wanted(wire):
    out, _ = psql(
        wire,
        "SELECT COUNT(*) AS n FROM people WHERE age < 50",
        options="-c%20discreet.epsilon%3D0.5%20-c%20discreet.errors%3Don",
    )
    n, error, low, high, reliable = out.split("|")
    assert float(low) < float(n) < float(high)
    assert float(error) > 0
    assert reliable == "t"


def test_explain_is_the_quote_and_free(wire):
    before = wire.desk.datasets["people"].remaining
    out, told = psql(
        wire, "SET discreet.within = 10", "EXPLAIN SELECT COUNT(*) FROM people WHERE age = 33"
    )
    assert "price     epsilon=" in out
    assert "COUNT(*)  within 10" in out
    assert told == ""
    assert psql(wire, "EXPLAIN SELECT 1")[0].startswith("This asks about names")
    assert wire.desk.datasets["people"].remaining == before


def test_tables_are_listed_and_described(wire):
    assert psql(wire, r"\dt")[0] == "public|people|table|discreet"
    assert psql(wire, r"\d")[0] == "public|people|table|discreet"
    assert "income|bigint|||" in psql(wire, r"\d people")[0]
    assert "income|bigint|||" in psql(wire, r"\d+ public.peo*")[0]
    assert psql(wire, r"\l")[0].startswith("people|discreet|UTF8|")
    assert psql(wire, r"\dn")[0] == "public|discreet"
    for listing in (r"\dv", r"\di", r"\df", r"\dT", r"\dx", r"\dp", r"\db", r"\du", r"\dg"):
        _, told = psql(wire, listing)
        assert "known to this catalogue" not in told, listing
        assert "cannot answer" not in told, listing


def test_errors_have_a_place_and_a_hint(wire):
    out, told = psql(wire, "SELECT COUNT(*), income FROM people")
    assert out == ""
    assert told.splitlines()[0].startswith("ERROR:  ")
    assert "LINE 1: SELECT COUNT(*), income FROM people" in told
    assert told.splitlines()[2].index("^") == len("LINE 1: SELECT COUNT(*), ")
    assert "HINT:  Add income to GROUP BY" in told
    _, told = psql(wire, "SELECT COUNT(*) FROM people")
    assert "ERROR:  nothing says what this answer may cost" in told
    assert "HINT:  SET discreet.epsilon = 0.1" in told
    _, told = psql(wire, "SET discreet.epsilon = 1000", "SELECT COUNT(*) FROM people")
    assert "Nothing was spent." in told
    for change in ("DELETE FROM people", "COPY people TO STDOUT", "CREATE TABLE x (a int)"):
        _, told = psql(wire, change)
        assert "data can only be asked here" in told


def test_the_place_of_an_error_is_that_in_the_whole_text(wire):
    _, told = psql(wire, "SET discreet.epsilon = 0.5; SELECT 1;\n SELECT * FROM people")
    assert "LINE 2:  SELECT * FROM people" in told
    assert told.splitlines()[2].index("^") == len("LINE 2:  SELECT ")


def test_a_transaction_undoes_settings_and_stops_at_errors(wire):
    out, told = psql(
        wire,
        "SET discreet.epsilon = 0.5",
        "BEGIN; SET LOCAL discreet.epsilon = 1; SHOW discreet.epsilon",
        "SELECT nonsense(1)",
        "SELECT 1",
        "COMMIT",
        "SHOW discreet.epsilon",
    )
    assert out.splitlines() == ["SET", "BEGIN", "SET", "1", "ROLLBACK", "0.5"]
    assert "current transaction is aborted" in told


def test_only_those_get_in_who_are_known(wire):
    assert (
        psql(wire, "SELECT current_user", user="token", password="dk_bob.open sesame")[0] == "bob"
    )
    for wrong in ({"password": "x"}, {"user": "nobody"}, {"user": "token", "password": "dk_ana.x"}):
        _, told = psql(wire, "SELECT 1", **wrong)
        assert "FATAL:  this needs a login that the gateway knows" in told
    _, told = psql(wire, "SELECT 1", dataset="secrets")
    assert "FATAL:  there is no such dataset" in told
