"""No canary comes out by PostgreSQL's protocol, nor into a log; leaks that are planted are found.

Each scan fails a gateway that leaks nothing with probability at most 1e-9.
"""

import logging

import pytest
from gateway_sites import free_port
from planted_sites import QUESTIONS, planted_site, rows_of
from wire_gateway import RawClient, framed, startup

from discreet import audit
from discreet.service.desk.desk import Desk
from discreet.service.wire import connection
from discreet.service.wire.protocol import failures
from discreet.service.wire.session import answering, loop, outcome

pytestmark = pytest.mark.lengthy
PAID = "-c discreet.epsilon=0.01 -c discreet.errors=on"
FREE = [
    "SHOW ALL", "SHOW discreet.remaining", "SELECT version()", "TABLE people",
    "SELECT * FROM people",
    "SELECT * FROM pg_stats", "SELECT * FROM pg_class", "SELECT * FROM pg_settings",
    "SELECT * FROM pg_stat_activity", "SELECT * FROM information_schema.columns",
    "SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE tablename = 'people'",
    "SELECT reltuples FROM pg_class WHERE relname = 'people'", "COPY people TO STDOUT",
    "DECLARE c CURSOR FOR SELECT name FROM people", "ANALYZE people", "EXPLAIN ANALYZE SELECT 1",
    "SELECT pg_read_file('data/people.csv')", "SELECT * FROM read_csv('data/people.csv')",
    "SELECT lo_import('data/people.csv')", "SELECT name FROM people WHERE 1 / 0 = 1",
]  # fmt: skip


class Port:
    """Where a client finds the protocol."""

    def __init__(self, port):
        self.port = port


def extended(text, value):
    """Return a question with a parameter, prepared, described and run."""
    return b"".join(
        (
            framed(b"P", b"\0" + text.encode() + b"\0\0\0"),
            framed(b"D", b"S\0"),
            framed(b"B", b"\0\0\0\0\0\1" + len(value).to_bytes(4, "big") + value + b"\0\0"),
            framed(b"D", b"P\0"),
            framed(b"E", b"\0\0\0\0\0"),
            framed(b"S"),
        )
    )


def everything_said(site, everybody):
    """Ask all that there is to ask; return what was sent back."""
    said = []
    port = Port(site.settings.pg_port)
    with site.running():
        for who in everybody:
            key = site.keys[who]
            with RawClient(port, password=key, options=PAID) as client:
                for text in [*QUESTIONS, *FREE, *(f"EXPLAIN {one}" for one in QUESTIONS)]:
                    said += client.query(text)
                question = "SELECT COUNT(*) AS n FROM people WHERE salary > $1"
                for value in (b"100", b"nobody", b"\xff"):
                    said += client.send(extended(question, value)).until(b"Z")
        for user, password in (("token", "dk_x"), ("nobody", "x"), ("token", "")):
            with RawClient(port, begin=False) as client:
                client.send(
                    startup(user=user, database="people"), framed(b"p", password.encode() + b"\0")
                )
                said += client.rest()
    assert sum(kind == b"D" for kind, _ in said) > 100 * len(everybody)
    assert sum(kind == b"E" for kind, _ in said) > 10 * len(everybody)
    return b"\n".join(kind + body for kind, body in said)


@pytest.fixture
def planted():
    return audit.plant(rows=300)


@pytest.fixture
def site(planted, tmp_path):
    return planted_site(planted, tmp_path, pg_port=free_port())


def scanned(site, planted, *everybody):
    return audit.scan(
        lambda: everything_said(site, everybody),
        planted,
        folders=[site.folder],
        excluded=[site.folder / "data" / "people.csv"],
        epsilon=0.5,  # what all of the questions cost together
    )


def test_nothing_comes_out_of_any_message_log_or_file(site, planted):
    report = scanned(site, planted, "ana", "ben", "chris", "audrey")
    assert report.passed, report


# Leaks, each planted in a test build ---------------------------------------------------------


def tell_errors(planted, patch):
    """Send str(exception), whose words may be a row's."""

    async def answer(self, *args, **more):
        raise KeyError(rows_of(planted)[0]["name"])

    def told(error, question=""):
        if isinstance(error, KeyError):
            return failures.WireFailure("XX000", str(error))
        return failures.failure_of(error, question)

    patch.setattr(Desk, "answer", answer)
    patch.setattr(loop, "failure_of", told)


def log_errors(planted, patch):
    """Log the words of what failed."""

    async def answer(self, *args, **more):
        raise KeyError(rows_of(planted)[1]["email"])

    patch.setattr(Desk, "answer", answer)
    patch.setattr(loop, "place_of", str)


def notice_rows(planted, patch):
    """Tell in a notice who is in the data."""
    words = answering._words
    patch.setattr(
        answering,
        "_words",
        lambda result, dataset: [*words(result, dataset), rows_of(planted)[2]["email"]],
    )


def describe_values(planted, patch):
    """Offer an example of a column's values among the metadata."""
    ask = Desk.tables

    def tables(self, login, dataset):
        found = {name: dict(columns) for name, columns in ask(self, login, dataset).items()}
        if "people" in found:
            found["people"][rows_of(planted)[3]["name"]] = "VARCHAR"
        return found

    patch.setattr(Desk, "tables", tables)


def greet_with_a_name(planted, patch):
    """Say hello with a row."""
    patch.setattr(connection, "SERVER_VERSION", f"16.0 {rows_of(planted)[4]['email']}")


def tag_with_a_row(planted, patch):
    """Say more than how many rows there are where an answer ends."""
    row = rows_of(planted)[5]["email"]
    patch.setattr(outcome.Outcome, "row", lambda self, index, formats: framed(b"D", row.encode()))


def log_exact_sums(planted, patch):
    """Log what an answer was made from."""
    ask = Desk.answer

    async def answer(self, *args, **more):
        logging.getLogger("discreet.service").debug("%r", rows_of(planted)[6]["salary"])
        logging.getLogger("discreet.service").debug("%r", rows_of(planted)[6]["email"])
        return await ask(self, *args, **more)

    patch.setattr(Desk, "answer", answer)


PLANTED = [
    tell_errors, log_errors, notice_rows, describe_values, greet_with_a_name, tag_with_a_row,
    log_exact_sums,
]  # fmt: skip


# One of them with every change; all of them in `make audit`.
LEAKS = [PLANTED[0], *(pytest.param(leak, marks=pytest.mark.slow) for leak in PLANTED[1:])]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_planted_leak_is_found(site, planted, monkeypatch, leak):
    leak(planted, monkeypatch)
    report = scanned(site, planted, "ana")
    assert not report.passed, report
