"""Strangers who may write the tables of a server, without the key."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from ledger_requests import (
    ASKED,
    LONG,
    charge_of,
    encoded,
    forgeries,
    grant_of,
    make_account,
    wait_until,
)

from discreet.accounting import PureLoss
from discreet.ledger import Ledger
from discreet.privacy import Guarantee

pytestmark = pytest.mark.lengthy


@pytest.fixture
def remote(server, tmp_path):
    """Return a ledger in a database, an account of it, and a stranger's connection."""
    import psycopg

    url = server.new_database()
    with (
        Ledger.open(url, key=tmp_path / "remote.key", name="example.com/ledger") as made,
        psycopg.connect(url, options="-c search_path=discreet_ledger", autocommit=True) as db,
    ):
        yield made, make_account(made), db


def packed(*parts: bytes) -> bytes:
    from discreet.ledger.stores.packing import join

    return join(parts)


@pytest.mark.needs("postgres")
class TestWithoutTheKeyInAServer:
    def test_nothing_that_a_stranger_posts_is_carried_out(self, remote):
        ledger, account, db = remote
        for slot, request in enumerate(forgeries(ledger, account).values(), 1):
            post = packed(request, request)
            db.execute("INSERT INTO mailbox VALUES (%s, 7, %s)", (-slot, post))
        size = ledger.size
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        posts, answers = zip(*db.execute("SELECT request, answer FROM mailbox"), strict=True)
        assert set(posts) == {None}  # all were looked at
        assert all(answer.count(b"somebody who has the key") == 2 for answer in answers)
        assert ledger.size == size + 1
        assert account.guarantee == Guarantee(epsilon=1)
        ledger.verify()

    def test_what_has_the_key_is_carried_out_there(self, remote):
        ledger, account, db = remote
        request = ledger._session._sealing.seal(encoded(entry=grant_of(account, 50)))
        db.execute("INSERT INTO mailbox VALUES (-1, 7, %s)", (packed(request),))
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert account.guarantee == Guarantee(epsilon=50)

    @pytest.mark.parametrize(
        "post",
        [b"", b"\x01", b"\xff" * 9, packed(b"x")[:-1]],
        ids=["empty", "torn", "too long", "cut off"],
    )
    def test_a_post_that_cannot_be_read_stops_nobody(self, remote, post):
        _, account, db = remote
        db.execute("INSERT INTO mailbox VALUES (-1, 7, %s)", (post,))
        for _ in range(2):
            account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert account.used == pytest.approx(0.2)

    @pytest.mark.parametrize("how", ["plain", "old answer", "none", "two", "torn", "empty part"])
    def test_a_strangers_answer_is_not_believed(self, remote, how):
        ledger, account, db = remote
        before = account.charge(PureLoss(epsilon=0.1), **ASKED)
        true = b"+" + before.bodies[0].encode()
        asked = ledger._session._sealing.seal(encoded(entry=charge_of()))
        answer = {
            "plain": packed(true),
            "old answer": packed(ledger._session._sealing.seal(true, to=asked)),
            "none": packed(),
            "two": packed(true, true),
            "torn": b"\x01",
            "empty part": packed(b""),
        }[how]
        lock = int.from_bytes(ledger._session.store._key, "big", signed=True)
        db.execute("SELECT pg_advisory_lock(%s)", (lock,))
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(account.charge, PureLoss(epsilon=0.2), **ASKED)
            post = "SELECT count(*) FROM mailbox WHERE request IS NOT NULL"
            wait_until(lambda: db.execute(post).fetchone()[0])
            db.execute("UPDATE mailbox SET request = NULL, answer = %s", (answer,))
            db.execute("SELECT pg_advisory_unlock_all()")
            receipt = asking.result(LONG)
        assert receipt.index == before.index + 1
        assert account.used == pytest.approx(0.3)
        ledger.verify()
