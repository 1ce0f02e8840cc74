"""The protocol on the gateway that users run: its door, desk, budget and public times."""

import concurrent.futures
import signal
import time

import psycopg
import pytest
from gateway_sites import COUNT, QUERY, asked, free_port, make_site, processes

from discreet.ledger import Ledger

pytestmark = pytest.mark.lengthy
DUE = 1.5
PAID = "-c discreet.epsilon=0.1"


def connected(site, port, who="ana", *, by="id", dataset="people", options=PAID):
    """Connect as the owner of a key: by its id, so that SCRAM hides the secret, or with it."""
    key = site.keys[who]
    return psycopg.connect(
        host="127.0.0.1", port=port, user=key.split("_")[1] if by == "id" else "token",
        password=key, dbname=dataset, options=options, autocommit=True,
    )  # fmt: skip


def entries(site, kind):
    with Ledger.open(site.settings.ledger) as ledger:
        ledger.verify()
        return [one for one in ledger.history() if one["kind"] == kind]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    site, pg_port = make_site(tmp_path_factory.mktemp("site")), free_port()
    with processes(site, workers=2, pg_port=pg_port) as (port, _):
        yield site, port, pg_port


@pytest.mark.parametrize("by", ["id", "token"])
def test_an_answer_is_charged_to_the_login_and_free_by_the_other_protocol(place, by):
    site, port, pg_port = place
    question = f"SELECT COUNT(*) AS n FROM people WHERE age > {20 + len(by)}"
    before = len(entries(site, "charge"))
    with connected(site, pg_port, by=by) as connection:
        ((count,),) = connection.execute(question).fetchall()
    status, again = asked(
        port, "POST", QUERY, key=site.keys["ana"], body={**COUNT, "question": question}
    )
    assert (status, again["rows"][0]["n"], again["is_recalled"]) == (200, count, True)
    charges = entries(site, "charge")
    assert (len(charges), charges[-1]["who"]) == (before + 1, "ana")


def test_roles_and_datasets_of_a_login_hold_by_this_protocol_too(place):
    site, _, pg_port = place
    before = len(entries(site, "charge"))
    for who in ("chris", "audrey"):
        with (
            connected(site, pg_port, who) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="needs the role analyst"),
        ):
            connection.execute("SELECT COUNT(*) FROM people")
    with pytest.raises(psycopg.OperationalError, match="not for this login"):
        connected(site, pg_port, "scoped")
    with connected(site, pg_port, "scoped", dataset="others") as connection:
        for question in ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people.people"):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(question)
            assert refused.value.sqlstate == "0A000"
        listed = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert listed == [("others",)]
    assert len(entries(site, "charge")) == before


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    """A gateway with public times, and a few requests a minute."""
    site, pg_port = make_site(tmp_path_factory.mktemp("late")), free_port()
    settings = {"answer_after": DUE, "requests_per_minute": 60, "pg_port": pg_port}
    with processes(site, workers=1, **settings) as (port, _):
        yield site, port, pg_port


def test_answers_come_at_public_times_and_what_was_answered_at_once(late):
    site, _, pg_port = late
    with connected(site, pg_port, "ben") as connection:
        connection.execute("EXPLAIN SELECT COUNT(*) FROM people")
        times = []
        for _ in range(2):
            began = time.monotonic()
            connection.execute("SELECT COUNT(*) FROM people")
            times.append(time.monotonic() - began)
    assert times[1] < DUE <= times[0]


def test_requests_by_both_protocols_count_together(late):
    site, port, pg_port = late
    with connected(site, pg_port) as connection:
        for _ in range(4):
            connection.execute("SELECT 1", prepare=False)
        seen = [asked(port, "GET", "/v1/me", key=site.keys["ana"])[0] for _ in range(9)]
        assert (seen[0], seen[-1]) == (200, 429)
        with pytest.raises(psycopg.errors.TooManyConnections, match="too many requests"):
            connection.execute("SELECT 1")


def test_a_quiet_end_answers_what_is_under_way_and_says_goodbye_to_the_rest(tmp_path):
    site, pg_port = make_site(tmp_path), free_port()
    settings = {"answer_after": DUE, "pg_port": pg_port}
    with (
        concurrent.futures.ThreadPoolExecutor(1) as beside,
        processes(site, workers=1, **settings) as (_, process),
        connected(site, pg_port) as asking,
        connected(site, pg_port) as idle,
    ):
        waiting = beside.submit(lambda: asking.execute("SELECT COUNT(*) FROM people").fetchall())
        for _ in range(100):
            if entries(site, "charge"):
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert waiting.result()[0][0] is not None
        with pytest.raises(psycopg.OperationalError, match="shutting down"):
            idle.execute("SELECT 1")
    assert len(entries(site, "release")) == 1


def test_more_noise_is_taken_where_the_policy_and_the_client_say_so(tmp_path):
    site = make_site(tmp_path, policy="degrade", epsilon=1, pg_port=free_port())
    with site.running(), connected(site, site.settings.pg_port) as connection:
        told = []
        connection.add_notice_handler(lambda diag: told.append(diag.message_primary))
        connection.execute("SET discreet.epsilon = 0.8")
        connection.execute("SELECT COUNT(*) FROM people")
        more = "SELECT COUNT(*) FROM people WHERE age > 40"
        lines = connection.execute(f"EXPLAIN {more}").fetchall()
        assert "would fit" in str(lines)  # and at which price, before anything is paid
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="Nothing was spent"):
            connection.execute(more)
        connection.execute("SET discreet.degrade = on")
        assert connection.execute(more).fetchone() is not None
    assert "epsilon=0.8" in told[0]
    assert "epsilon=0.1" in told[1] or "epsilon=0.2" in told[1]
