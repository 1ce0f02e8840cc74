"""psycopg 3: parameters, binary values, prepared statements, transactions, errors."""

import threading
import time
from datetime import date, datetime
from decimal import Decimal

import psycopg
import pytest
from psycopg import sql
from psycopg.types import TypeInfo
from wire_gateway import SmallDesk, running_wire

from discreet.testing import temporary_tables

pytestmark = pytest.mark.lengthy
MOMENT = datetime(2026, 1, 2, 3, 4)  # noqa: DTZ001
PAID = "-c%20discreet.epsilon%3D0.1"


@pytest.fixture
def connection(wire):
    with psycopg.connect(wire.url(options=PAID)) as one:
        yield one


def test_the_server_says_what_it_is(connection):
    assert connection.info.server_version == 160000
    assert connection.info.parameter_status("server_version").startswith("16.0 (discreet ")
    assert connection.info.encoding == "utf-8"
    assert connection.execute("SELECT pg_backend_pid()").fetchone() == (
        connection.info.backend_pid,
    )


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_parameters_are_values(connection, wire, binary, prepare):
    question = (
        "SELECT sex, COUNT(*) AS n FROM people WHERE age > %s AND region <> %s AND income < %s "
        "GROUP BY sex"
    )
    cursor = connection.cursor(binary=binary)
    for _ in range(3):  # for the second time it is a statement that was prepared
        rows = cursor.execute(question, (30, "it's nowhere", 1e6), prepare=prepare).fetchall()
    assert [row[0] for row in rows] == ["female", "male"]
    assert all(isinstance(row[1], float) for row in rows)
    assert [column.type_code for column in cursor.description] == [25, 701]
    assert cursor.statusmessage == "SELECT 2"
    assert "'it''s nowhere'" in wire.desk.asked[-1][1]


@pytest.mark.parametrize("form", ["%s", "%b", "%t"])
def test_values_go_there_and_come_back(connection, form):
    values = (
        True,
        7,
        -(2**40),
        1.5,
        "grün 'x' \\ \"",
        date(2026, 1, 2),
        MOMENT,
    )
    types = ("bool", "int2", "int8", "float8", "text", "date", "timestamp")
    listed = ", ".join(f"{form}::{type_}" for type_ in types)
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        assert cursor.execute(f"SELECT {listed}", values).fetchone() == values
    assert connection.execute("SELECT %s::int, %s", (None, Decimal("1.5"))).fetchone() == (
        None,
        1.5,
    )


def test_hostile_values_stay_values(connection, wire):
    hostile = "female'; DROP TABLE people; --"
    (n,) = connection.execute(
        "SELECT COUNT(*) FROM people WHERE sex || '' = %s", (hostile,)
    ).fetchone()
    assert abs(n) < 500
    composed = sql.SQL("SELECT COUNT(*) FROM {} WHERE {} = {}").format(
        sql.Identifier("people"), sql.Identifier("role"), sql.Literal(hostile)
    )
    assert abs(connection.execute(composed).fetchone()[0]) < 500


def test_errors_are_told_with_all_they_have(connection):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        connection.execute("SELECT * FROM people")
    told = caught.value.diag
    assert told.message_primary == "* would show raw rows. Nothing was spent."
    assert told.message_hint.startswith("Ask for aggregates")
    assert told.statement_position == "8"
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    connection.rollback()
    connection.execute("SELECT 1")
    for question, error in (
        ("SELECT COUNT(*) FROM people WHERE", psycopg.errors.SyntaxError),
        ("UPDATE people SET age = 1", psycopg.errors.ReadOnlySqlTransaction),
        ("SELECT nosuch(1)", psycopg.errors.UndefinedFunction),
        ("SET ROLE bob", psycopg.errors.InsufficientPrivilege),
        ("SHOW nothing", psycopg.errors.UndefinedObject),
        ("SELECT COUNT(*) FROM people WHERE age > 'x'::date", psycopg.errors.FeatureNotSupported),
    ):
        with pytest.raises(error):
            connection.execute(question)
        connection.rollback()


def test_a_budget_that_is_too_small_is_an_error_of_its_own(wire):
    with psycopg.connect(wire.url(), autocommit=True) as connection:
        connection.execute("SET discreet.epsilon = 400")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="Nothing was spent"):
            connection.execute("SELECT COUNT(*) FROM people")


def test_transactions_and_savepoints_are_kept_track_of(connection):
    status = psycopg.pq.TransactionStatus
    connection.execute("SELECT 1")
    assert connection.info.transaction_status == status.INTRANS
    with connection.transaction(), pytest.raises(psycopg.Error), connection.transaction():
        connection.execute("SELECT nosuch(1)")
    connection.execute("SELECT 1")
    connection.commit()
    assert connection.info.transaction_status == status.IDLE
    connection.autocommit = True
    connection.execute("SELECT 1")
    assert connection.info.transaction_status == status.IDLE


def test_many_statements_in_one_trip(connection):
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int AS i", (i,)) for i in range(20)]
        assert [cursor.fetchone() for cursor in cursors] == [(i,) for i in range(20)]
    with pytest.raises(psycopg.Error), connection.pipeline():  # noqa: PT012
        connection.execute("SELECT nosuch(1)")
        connection.execute("SELECT 1")
    connection.rollback()


def test_types_are_looked_up(connection):
    assert TypeInfo.fetch(connection, "hstore") is None
    assert TypeInfo.fetch(connection, "int4").array_oid == 1007


def test_notices_reach_handlers(connection):
    told = []
    connection.add_notice_handler(lambda diag: told.append(diag.message_primary))
    connection.execute("SELECT COUNT(*) FROM people WHERE age > 81")
    assert told[0].startswith("Price: epsilon=0.1, ")


def test_another_login_cannot_be_chosen_by_the_client(wire):
    options = "-c%20session_authorization%3Dbob"
    with pytest.raises(psycopg.OperationalError, match="cannot be changed"):
        psycopg.connect(wire.url(options=options))
    with psycopg.connect(wire.url(options=PAID)) as connection:
        for attempt in ("SET SESSION AUTHORIZATION bob", "SET discreet.who = 'bob'"):
            with pytest.raises(psycopg.Error):
                connection.execute(attempt)
            connection.rollback()


class SlowDesk(SmallDesk):
    """Answers when it is told to."""

    def __init__(self, datasets):
        super().__init__(datasets)
        self.may_go, self.done = threading.Event(), threading.Event()

    async def answer(self, login, dataset, question, offer, *, degrade):
        import asyncio

        await asyncio.to_thread(self.may_go.wait, 60)
        result = await super().answer(login, dataset, question, offer, degrade=degrade)
        self.done.set()
        return result


def test_cancelling_ends_the_waiting_and_not_the_work():
    with temporary_tables(epsilon=5) as tables:
        desk = SlowDesk({"people": tables})
        question = "SELECT COUNT(*) FROM people"
        with (
            running_wire(desk) as wire,
            psycopg.connect(wire.url(options=PAID), autocommit=True) as connection,
        ):
            timer = threading.Timer(0.5, connection.cancel_safe)
            timer.start()
            started = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled, match="nobody waits") as caught:
                connection.execute(question)
            assert time.monotonic() - started < 30
            assert "stays charged" in caught.value.diag.message_detail
            timer.join()
            desk.may_go.set()
            assert desk.done.wait(60)
            left = tables.remaining
            assert left < 1
            connection.execute(question)  # of the same connection, and free
            assert tables.remaining == left


def test_a_wrong_secret_cancels_nothing(wire):
    import socket
    import struct

    with psycopg.connect(wire.url(), autocommit=True) as connection:
        packet = struct.pack("!IIII", 16, 80877102, connection.info.backend_pid, 1)
        with socket.create_connection(("127.0.0.1", wire.port)) as other:
            other.sendall(packet)
            assert other.recv(10) == b""
        assert connection.execute("SELECT 1").fetchone() == (1,)
