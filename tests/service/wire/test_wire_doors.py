"""Who gets in, over what: TLS, channel binding, the loopback, and limits on the way."""

import socket
import time
from dataclasses import replace

import psycopg
import pytest
from wire_gateway import (
    KEY,
    SECRET,
    TOKEN,
    RawClient,
    SmallDoor,
    errors_in,
    framed,
    own_certificate,
    running_wire,
    startup,
)

from discreet.errors import Unauthenticated
from discreet.service.identity.login import Login, Role
from discreet.service.wire.link import WireLink

SSL_REQUEST = framed(b"", (80877103).to_bytes(4, "big"))


@pytest.fixture(scope="module")
def secured(wire, tmp_path_factory):
    context, certificate, place = own_certificate(tmp_path_factory.mktemp("tls"))
    settings = {"certificate": certificate, "without_tls": "nowhere"}
    with running_wire(wire.desk, tls=context, **settings) as it:
        yield it, place


@pytest.mark.lengthy
def test_tls_and_channel_binding(secured):
    wire, place = secured
    verified = {"sslmode": "verify-full", "sslrootcert": place, "hostaddr": "127.0.0.1"}
    url = wire.url().replace("127.0.0.1", "localhost")
    for binding in ("require", "disable"):
        with psycopg.connect(url, **verified, channel_binding=binding) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
    with psycopg.connect(wire.url(user="token", password=TOKEN), sslmode="require") as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ana",)
    with pytest.raises(psycopg.OperationalError, match="without TLS are not taken"):
        psycopg.connect(wire.url(), sslmode="disable")


def test_nothing_may_come_before_tls(secured):
    """Somebody in between could put words into the mouth of a client."""
    wire, _ = secured
    with RawClient(wire, begin=False) as client:
        client.send(SSL_REQUEST + startup(user="token", database="people"))
        (failure,) = errors_in(client.rest())
    assert failure["M"] == "nothing may come before TLS has begun"


def test_garbage_instead_of_tls_ends_that_connection_alone(secured):
    wire, _ = secured
    with RawClient(wire, begin=False) as client:
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        client.send(b"no handshake" * 10)
        client.rest()
    with psycopg.connect(wire.url(), sslmode="require") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_tokens_are_not_taken_in_the_open(wire, monkeypatch):
    with running_wire(wire.desk, without_tls="anywhere") as open_to_all:
        monkeypatch.setattr(WireLink, "is_loopback", False)
        with pytest.raises(psycopg.OperationalError, match="anybody can read"):
            psycopg.connect(open_to_all.url(user="token", password=TOKEN))
        with psycopg.connect(open_to_all.url()) as connection:  # its secret is not sent
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="without TLS are not taken"):
            psycopg.connect(wire.url())


def test_a_login_has_so_many_connections(wire):
    with running_wire(wire.desk, connections_per_login=2) as small:
        first, second = RawClient(small), RawClient(small)
        with RawClient(small, begin=False) as third:
            third.send(
                startup(user="token", database="people"), framed(b"p", f"{TOKEN}\0".encode())
            )
            assert errors_in(third.rest())[0]["C"] == "53300"
        first.close()
        deadline = time.monotonic() + 30
        while len(small.server._house.sessions) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        RawClient(small).close()
        second.close()


def test_whoever_says_nothing_is_let_go(wire):
    limits = {"authentication_seconds": 0.3, "message_seconds": 0.3, "idle_seconds": 1.0}
    with running_wire(wire.desk, **limits) as hasty:
        for begun in (b"", b"\0\0", startup(user="token", database="people"), SSL_REQUEST):
            with RawClient(hasty, begin=False) as client:
                client.send(begun)
                while client.socket.recv(100):
                    pass
        with RawClient(hasty) as client:
            (failure,) = errors_in(client.rest())
            assert failure["C"] == "57P05"
        with RawClient(hasty) as client:
            client.send(b"Q\0\0\0\x20SEL")  # and never the rest
            (failure,) = errors_in(client.rest())
            assert (failure["S"], failure["C"]) == ("FATAL", "08P01")


def test_there_is_room_for_so_many_connections(wire):
    with (
        running_wire(wire.desk, connections=1) as small,
        RawClient(small),
        socket.create_connection(("127.0.0.1", small.port), timeout=30) as second,
    ):
        assert b"too many connections" in second.recv(1000)


class ForgetfulDoor(SmallDoor):
    """Gives logins for a moment."""

    def login_by_id(self, user):
        until = time.time() + 1.5
        return Login(who="ana", roles=frozenset({Role.ANALYST}), key=user, expires=until)


def test_a_login_that_expires_ends_its_session(wire):
    with running_wire(wire.desk, door=ForgetfulDoor()) as brief, RawClient(brief) as client:
        time.sleep(1.6)
        client.send(framed(b"Q", b"SELECT 1\0"))
        (failure,) = errors_in(client.rest())
        assert (failure["S"], failure["C"]) == ("FATAL", "28P01")


class ChangingDoor(SmallDoor):
    """Knows keys until they are revoked, with the datasets that they are good for by then."""

    revoked, datasets = False, None

    def login_by_id(self, user):
        if self.revoked:
            raise Unauthenticated
        return replace(super().login_by_id(user), datasets=self.datasets)


def test_a_key_that_is_revoked_opens_nothing_through_connections_that_are_open(wire):
    door = ChangingDoor()
    with running_wire(wire.desk, door=door) as it, psycopg.connect(it.url()) as connection:
        connection.autocommit = True
        with RawClient(it) as client:
            assert client.query("SELECT 1")[-1][0] == b"Z"
            door.datasets = frozenset({"others"})
            assert errors_in(client.query("EXPLAIN SELECT COUNT(*) FROM people"))
            door.datasets, door.revoked = None, True
            client.send(framed(b"Q", b"SELECT 1\0"))
            (failure,) = errors_in(client.rest())
            assert (failure["S"], failure["C"]) == ("FATAL", "28P01")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT %s::int", (1,))


def test_closing_says_goodbye(wire):
    with running_wire(wire.desk) as brief:
        client = RawClient(brief)
    (failure,) = errors_in(client.rest())
    assert failure["C"] == "57P01"
    client.close()


def test_wrong_passwords_all_look_alike(wire):
    told = set()
    for user, password in ((KEY, "x"), ("nobody", SECRET), ("token", "x"), ("token", TOKEN + "x")):
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(wire.url(user=user, password=password))
        told.add(str(caught.value).partition("FATAL:")[2])
    assert len(told) == 1


def _first_refusal(connection, *, of):
    for _ in range(of):
        try:
            connection.execute("SELECT 1")
        except psycopg.Error as refused:
            return refused
    return None


def test_a_login_that_asks_too_often_waits_and_others_do_not(wire):
    with (
        running_wire(wire.desk, logins=60) as limited,
        psycopg.connect(limited.url(), autocommit=True) as ana,
        psycopg.connect(limited.url(user="dk_bob"), autocommit=True) as bob,
    ):
        refused = _first_refusal(ana, of=20)
        assert "too many requests" in str(refused)
        assert refused.sqlstate == "53300"
        assert bob.execute("SELECT 1").fetchone() == (1,)
        time.sleep(3)
        assert ana.execute("SELECT 1").fetchone() == (1,)


def test_statements_that_come_together_are_counted_one_by_one(wire):
    with running_wire(wire.desk, logins=60) as few, RawClient(few) as client:  # ten at once
        found = client.query("SELECT 1;" * 50)
        assert 10 <= sum(kind == b"D" for kind, _ in found) < 30
        assert [one["C"] for one in errors_in(found)] == ["53300"]


def test_an_address_that_guesses_too_often_is_told_to_wait(wire):
    with running_wire(wire.desk, strangers=6) as limited:
        with pytest.raises(psycopg.OperationalError, match="needs a login"):
            psycopg.connect(limited.url(password="wrong"))
        with pytest.raises(psycopg.OperationalError, match="too many requests"):
            psycopg.connect(limited.url(user="dk_nobody"))
        with psycopg.connect(limited.url()) as known:
            assert known.execute("SELECT 1").fetchone() == (1,)
