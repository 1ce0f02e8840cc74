"""Attacks and accidents that once went through, each kept as a test.

Three sorts of people appear. One may write the database and the mailbox but has no key: nothing of
theirs is ever signed or believed. One has the key and a program that was tampered with: what it
writes is found by verification. And one only makes mistakes: they get an error that says so, and
nothing is charged.
"""

import contextlib
import dis
import hashlib
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

import pytest

from discreet._version import __version__
from discreet.accounting import FilterRules, LaplaceLoss, PureLoss
from discreet.accounting.filters import PRICING
from discreet.accounting.losses import laplace
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    TamperingFound,
)
from discreet.ledger import Export, Ledger, Verification, Witness
from discreet.ledger.checking.replay import _covers
from discreet.ledger.log import keyring as _keyring
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import add_signature, cosign, sign_checkpoint
from discreet.ledger.log.tree import Tree
from discreet.ledger.rules import definition as definitions
from discreet.ledger.rules import entry as _entries
from discreet.ledger.rules import hold as _holds
from discreet.ledger.rules import state as ledger_state
from discreet.ledger.rules.balance import Balance
from discreet.ledger.stores.sqlite import mailbox as _mailbox
from discreet.ledger.stores.sqlite.mailbox import SLOTS, Mailbox
from discreet.ledger.verifier import leaf_hash
from discreet.ledger.writing import group_commit, scribe
from discreet.ledger.writing.group_commit import GroupCommit
from discreet.ledger.writing.request import loss_document, new_key
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit

LONG = 20.0  # seconds after which something that should happen will not
ASKED = {"who": "ana", "purpose": "report"}
ARABIC = {ord("0") + n: 0x0660 + n for n in range(10)}  # digits that int() reads, too
WIDE = {ord("0") + n: 0xFF10 + n for n in range(10)}
needs_mailbox = pytest.mark.skipif(sys.platform == "win32", reason="no mailbox on Windows")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path):
    with Ledger.open(path, name="example.com/ledger") as made:
        yield made


@pytest.fixture
def account(ledger):
    return make_account(ledger)


def make_account(ledger, name="a", *, epsilon=1, delta=0, unit=None, **more):
    return ledger.create(
        name,
        unit=unit or Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=epsilon, delta=delta),
        **more,
    )


def pure(epsilon) -> dict:
    return loss_document(PureLoss(epsilon=epsilon))


def charge_of(account="a", epsilon=0.1, **more) -> dict:
    """Return a charge as a program would ask for it."""
    return {
        "kind": "charge",
        "account": account,
        "key": new_key(),
        "loss": pure(epsilon),
        "noise": "secure",
        "pricing": PRICING,
        **ASKED,
        **more,
    }


def encoded(**proposal) -> bytes:
    return json.dumps(proposal).encode()


def submit(ledger, entry) -> dict:
    """Ask for an entry as a program with the key could that checks nothing; return it."""
    body, _ = ledger._session._ask(ledger._session._keyring, encoded(entry=entry))
    return json.loads(body)


def grant_of(account, epsilon) -> dict:
    """Return a grant as a program would ask for it."""
    widened = account._definition(fresh=True).total.widened(Guarantee(epsilon=epsilon))
    return {
        "kind": "grant",
        "account": account.name,
        "key": new_key(),
        "line": "total",
        "filter": widened.settings,
        "who": "mallory",
        "reason": "because",
    }


def sql(path, statement, *parameters) -> list:
    with closing(sqlite3.connect(path)) as db, db:
        return db.execute(statement, parameters).fetchall()


def wait_until(condition) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def forgeries(ledger, account) -> dict[str, bytes]:
    """Return requests for a larger budget, by people who do not have the key."""
    wanted = encoded(entry=grant_of(account, 50))
    mine = SigningKey.generate("example.com/ledger")
    seen = ledger._session._sealing.seal(encoded(entry=charge_of(account.name)))
    return {
        "not sealed": wanted,
        "with a seal of zeros": bytes(32) + wanted,
        "with a seal of noise": os.urandom(32) + wanted,
        "sealed with another key": mine.seal(wanted),
        "with the seal of another request": seen[:32] + wanted,
        "empty": b"",
        "nothing but a seal": seen[:32],
    }


# --- without the key: the mailbox of a file ---


def posted(box: Mailbox) -> bool:
    page = box._page
    return page[_mailbox._POSTED :][:SLOTS] != page[_mailbox._DONE :][:SLOTS]


def refuse(batch):
    raise RuntimeError("there is no key here")


@contextlib.contextmanager
def stranger(path):
    """Open the mailbox as somebody who may write the files."""
    box = Mailbox(path)
    box.commit_together([], lambda batch: [])
    try:
        yield box
    finally:
        box.close()


def carried_out_for(ledger, account, box, requests) -> list[bytes]:
    """Let a stranger post while the ledger writes; return what it was answered."""
    work, has_entered = ledger._session._scribe.work, threading.Event()

    def slow(transaction, batch):
        if not has_entered.is_set():
            has_entered.set()
            wait_until(lambda: posted(box))
        return work(transaction, batch)

    ledger._session._scribe.work = slow
    try:
        with ThreadPoolExecutor(2) as pool:
            mine = pool.submit(account.charge, PureLoss(epsilon=0.1), **ASKED)
            assert has_entered.wait(LONG)
            theirs = pool.submit(box.commit_together, requests, refuse)
            mine.result(LONG)
            return theirs.result(LONG)
    finally:
        ledger._session._scribe.work = work


@needs_mailbox
class TestWithoutTheKeyInTheMailbox:
    def test_nothing_that_a_stranger_posts_is_carried_out(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        tried = forgeries(ledger, account)
        size = ledger.size
        with stranger(path) as box:
            answers = carried_out_for(ledger, account, box, list(tried.values()))
        assert len(answers) == len(tried)
        for answer in answers:
            assert b"somebody who has the key" in answer
        assert ledger.size == size + 1  # the charge that was under way
        assert account.guarantee == Guarantee(epsilon=1)
        ledger.verify()

    def test_what_has_the_key_is_carried_out_there(self, ledger, account, path):
        """Otherwise the test above would show nothing."""
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        request = ledger._session._sealing.seal(encoded(entry=grant_of(account, 50)))
        with stranger(path) as box:
            carried_out_for(ledger, account, box, [request])
        assert account.guarantee == Guarantee(epsilon=50)

    def test_a_request_that_was_seen_pays_once(self, ledger, account, path):
        entry = charge_of()
        request = ledger._session._sealing.seal(encoded(entry=entry))
        ledger._session._carry_out([request])
        size = ledger.size
        with stranger(path) as box:
            carried_out_for(ledger, account, box, [request, request])
        assert ledger.size == size + 1
        assert [one["key"] for one in account.history()].count(entry["key"]) == 1

    @pytest.mark.parametrize("how", ["plain", "noise", "other key", "old answer", "refusal"])
    def test_a_strangers_answer_is_not_believed(self, ledger, account, path, how):
        before = account.charge(PureLoss(epsilon=0.1), **ASKED)
        true = b"+" + before.bodies[0].encode()
        asked = ledger._session._sealing.seal(encoded(entry=charge_of()))
        mine = SigningKey.generate("example.com/ledger")

        def forged(request: bytes) -> bytes:
            return {
                "plain": true,
                "noise": os.urandom(32) + true,
                "other key": mine.seal(true, to=request),
                "old answer": ledger._session._sealing.seal(true, to=asked),
                "refusal": bytes(32) + b'!["LedgerError",["no"],{}]',
            }[how]

        has_entered, forgeries_made = threading.Event(), []

        def lie(batch):
            if not has_entered.is_set():
                has_entered.set()
                wait_until(lambda: posted(box))
                return [b""] * len(batch)
            forgeries_made.extend(batch)
            return [forged(request) for request in batch]

        with stranger(path) as box, ThreadPoolExecutor(2) as pool:
            lying = pool.submit(box.commit_together, [b"hold"], lie)
            assert has_entered.wait(LONG)
            receipt = pool.submit(account.charge, PureLoss(epsilon=0.2), **ASKED).result(LONG)
            lying.result(LONG)
        assert forgeries_made
        assert receipt.index == before.index + 1
        assert ledger.prove(receipt).is_proven
        assert account.used == pytest.approx(0.3)

    def test_who_is_only_ever_lied_to_is_told(self, ledger, account):
        true = account.charge(PureLoss(epsilon=0.1), **ASKED).bodies[0].encode()
        ledger._session._group = GroupCommit(lambda batch: [b"+" + true for _ in batch])
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=0.1), **ASKED)


class TestAKeyThatWasRotatedOut:
    def test_a_request_sealed_with_it_is_not_carried_out(self, ledger, account):
        stolen = ledger._session._keyring.key(ledger.vkey)
        ledger.rotate()
        size = ledger.size
        request = stolen.seal(encoded(entry=grant_of(account, 50)))
        (answer,) = ledger._session._carry_out([request])
        assert stolen.unsealed(answer, to=request) is None  # nor answered under it
        assert ledger.size == size
        assert account.guarantee == Guarantee(epsilon=1)

    def test_somebody_who_does_not_know_of_it_yet_goes_on(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        with Ledger.open(path) as other:
            other.rotate()
            other.rotate()
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert account.used == pytest.approx(0.2)
        ledger.verify()

    def test_an_answer_under_it_is_not_believed(self, ledger, account):
        stolen = ledger._session._keyring.key(ledger.vkey)
        ledger.rotate()
        body = account.charge(PureLoss(epsilon=0.1), **ASKED).bodies[0].encode()
        ledger._session._group = GroupCommit(
            lambda batch: [stolen.seal(b"+" + body, to=r) for r in batch]
        )
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=0.1), **ASKED)


# --- without the key: the mailbox table of a server ---


@pytest.fixture(scope="module")
def server():
    from discreet.testing._postgres import PostgresServer

    with PostgresServer() as running:
        yield running


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


# --- entries of bad form ---


BAD_CHARGES = {
    "by nobody": {"who": ""},
    "by None": {"who": None},
    "by a number": {"who": 3},
    "by each": {"who": "*"},
    "by two lines": {"who": "ana\nbo"},
    "with a space behind the name": {"who": "ana "},
    "for nothing": {"purpose": ""},
    "for None": {"purpose": None},
    "of no loss": {"loss": "pure"},
    "with other noise": {"noise": "mine"},
    "of a question in clear text": {"query": "SELECT 1"},
    "with a member more": {"note": "x"},
    "of an account by number": {"account": 3},
    "of another kind": {"kind": "gift"},
    "of no kind": {"kind": None},
    "of a list of kinds": {"kind": ["charge"]},
    "with its outcome": {"after": {"total": "0 0"}},
    "with an empty key": {"key": ""},
    "with a number as key": {"key": 5},
    "of no period": {"account": "days"},
    "of an empty period": {"account": "days", "periods": []},
    "of a period without a list": {"account": "days", "periods": "2026-11-15"},
    "of a period with a tail": {"account": "days", "periods": ["2026-11-15x"]},
    "of a period in other digits": {"account": "days", "periods": ["2026-11-15".translate(ARABIC)]},
    "of anything": {"account": "days", "periods": ["anything"]},
    "of a period twice": {"account": "days", "periods": ["2026-11-15", "2026-11-15"]},
    "of a period where there is none": {"periods": ["2026-11-15"]},
}


def other_entries() -> dict[str, dict]:
    rules = FilterRules(Guarantee(epsilon=1), neighbours="add_remove")
    wide = rules.widened(Guarantee(epsilon=1000)).settings
    loose = FilterRules(Guarantee(epsilon=1)).settings
    limit = {"kind": "budget", "account": "a", "filter": wide}
    spend = {"kind": "spend", "account": "a", "job": 3}
    opening = {
        "kind": "account",
        "name": "new",
        "unit": Unit.record().to_dict(),
        "neighbours": "add_remove",
        "policy": "deny",
        "filter": rules.settings,
        "sources": [],
    }
    source = {"name": "s", "version": "1", "identities": ["0" * 64]}
    register = {"kind": "source", "account": "a"}
    release = {
        "kind": "release",
        "account": "a",
        "charge": 4,
        "answer": "0" * 64,
        "plan": "0" * 64,
        "code": "x",
        "key": "release/4",
    }
    founding = {"kind": "ledger", "format": 1, "origin": "x", "vkey": "x", "testing": True}
    return {
        "a limit that is none": {**limit, "line": "x"},
        "a limit of nobody": {**limit, "line": "analyst="},
        "a limit in another order": {**limit, "line": "every=month,analyst=ana"},
        "a limit with a tail": {**limit, "line": "analyst=ana,x=1"},
        "a limit of the total": {**limit, "line": "total"},
        "a limit without neighbours": {**limit, "line": "analyst=ana", "filter": loose},
        "half a step": {**spend, "steps": [0.5]},
        "a true step": {**spend, "steps": [True]},
        "next to no step": {**spend, "steps": [1e-30]},
        "no step": {**spend, "steps": [0]},
        "a step back": {**spend, "steps": [-1]},
        "no steps": {**spend, "steps": []},
        "steps of another job": {**spend, "steps": [1, 1]},
        "a step too many": {**spend, "steps": [3]},
        "a step of a job that is not": {**spend, "steps": [1], "job": 4},
        "a step of a true job": {**spend, "steps": [1], "job": True},
        "the end of a job that is not": {"kind": "settle", "account": "a", "job": 4},
        "an account with a slash": {**opening, "name": "q/total"},
        "an account without a name": {**opening, "name": ""},
        "an account that waits for nothing": {**opening, "policy": "wait"},
        "an account of no policy": {**opening, "policy": "never"},
        "an account without neighbours": {**opening, "filter": loose},
        "an account of other neighbours": {**opening, "neighbours": "replace_one"},
        "an account without a unit": {**opening, "unit": {}},
        "an account with a bad source": {**opening, "sources": [{"bad": 1}]},
        "a second account": {**opening, "name": "a"},
        "a source in clear text": {**register, "source": {**source, "identities": ["x"]}},
        "a source of nothing": {**register, "source": {**source, "identities": []}},
        "a source with more": {**register, "source": {**source, "more": 1}},
        "a source for no reason": {**register, "source": source, "override": ""},
        "a release of a true charge": {**release, "charge": True},
        "a release of a limit": {**release, "charge": 1, "key": "release/1"},
        "a release under another key": {**release, "key": "release/x"},
        "a release of a charge to come": {**release, "charge": 99, "key": "release/99"},
        "a release of an unstarted job": {**release, "charge": 3, "key": "release/3"},
        "a release of a bad digest": {**release, "answer": "x"},
        "a second founding": founding,
        "a witness of nothing": {"kind": "witness", "note": "x", "vkey": "x"},
        "a rotation by nobody": {"kind": "rotate", "vkey": "x", "by_old": "", "by_new": ""},
        "a clock for no reason": {"kind": "clock", "who": "ana", "reason": ""},
    }


BAD_ENTRIES = {
    **{f"a charge {name}": charge_of() | bad for name, bad in BAD_CHARGES.items()},
    **{name: {"key": new_key(), **bad} for name, bad in other_entries().items()},
}
for name in ("who", "purpose", "loss", "noise", "account", "kind", "pricing", "key"):
    BAD_ENTRIES[f"a charge without {name}"] = charge_of()
    del BAD_ENTRIES[f"a charge without {name}"][name]


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A ledger with three accounts, an open job of which nothing began, and a charge."""
    path = tmp_path_factory.mktemp("template") / "budget.db"
    with Ledger.open(path, name="example.com/ledger") as ledger:
        account = make_account(ledger)
        make_account(ledger, "days", unit=Unit.column("u").per("day"))
        job = account.reserve(PureLoss(epsilon=0.1) * 2, **ASKED)
        receipt = account.charge(PureLoss(epsilon=0.1), **ASKED)
        make_account(ledger, "years", unit=Unit.column("u").per("year"), policy="wait")
        assert (job.index, receipt.index, ledger.size) == (3, 4, 6)
    return path


def copied(template: Path, place: Path) -> Path:
    shutil.copyfile(template, place)
    shutil.copy2(f"{template}.key", f"{place}.key")
    return place


@pytest.fixture
def furnished(template, path):
    """A copy of that ledger."""
    with Ledger.open(copied(template, path)) as ledger:
        yield ledger


def resigned(path, change) -> None:
    """Rewrite the history as somebody with the key could: chain, tree and checkpoint fit."""
    rows = sql(path, "SELECT body FROM entries ORDER BY idx")
    bodies = [json.loads(body) for (body,) in rows]
    change(bodies)
    tree, last = Tree(), "0" * 64
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM entries")
        for index, entry in enumerate(bodies):
            entry |= {"index": index, "previous": last}
            body = json.dumps(entry, sort_keys=True, separators=(",", ":"))
            leaf = leaf_hash(body.encode())
            of = entry.get("name") if entry.get("kind") == "account" else entry.get("account")
            values = (index, of, entry.get("key"), body, tree.add(leaf))
            db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", values)
            last = leaf.hex()
        note = sign_checkpoint(Keyring(Path(f"{path}.key")).any(), tree.size, tree.root())
        head = (tree.size, bodies[-1]["time"], bytes.fromhex(last), tree.frontier, note)
        db.execute("UPDATE head SET size=?, time=?, last=?, frontier=?, note=?", head)


CHANGES = {
    "who": lambda e: e.update(who=""),
    "who is None": lambda e: e.update(who=None),
    "no who": lambda e: e.pop("who"),
    "purpose": lambda e: e.update(purpose=" "),
    "more": lambda e: e.update(more=1),
    "time": lambda e: e.update(time=e["time"][:-1]),
    "time with other digits": lambda e: e.update(time=e["time"].translate(ARABIC)),
    "noise": lambda e: e.update(noise=None),
    "pricing": lambda e: e.update(pricing=True),
    "no pricing": lambda e: e.pop("pricing"),
    "after": lambda e: e.update(after={"total": 5}),
    "after of no budget": lambda e: e.update(after={}),
    "after in part": lambda e: e.update(after={"total": e["after"]["total"].split()[0]}),
    "key": lambda e: e.update(key=None),
    "kind": lambda e: e.update(kind="gift"),
    "a kind that is no text": lambda e: e.update(kind=[]),
    "account": lambda e: e.update(account=None),
    "loss": lambda e: e.update(loss=[]),
    "loss of nothing": lambda e: e.update(loss={}),
    "query": lambda e: e.update(query="how many"),
    "periods": lambda e: e.update(periods=["2026-11-15"]),
}


class TestEntriesOfBadForm:
    @pytest.mark.parametrize("name", BAD_ENTRIES)
    def test_it_is_not_written(self, furnished, name):
        size, used = furnished.size, furnished["a"].used
        with pytest.raises(DiscreetError):
            submit(furnished, BAD_ENTRIES[name])
        assert furnished.size == size
        assert furnished["a"].used == used
        furnished.verify()
        furnished["a"].charge(PureLoss(epsilon=0.1), **ASKED)  # and goes on

    def test_good_ones_are_written(self, furnished):
        """Otherwise the test above would show nothing."""
        submit(furnished, charge_of())
        submit(furnished, charge_of("days", periods=["2026-11-15"]))
        submit(furnished, {"kind": "spend", "account": "a", "job": 3, "steps": [1], "key": "x"})
        assert furnished.verify().size == 9

    def test_a_program_that_does_not_check_is_found_out(self, template, monkeypatch, path):
        """Everything it writes fits together and is signed; only the form is wrong."""
        written, missed = 0, []
        for number, (name, bad) in enumerate(BAD_ENTRIES.items()):
            place = copied(template, path.with_name(f"{number}.db"))
            with Ledger.open(place) as hacked:
                with monkeypatch.context() as patch, suppress(Exception):
                    patch.setattr(scribe, "check_form", lambda entry, *, is_new: None)
                    submit(hacked, bad)
                if hacked.size == 6:
                    continue  # a rule refuses it, too
                written += 1
                try:
                    hacked.verify()
                except TamperingFound as error:
                    missed += [f"{name}: blamed {error.entry}"] if error.entry != 6 else []
                else:
                    missed.append(name)
        assert not missed, "\n".join(missed)
        assert written >= 15

    @pytest.mark.parametrize("name", CHANGES)
    def test_it_is_not_verified_in_a_history_signed_anew(self, furnished, path, name):
        furnished.close()
        resigned(path, lambda bodies: CHANGES[name](bodies[4]))
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 4

    def test_a_history_signed_anew_without_a_change_is_verified(self, furnished, path):
        furnished.close()
        resigned(path, lambda bodies: None)
        with Ledger.open(path) as ledger:
            assert ledger.verify().size == 6

    @pytest.mark.parametrize(
        "label", ["2026-11-15x", "anything", "2026-11-15".translate(ARABIC), "2026-11-31"]
    )
    def test_a_period_of_another_name_is_not_verified(self, furnished, path, label):
        furnished["days"].charge(PureLoss(epsilon=1), periods="2026-11-15", **ASKED)

        def rename(bodies):
            (after,) = bodies[6]["after"].values()
            bodies[6] |= {"periods": [label], "after": {f"total:{label}": after}}

        furnished.close()
        resigned(path, rename)
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 6

    @pytest.mark.parametrize("steps", [[0.5], [True], [1e-30], [0], [2, 0], [-1]])
    def test_steps_of_bad_form_are_not_verified(self, furnished, path, steps):
        furnished["a"].resume(3).spend(PureLoss(epsilon=0.1))
        furnished.close()
        resigned(path, lambda bodies: bodies[6].update(steps=steps))
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 6

    @pytest.mark.parametrize(
        ("unit", "label", "others"),
        [
            ("week", "2026-W46", ["2026-W54", "2026-w46", "2026-W046"]),
            ("day", "2026-11-15", ["20261115", "2026-11-15 ", "2026-W46-7"]),
            ("month", "2026-11", ["2026-13", "2026-11-15", "202611"]),
            ("year", "2026", ["26", "+2026", "0000"]),
        ],
    )
    def test_a_period_has_one_name_only(self, ledger, unit, label, others):
        account = make_account(ledger, unit=Unit.column("user").per(unit))
        account.charge(PureLoss(epsilon=1), periods=label, **ASKED)
        digits = [label.translate(ARABIC), label.translate(WIDE), label[:-1] + "\uff16"]
        for other in (*others, *digits):
            with pytest.raises(ParameterError):
                account.charge(PureLoss(epsilon=1), periods=other, **ASKED)
        assert [budget.name for budget in account.budgets()] == [f"total:{label}"]


# --- prices that come with a request ---


class TestPricesOfARequester:
    def ask(self, ledger, account, cost, **more) -> str:
        definition = account._definition(fresh=True)
        proposal = {"code": __version__, "terms": definition.version, **more}
        asked = encoded(entry=charge_of(), costs={"total": cost}, **proposal)
        body, _ = ledger._session._ask(ledger._session._keyring, asked)
        return json.loads(body)["after"]["total"]

    def right(self, account) -> str:
        price = account._definition(fresh=True).total.price(PureLoss(epsilon=0.1))
        return " ".join(map(str, price))

    @pytest.mark.parametrize("cost", ["-5 0", f"-{10**40} 0", "0 -1", "5", "", "1 2 3", "-inf 0"])
    def test_one_of_bad_form_is_not_believed(self, ledger, account, cost):
        with suppress(LedgerError):
            assert self.ask(ledger, account, cost) == self.right(account)
        ledger.verify()
        with pytest.raises(BudgetExceeded):
            account.charge(PureLoss(epsilon=100), **ASKED)

    @pytest.mark.parametrize("cost", [5, None, ["0 0"], "nan 0", "0.5 0", "x"])
    def test_one_that_is_no_price_spoils_nothing(self, ledger, account, cost):
        with suppress(LedgerError):
            assert self.ask(ledger, account, cost) == self.right(account)
        ledger.verify()

    @pytest.mark.parametrize(
        "of", [{"code": "0.0.1"}, {"code": None}, {"terms": "0" * 16}, {"terms": None}]
    )
    def test_one_from_another_version_is_not_believed(self, ledger, account, of):
        assert self.ask(ledger, account, "0 0", **of) == self.right(account)
        ledger.verify()

    def test_one_of_other_formulas_is_not_believed(self, ledger, account):
        definition = account._definition(fresh=True)
        asked = encoded(
            entry=charge_of(pricing=PRICING + 1),
            costs={"total": "0 0"},
            code=__version__,
            terms=definition.version,
        )
        body, _ = ledger._session._ask(ledger._session._keyring, asked)
        assert json.loads(body)["after"]["total"] == self.right(account)
        assert json.loads(body)["pricing"] == PRICING
        ledger.verify()

    def test_one_that_is_too_low_is_found_by_verification(self, ledger, account):
        """Whoever has the key could write it anyway; so it is no more than found."""
        assert self.ask(ledger, account, "0 0") == "0 0"
        with pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 2

    @pytest.fixture
    def repriced(self, monkeypatch):
        """Let the next release of the program know other bounds."""
        old = laplace.laplace_upper

        def forget():
            ledger_state._prices.clear()
            definitions._read.cache_clear()
            definitions.rules_of.cache_clear()

        def change(factor):
            changed = lambda epsilon, order: old(epsilon, order) * factor  # noqa: E731
            monkeypatch.setattr(laplace, "laplace_upper", changed)
            forget()

        yield change
        monkeypatch.undo()
        forget()

    def test_a_better_bound_leaves_old_ledgers_sound(self, ledger, repriced, monkeypatch):
        account = make_account(ledger, epsilon=3, delta=1e-6)
        account.charge(LaplaceLoss(noise_multiplier=5), **ASKED)
        repriced(1 - Fraction(1, 10**6))
        with pytest.raises(TamperingFound):  # the same formulas have the same results
            ledger.verify()
        monkeypatch.setattr(_holds, "PRICING", PRICING + 1)
        ledger.verify()
        repriced(1 + Fraction(1, 10**6))
        with pytest.raises(TamperingFound):  # it must not have paid less than it costs
            ledger.verify()

    def test_a_track_that_ends_with_an_entry_is_no_alarm(self):
        entry = {"kind": "charge", "pricing": PRICING}
        before = Balance((0, 0, 0, 0))
        recorded = Balance((10**30 + 1, 0, math.inf, 0))
        assert _covers(entry, before, recorded, Balance((10**30, 0, math.inf, 0)))
        assert not _covers(entry, before, recorded, Balance((2 * 10**30, 0, math.inf, 0)))
        assert not _covers(entry, before, recorded, Balance((10**30, 0, 0, 0)))


# --- jobs, releases, answers ---


class TestReleases:
    def test_of_a_job_that_never_began_there_is_none(self, ledger, account):
        job = account.reserve(PureLoss(epsilon=1), **ASKED)
        with pytest.raises(LedgerError, match="no step of this job"):
            account.release(job.receipt, b"412")
        job.close()
        assert account.used == 0
        with pytest.raises(LedgerError, match="no step of this job"):
            account.release(job.receipt, b"412")
        assert "release" not in [entry["kind"] for entry in ledger.history()]
        ledger.verify()

    def test_of_a_job_that_began_there_is_one_also_when_it_is_over(self, ledger, account):
        step = PureLoss(epsilon=0.1)
        with account.reserve(step * 5, **ASKED) as job:
            job.spend(step)
        account.release(job.receipt, b"412")
        assert account.used == pytest.approx(0.1)
        ledger.verify()

    def test_one_charge_has_one_release(self, ledger, account, path, tmp_path):
        account.release(account.charge(PureLoss(epsilon=1), **ASKED), b"1")
        again = hashlib.sha256(b"2").hexdigest()
        with pytest.raises(LedgerError):
            account.release(ledger.prove(2), b"2")
        lines = exported(ledger, tmp_path / "log.ndjson")
        bodies = [json.loads(line) for line in lines[1:5]]
        second = {**bodies[3], "index": 4, "answer": again}
        second["previous"] = leaf_hash(lines[4].encode()).hex()
        lines.insert(5, json.dumps(second, sort_keys=True, separators=(",", ":")))
        lines[0] = lines[0].replace('"size":4', '"size":5')
        lines.insert(7, json.dumps({"release": 4, "answer": "Mg=="}))
        tree = Tree()
        for line in lines[1:6]:
            tree.add(leaf_hash(line.encode()))
        note = sign_checkpoint(ledger._session._keyring.any(), 5, tree.root())
        lines[-1] = json.dumps({"checkpoint": note})
        forged = tmp_path / "forged.ndjson"
        forged.write_text("\n".join([*lines, ""]))
        with pytest.raises(TamperingFound) as error:
            Export(forged).verify()
        assert error.value.entry == 4
        with pytest.raises(TamperingFound):
            Ledger.imported(forged, tmp_path / "copy.db")

    def test_its_entry_confirms_no_guess(self, ledger, account):
        query = "SELECT COUNT(*) FROM patients WHERE name='Bob'"
        noisy = DiscreteLaplace(sensitivity=1, scale=4)
        release = account.answer(noisy, lambda: 412, query=query, **ASKED)
        entry = release.receipt.entries[1]
        for plan in (query, f"DiscreteLaplace: {query}"):
            assert hashlib.sha256(plan.encode()).hexdigest() != entry["plan"]
        known = {"confidence": 0.95, "error": release.error, "value": release.value}
        text = json.dumps(known, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() != entry["answer"]
        assert hashlib.sha256(release.document).hexdigest() == entry["answer"]

    def test_a_repeated_request_says_so(self, ledger, account):
        loss = PureLoss(epsilon=1)
        receipts = [account.charge(loss, key="daily", **ASKED) for _ in range(3)]
        assert [receipt.is_repeated for receipt in receipts] == [False, True, True]
        assert len({receipt.index for receipt in receipts}) == 1
        assert account.used == 1

    def test_a_reservation_repeated_after_its_end_is_no_open_job(self, ledger, account):
        step = PureLoss(epsilon=0.1)
        account.reserve(step * 3, key="j", **ASKED).close()
        with pytest.raises(LedgerError, match="no open job"):
            account.reserve(step * 3, key="j", **ASKED)
        job = account.reserve(step * 3, key="k", **ASKED)
        job.spend(step)
        assert account.reserve(step * 3, key="k", **ASKED).left == 2


def exported(ledger, file) -> list[str]:
    ledger.export(file)
    return file.read_text().splitlines()


class TestRecall:
    @pytest.fixture
    def account(self, ledger):
        account = make_account(ledger)
        account.limit(Guarantee(epsilon=1), analyst="*")
        return account

    @pytest.mark.parametrize("kept", [b"42", b"\x00raw", b"[]", b"{}", b"null", b"", b"{"])
    def test_what_is_no_answer_of_ours_is_not_recalled(self, account, kept):
        account.release(account.charge(PureLoss(epsilon=0.1), query="q", **ASKED), kept)
        assert account.recall("q", **ASKED) is None
        assert account.recall("q", who="bo", purpose="x") is None
        assert account.used == pytest.approx(0.1)

    def test_nobody_pays_for_an_answer_that_is_gone(self, ledger, account, path):
        noisy = DiscreteLaplace(sensitivity=1, scale=10)
        account.answer(noisy, lambda: 412, query="q", **ASKED)
        budgets, size = account.budgets(), ledger.size
        sql(path, "DELETE FROM answers")
        with suppress(TamperingFound):
            assert account.recall("q", who="bo", purpose="x") is None
        assert (account.budgets(), ledger.size) == (budgets, size)
        with pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 4

    def test_nobody_is_told_an_answer_that_was_altered(self, account, path):
        noisy = DiscreteLaplace(sensitivity=1, scale=10)
        account.answer(noisy, lambda: 412, query="q", **ASKED)
        forged = b'{"confidence":0.95,"error":1.0,"value":99999}'
        sql(path, "UPDATE answers SET body = ?", forged)
        with suppress(TamperingFound):
            assert account.recall("q", **ASKED) is None

    def test_error_bars_of_other_confidence_are_not_compared(self, ledger):
        account = make_account(ledger, "b", epsilon=10)
        rough = DiscreteLaplace(sensitivity=1, scale=4)
        fine = DiscreteLaplace(sensitivity=1, scale=1)
        asked = {"query": "q", **ASKED}
        one = account.answer(rough, lambda: 412, confidence=0.5, **asked)
        two = account.answer(fine, lambda: 412, confidence=0.99, **asked)
        assert one.error <= two.error  # which would have been taken for as good
        assert not two.is_recalled
        assert account.recall("q", within=(two.error, 0.99), **ASKED).is_recalled
        assert account.recall("q", within=(two.error, 0.95), **ASKED) is None


# --- verification that goes on, witnesses ---


class TestVerificationThatGoesOn:
    def test_a_witness_in_between_is_no_alarm(self, ledger, account, tmp_path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        witness = Witness.create(tmp_path / "w", name="w.example/1")
        done = ledger.verify()
        ledger.witness(witness)
        done = ledger.verify(since=done)
        assert (done.start, done.size) == (3, 4)
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        done = ledger.verify(since=done)
        ledger.witness(witness)
        ledger.witness(witness)
        assert ledger.verify(since=done).size == ledger.verify().size == 7

    def test_a_cosigned_checkpoint_of_nothing_is_refused(self, ledger, tmp_path):
        witness = Witness.create(tmp_path / "w", name="w.example/1")
        note = sign_checkpoint(ledger._session._keyring.any(), 0, hashlib.sha256().digest())
        cosigned = add_signature(note, cosign(witness._key, note, 5))
        with pytest.raises(LedgerError):
            ledger.add_cosignature(cosigned, vkey=witness.vkey)
        with pytest.raises(LedgerError):
            submit(ledger, {"kind": "witness", "note": cosigned, "vkey": witness.vkey, "key": "x"})
        assert ledger.verify().size == 1

    @pytest.mark.parametrize("name", ["query", "loss"])
    def test_an_old_entry_that_is_read_again_is_proven(self, ledger, account, path, name):
        receipt = account.charge(PureLoss(epsilon=0.5), query="q", **ASKED)
        done = ledger.verify()
        (body,) = sql(path, "SELECT body FROM entries WHERE idx = 2")[0]
        altered = json.loads(body)
        altered |= {"query": "0" * 64} if name == "query" else {"loss": pure(0.001)}
        text = json.dumps(altered, sort_keys=True, separators=(",", ":"))
        sql(path, "UPDATE entries SET body = ? WHERE idx = 2", text)
        account.release(receipt, b'{"value":1,"error":1,"confidence":0.5}')
        with pytest.raises(TamperingFound) as error:
            ledger.verify(since=done)
        assert error.value.entry == 2

    def test_what_was_paid_for_a_question_is_no_matter_of_an_old_entry(self, ledger, path):
        account = make_account(ledger)
        account.limit(Guarantee(epsilon=1), analyst="*")
        noisy = DiscreteLaplace(sensitivity=1, scale=2)
        account.answer(noisy, lambda: 5, query="q", **ASKED)
        (body,) = sql(path, "SELECT body FROM entries WHERE idx = 3")[0]
        cheap = body.replace('"2/1"', '"2000/1"')
        assert cheap != body
        sql(path, "UPDATE entries SET body = ? WHERE idx = 3", cheap)
        with suppress(TamperingFound):
            account.recall("q", who="bo", purpose="x")
            assert {b.name: b.used for b in account.budgets()}["analyst=*:bo"] == 0.5

    @pytest.mark.parametrize("place", [-1, 2**62 + 5, 2**63 - 1])
    def test_a_row_outside_of_the_log_is_found_and_pays_nothing(self, ledger, account, path, place):
        entry = charge_of(epsilon=1, key="key/a/daily")
        entry |= {"index": 2, "after": {"total": "0 0"}, "time": "x", "previous": "y"}
        row = (place, "a", "key/a/daily", json.dumps(entry), b"")
        sql(path, "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", *row)
        with pytest.raises(TamperingFound):
            ledger.verify()
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=1), key="daily", **ASKED)
        assert ledger.size == 2


# --- time ---


class TestClocks:
    def test_one_that_jumps_opens_no_allowance(self, ledger):
        account = make_account(ledger, epsilon=10)
        account.limit(Guarantee(epsilon=1), analyst="*", every="month")
        account.charge(PureLoss(epsilon=1), **ASKED)
        for year in (2031, 2099, 9999):
            ledger._session._scribe._clock = lambda year=year: f"{year}-01-01T00:00:00.000000Z"
            with pytest.raises(LedgerError, match="clock"):
                account.charge(PureLoss(epsilon=1), **ASKED)
        ledger._session._scribe._clock = _entries.now
        with pytest.raises(BudgetExceeded):
            account.charge(PureLoss(epsilon=1), **ASKED)
        assert ledger.verify().size == 4

    def test_somebody_may_confirm_it(self, ledger, account):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger._session._scribe._clock = lambda: "2031-01-01T00:00:00.000000Z"
        ledger.accept_clock(who="chris", reason="back from the archive")
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert ledger.verify().size == 5

    def test_a_history_that_jumps_without_it_is_not_verified(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger.close()
        resigned(path, lambda bodies: bodies[3].update(time="2031-01-01T00:00:00.000000Z"))
        with Ledger.open(path, read_only=True) as found, pytest.raises(TamperingFound) as error:
            found.verify()
        assert error.value.entry == 3


# --- keys ---


class Crash(BaseException):
    """The process ends here."""


def crash(*args, **options):
    raise Crash


class TestRotation:
    def test_two_at_once_lose_no_key(self, ledger, path, monkeypatch):
        begin = Keyring.begin_rotation
        refused = []
        with Ledger.open(path) as other:

            def late(self, vkey):
                new = begin(self, vkey)
                if self is ledger._session._keyring:
                    with pytest.raises(LedgerError) as error:
                        other.rotate()
                    refused.append(error.value)
                return new

            monkeypatch.setattr(Keyring, "begin_rotation", late)
            ledger.rotate()
            assert refused
            monkeypatch.undo()
            make_account(other).charge(PureLoss(epsilon=0.1), **ASKED)
            other.rotate()
        with Ledger.open(path) as again:
            assert again.verify().size == 5
            again["a"].charge(PureLoss(epsilon=0.1), **ASKED)

    def crash_after_writing(self, ledger, patch):
        submit_to = ledger._session.submit

        def submitting(entry):
            receipt = submit_to(entry)
            patch.setattr(Keyring, "settle", crash)
            return receipt

        ledger._session.submit = submitting

    def test_a_crash_in_any_step_of_several_loses_no_key(self, path, monkeypatch):
        Ledger.open(path).close()
        for _ in range(2):  # recorded, but the key is not in its place
            with Ledger.open(path) as ledger, monkeypatch.context() as patch:
                self.crash_after_writing(ledger, patch)
                with pytest.raises(Crash):
                    ledger.rotate()
        with Ledger.open(path) as ledger:  # not recorded, and the next key waits
            assert ledger.size == 3
            ledger._session.submit = crash
            with pytest.raises(Crash):
                ledger.rotate()
        with Ledger.open(path) as ledger:
            make_account(ledger)
            with pytest.raises(LedgerError, match="remove that file"):
                ledger.rotate()
            ledger._session._keyring.next_path.unlink()
            ledger.rotate()
            make_account(ledger, "b")
            assert ledger.verify().size == 6

    def test_a_crash_while_founding_loses_no_key(self, path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Keyring, "settle", crash)
            with pytest.raises(Crash):
                Ledger.open(path)
        with Ledger.open(path) as ledger:
            make_account(ledger)
            assert ledger.verify().size == 2
        assert Path(f"{path}.key").exists()

    def test_a_key_on_the_move_is_found(self, ledger, account, path, monkeypatch):
        """Another process puts it in its place between two looks."""
        with Ledger.open(path) as other:
            with monkeypatch.context() as patch:
                patch.setattr(Keyring, "settle", lambda self, vkey: None)
                other.rotate()
            load, moved = SigningKey.load, []

            def loaded(place):
                if str(place).endswith(".next") and not moved:
                    moved.append(place)
                    other._session._keyring.settle(other.vkey)
                return load(place)

            monkeypatch.setattr(_keyring.SigningKey, "load", staticmethod(loaded))
            account.charge(PureLoss(epsilon=0.1), **ASKED)
            assert moved
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger.verify()


# --- threads that share a commit ---


class Interruption:
    """Raise KeyboardInterrupt in a thread where Python looks for signals, the n-th time it does.

    That is behind calls, at the beginning of functions and at the end of loops; nowhere else, so
    nothing comes between the end of a ``with`` block and the unlocking.
    """

    def __init__(self, nth):
        self._left = nth
        self._last = {}

    @property
    def has_struck(self):
        return self._left <= 0

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename != group_commit.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            last, self._last[frame] = self._last.get(frame, ""), self._opcode(frame)
            if last.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                self._left -= 1
                if self._left == 0:
                    raise KeyboardInterrupt
        return self

    def _opcode(self, frame):
        return dis.opname[frame.f_code.co_code[frame.f_lasti]]

    def around(self, call, *arguments):
        sys.settrace(self)
        with suppress(KeyboardInterrupt):
            try:
                call(*arguments)
            finally:
                sys.settrace(None)


class TestThreadsThatShareACommit:
    def interrupted(self, nth, *, among_others: bool) -> bool:
        """Interrupt one thread; say whether it came so far, once all others were answered."""
        has_entered, may_go_on = threading.Event(), threading.Event()

        def carry_out(batch):
            if b"zero" in batch and not has_entered.is_set():
                has_entered.set()
                assert may_go_on.wait(LONG)
            return [request.upper() for request in batch]

        together, answers = GroupCommit(carry_out), {}

        def ask(request):
            answers[request] = together.submit(request)

        others = [
            threading.Thread(target=ask, args=(each,), daemon=True)
            for each in (b"zero", b"b", b"c", b"d")
        ]
        interruption = Interruption(nth)
        one = threading.Thread(
            target=interruption.around, args=(together.submit, b"one"), daemon=True
        )
        if among_others:
            others[0].start()  # leads, while the one and then the others queue
            assert has_entered.wait(LONG)
            one.start()
            wait_until(lambda: together._waiting or not one.is_alive())
        else:
            may_go_on.set()
            one.start()
            one.join(LONG)
        for thread in others[among_others:]:
            thread.start()
        if among_others:
            wait_until(lambda: len(together._waiting) >= 3)
            may_go_on.set()
        for thread in (one, *others):
            thread.join(LONG)
            assert not thread.is_alive(), f"nobody leads after interruption {nth}"
        assert answers == {b"zero": b"ZERO", b"b": b"B", b"c": b"C", b"d": b"D"}
        assert together.submit(b"later") == b"LATER"
        return interruption.has_struck

    @pytest.mark.parametrize("among_others", [False, True])
    def test_an_interruption_anywhere_leaves_the_others_served(self, monkeypatch, among_others):
        if hasattr(group_commit, "_NAP"):
            monkeypatch.setattr(group_commit, "_NAP", 0.01)
        before = sys.gettrace()
        try:
            struck = [self.interrupted(n, among_others=among_others) for n in range(1, 60)]
        finally:
            sys.settrace(before)
        assert sum(struck) >= 6

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that signal")
    def test_a_real_ctrl_c_leaves_the_others_served(self):
        together = GroupCommit(lambda batch: [request.upper() for request in batch])
        is_armed, struck = [], 0

        def strike(number, frame):
            if is_armed:
                is_armed.clear()
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, strike)
        try:
            with ThreadPoolExecutor(1) as pool:
                for _ in range(400):
                    is_done = False
                    try:
                        is_armed.append(1)
                        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-5))
                        assert together.submit(b"mine") == b"MINE"
                        is_done = True
                        while is_armed:
                            time.sleep(0)
                    except KeyboardInterrupt:
                        struck += not is_done
                    assert pool.submit(together.submit, b"theirs").result(LONG) == b"THEIRS"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert struck > 0

    def test_a_batch_that_fails_fails_for_all_in_it_and_no_longer(self):
        def carry_out(batch):
            if b"bad" in batch:
                raise LedgerUnavailable("the disk is full")
            return list(batch)

        together = GroupCommit(carry_out)
        with pytest.raises(LedgerUnavailable):
            together.submit(b"bad")
        assert together.submit(b"good") == b"good"


CLOCK = {"kind": "clock", "who": "chris", "reason": "x"}
NONSENSE = {
    "nothing": b"",
    "no JSON": b"no json",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "nothing in it": b"{}",
    "a number": b"3",
    "a number for an entry": encoded(entry=3),
    "an empty entry": encoded(entry={}),
    "an entry without a key": encoded(entry=CLOCK),
    "an entry with null as key": encoded(entry={**CLOCK, "key": None}),
    "an entry with a table as key": encoded(entry={**CLOCK, "key": {}}),
    "an answer to no release": encoded(entry={**CLOCK, "key": "k"}, answer="NDI="),
    "an answer that is a number": encoded(entry={**CLOCK, "key": "k"}, answer=3),
}


class TestOneBatchOfMany:
    def carried_out(self, ledger, *proposals):
        key = ledger._session._sealing
        batch = [p if isinstance(p, bytes) else key.seal(encoded(entry=p)) for p in proposals]
        answers = zip(batch, ledger._session._carry_out(batch), strict=True)
        return [key.unsealed(answer, to=asked)[:1] for asked, answer in answers]

    def test_one_that_is_refused_harms_nobody(self, ledger, account):
        yearly = make_account(ledger, "y", unit=Unit.column("u").per("year"), policy="wait")
        bad = [
            charge_of("y", 2, periods=["9999"]),
            charge_of("nobody"),
            charge_of(epsilon=100),
            charge_of(who=None),
            charge_of(loss={"kind": "pure", "version": 1, "epsilon": "x"}),
            b"",
            b"junk",
            encoded(entry=charge_of()),
        ]
        batch = [request for each in bad for request in (each, charge_of(epsilon=0.1))]
        assert self.carried_out(ledger, *batch) == [b"!", b"+"] * len(bad)
        assert account.used == pytest.approx(0.8)
        assert yearly.used == 0
        ledger.verify()

    def test_one_that_breaks_a_rule_itself_harms_nobody(self, ledger, account, monkeypatch):
        def broken(entry, view, cost):
            return 1 // 0

        monkeypatch.setattr(scribe, "RULES", {**scribe.RULES, "clock": broken})
        clock = {"kind": "clock", "who": "chris", "reason": "x", "key": new_key()}
        assert self.carried_out(ledger, charge_of(), clock, charge_of()) == [b"+", b"!", b"+"]
        assert ledger.verify().size == 4

    def test_an_answer_is_no_request(self, ledger, account):
        """Both are sealed; who has seen one of them must not have got the other."""
        key = ledger._session._sealing
        asked = key.seal(encoded(entry=charge_of()))
        (answer,) = ledger._session._carry_out([asked])
        forged = answer[:32] + asked[:32] + answer[32:]
        assert key.unsealed(forged) is None
        assert self.carried_out(ledger, charge_of(), forged) == [b"+", b"!"]

    @pytest.mark.parametrize("name", NONSENSE)
    def test_one_from_another_program_harms_nobody(self, ledger, account, name):
        """It has the key, and makes no sense all the same."""
        batch = [charge_of(), ledger._session._sealing.seal(NONSENSE[name]), charge_of()]
        assert self.carried_out(ledger, *batch) == [b"+", b"!", b"+"]
        assert ledger.verify().size == 4


# --- mistakes of users ---

NOISY = DiscreteLaplace(sensitivity=1, scale=40)
LITTLE = PureLoss(epsilon=0.01)
MISTAKES = {
    "epsilon of 4290 digits": lambda a: a.charge(PureLoss(epsilon=10**4290), **ASKED),
    "epsilon of 5000 digits": lambda a: a.charge(PureLoss(epsilon=10**5000), **ASKED),
    "tiny epsilon": lambda a: a.charge(PureLoss(epsilon=Fraction(1, 10**5000)), **ASKED),
    "huge steps": lambda a: a.reserve(LITTLE * 10**30, **ASKED),
    "infinite year": lambda a: a.ledger["years"].charge(
        PureLoss(epsilon=2), periods="9999", **ASKED
    ),
    "surrogates in a query": lambda a: a.answer(NOISY, lambda: 1, query="\ud800", **ASKED),
    "surrogates in a version": lambda a: a.charge(LITTLE, query="", version="\ud800", **ASKED),
    "surrogates in who": lambda a: a.charge(LITTLE, who="\ud800", purpose="x"),
    "surrogates in a key": lambda a: a.charge(LITTLE, key="\ud800", **ASKED),
    "surrogates in an identity": lambda a: a.register("s", version="1", identities=["\ud800"]),
    "surrogates in a name": lambda a: make_account(a.ledger, "\ud800"),
    "surrogates in a limit": lambda a: a.limit(Guarantee(epsilon=1), analyst="\ud800"),
    "surrogates in a plan": lambda a: a.release(a.ledger.prove(4), b"", plan="\ud800"),
    "bad sources": lambda a: make_account(a.ledger, "y", sources=[{"bad": 1}]),
    "sources of numbers": lambda a: make_account(a.ledger, "y", sources=[5]),
    "sources by name": lambda a: make_account(a.ledger, "y", sources="payroll"),
    "unit of a number": lambda a: make_account(a.ledger, "y", unit=5),
    "policy of a list": lambda a: make_account(a.ledger, "y", policy=["deny"]),
    "name of a number": lambda a: make_account(a.ledger, 5),
    "account that is not": lambda a: a.ledger["nobody"],
    "account of a number": lambda a: a.ledger[5],
    "answer that is a text": lambda a: a.release(a.ledger.prove(4), "text"),
    "release of a number": lambda a: a.release(7, b"text"),
    "release of an account": lambda a: a.release(a.ledger.prove(1), b"text"),
    "resume a text": lambda a: a.resume("x"),
    "resume beyond": lambda a: a.resume(2**70),
    "resume nothing": lambda a: a.resume(None),
    "resume a negative": lambda a: a.resume(-1),
    "prove beyond": lambda a: a.ledger.prove(2**70),
    "prove at the end": lambda a: a.ledger.prove(2**63 - 1),
    "prove a negative": lambda a: a.ledger.prove(-1),
    "prove nothing": lambda a: a.ledger.prove(None),
    "prove a truth": lambda a: a.ledger.prove(True),
    "answer of beyond": lambda a: a.ledger.answer_of(2**70),
    "answer of a text": lambda a: a.ledger.answer_of("x"),
    "consistency of a text": lambda a: a.ledger.consistency("a"),
    "consistency beyond": lambda a: a.ledger.consistency(2**70),
    "bytes as query": lambda a: a.charge(LITTLE, query=b"x", **ASKED),
    "empty query": lambda a: a.charge(LITTLE, query="", **ASKED),
    "version of bytes": lambda a: a.charge(LITTLE, query="q", version=b"1", **ASKED),
    "bad vkey": lambda a: a.ledger.verify(vkey="x"),
    "bad pin": lambda a: a.ledger.verify(pinned="no such file"),
    "pin that is none": lambda a: a.ledger.verify(pinned="a\nb\n"),
    "limit of a number": lambda a: a.limit(3, analyst="a"),
    "limit of a list": lambda a: a.limit(Guarantee(epsilon=1), analyst=["a"]),
    "limit every blue moon": lambda a: a.limit(Guarantee(epsilon=1), every="moon"),
    "limit every list": lambda a: a.limit(Guarantee(epsilon=1), every=[]),
    "grant of a number": lambda a: a.grant(3, who="a", reason="b"),
    "grant to no line": lambda a: a.grant(Guarantee(epsilon=9), who="a", reason="b", line="x"),
    "grant to a list": lambda a: a.grant(Guarantee(epsilon=9), who="a", reason="b", line=[]),
    "quote of a number": lambda a: a.quote(3),
    "charge of a number": lambda a: a.charge(3, **ASKED),
    "charge of a mechanism": lambda a: a.charge(NOISY, **ASKED),
    "spend of a number": lambda a: a.resume(3).spend(3),
    "source of a number": lambda a: a.charge(LITTLE, source=3, **ASKED),
    "periods of a number": lambda a: a.ledger["years"].charge(LITTLE, periods=2026, **ASKED),
    "periods of numbers": lambda a: a.ledger["years"].charge(LITTLE, periods=[2026], **ASKED),
    "periods of bytes": lambda a: a.ledger["years"].charge(LITTLE, periods=b"2026", **ASKED),
    "key of a number": lambda a: a.charge(LITTLE, key=5, **ASKED),
    "very long key": lambda a: a.charge(LITTLE, key="k" * 500, **ASKED),
    "identities of a text": lambda a: a.register("s", version="1", identities="x"),
    "no identities": lambda a: a.register("s", version="1", identities=[]),
    "negative history": lambda a: a.ledger.history(last=-1),
    "history of a text": lambda a: a.ledger.history(last="x"),
    "junk as witness": lambda a: a.ledger.add_cosignature("junk", vkey="junk"),
    "export over a folder": lambda a: a.ledger.export(Path(a.ledger._session.store._path).parent),
    "export to nowhere": lambda a: a.ledger.export("/no/such/folder/x"),
    "backup to nowhere": lambda a: a.ledger.backup("/no/such/folder/x"),
    "open a folder": lambda a: Ledger.open(Path(a.ledger._session.store._path).parent),
    "open a number": lambda a: Ledger.open(5),
    "open under a bad name": lambda a: Ledger.open(f"{a.ledger._session.store._path}2", name="a b"),
    "clock for no reason": lambda a: a.ledger.accept_clock(who="a", reason=""),
}


class TestMistakes:
    @pytest.mark.parametrize("name", MISTAKES)
    def test_it_is_told_and_nothing_is_charged(self, furnished, name):
        ledger, account = furnished, furnished["a"]
        size, budgets = ledger.size, account.budgets()
        with pytest.raises(DiscreetError):
            MISTAKES[name](account)
        assert (ledger.size, account.budgets()) == (size, budgets)
        assert ledger["years"].used == 0
        account.charge(LITTLE, **ASKED)
        ledger.verify()

    @pytest.mark.parametrize(
        "change",
        [
            {"size": "a", "frontier": 3, "last": 1, "time": 1, "checkpoint": 1, "facts": []},
            {"facts": []},
            {"facts": {"ledger": 3}},
            {"size": "4"},
            {"size": -1},
            {"frontier": "zz"},
            {"frontier": ""},
            {"last": None},
            {"time": 5},
            {"releases": "x"},
            {"checkpoint": None},
            {"more": 1},
        ],
    )
    def test_a_marker_that_makes_no_sense_is_told(self, furnished, tmp_path, change):
        ledger = furnished
        file = tmp_path / "marker.json"
        ledger.verify().save(file)
        ledger["a"].charge(LITTLE, query="q", **ASKED)
        ledger.verify(since=Verification.load(file))
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        with pytest.raises(DiscreetError):
            ledger.verify(since=Verification.load(file))


# --- a database that holds something else ---

COLUMNS = {
    "entries": ("account", "key", "body", "hashes"),
    "facts": ("name", "value"),
    "head": ("size", "time", "last", "frontier", "note"),
    "answers": ("body",),
    "meta": ("value",),
}
NAMED_BY = {"entries": "idx", "facts": "name", "head": "one", "answers": "idx", "meta": "name"}
STRANGE = (b"\xff\xfe", "junk", -1, 1.5, "[]", "null", "{}", '"x"', "[1]", "\ud7ff")
DONE = {
    "verify": lambda ledger: ledger.verify(),
    "look": lambda ledger: (ledger.origin, ledger.vkey, ledger.size, ledger.is_testing),
    "used": lambda ledger: (ledger["a"].used, ledger["a"].budgets(), list(ledger)),
    "quote": lambda ledger: ledger["a"].quote(LITTLE, **ASKED),
    "charge": lambda ledger: ledger["a"].charge(LITTLE, **ASKED),
    "again": lambda ledger: ledger["a"].charge(LITTLE, key="k", **ASKED),
    "resume": lambda ledger: ledger["a"].resume(4).close(),
    "recall": lambda ledger: ledger["a"].recall("q", **ASKED),
    "recall by another": lambda ledger: ledger["a"].recall("q", who="bo", purpose="x"),
    "release": lambda ledger: ledger["a"].release(ledger.prove(3), b"x"),
    "answer_of": lambda ledger: ledger.answer_of(6),
    "history": lambda ledger: (ledger.history(), ledger.history("a", last=2)),
    "prove": lambda ledger: (ledger.prove(6), ledger.prove(5, witnessed=True)),
    "witnessed": lambda ledger: ledger.witnessed(),
    "consistency": lambda ledger: ledger.consistency(2),
    "export": lambda ledger: ledger.export(f"{ledger._session.store._path}.ndjson"),
    "rotate": lambda ledger: ledger.rotate(),
}


@pytest.fixture(scope="module")
def rich(tmp_path_factory) -> Path:
    """A ledger with an open job, a kept answer and a witness."""
    folder = tmp_path_factory.mktemp("rich")
    with Ledger.open(folder / "budget.db") as ledger:
        account = make_account(ledger, epsilon=5)
        account.limit(Guarantee(epsilon=5), analyst="*")
        account.charge(LITTLE, key="k", **ASKED)
        account.reserve(LITTLE * 3, **ASKED)
        receipt = account.charge(LITTLE, query="q", **ASKED)
        account.release(receipt, b'{"value":1,"error":1,"confidence":0.5}')
        ledger.witness(Witness.create(folder / "w", name="w.example/1"))
    return folder / "budget.db"


def raw_errors(place: Path, expected: tuple[type[Exception], ...]) -> list[str]:
    """Do everything with a ledger; return what failed in another way than expected."""
    found = []
    try:
        ledger = Ledger.open(place)
    except expected:
        return found
    except Exception as error:
        return [f"open: {type(error).__name__}: {error}"]
    with ledger:
        for name, do in DONE.items():
            try:
                do(ledger)
            except expected:
                continue
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
    return found


class TestADatabaseThatHoldsSomethingElse:
    def test_a_sound_one_fails_nowhere(self, rich, tmp_path):
        """Otherwise the tests below would show nothing."""
        assert raw_errors(copied(rich, tmp_path / "budget.db"), ()) == []

    @pytest.mark.parametrize(
        ("table", "column"), [(table, one) for table, all_ in COLUMNS.items() for one in all_]
    )
    def test_every_step_tells_so(self, rich, tmp_path, table, column):
        name = NAMED_BY[table]
        rows = [key for (key,) in sql(rich, f"SELECT {name} FROM {table} ORDER BY {name}")]
        place, found = tmp_path / "budget.db", []
        for row in rows:
            for value in STRANGE if column in ("body", "value", "time") else STRANGE[:4]:
                for file in tmp_path.iterdir():
                    file.unlink()
                copied(rich, place)
                try:
                    sql(place, f"UPDATE {table} SET {column} = ? WHERE {name} = ?", value, row)
                except sqlite3.Error:
                    continue  # the database itself refuses it
                errors = raw_errors(place, (DiscreetError,))
                found += [f"{row!r} is {value!r}: {error}" for error in errors]
        assert not found, "\n".join(found)

    @pytest.mark.parametrize("fact", ["ledger", "account/a", "budget/a/total"])
    @pytest.mark.parametrize("value", ["junk", "[]", "null", b"\xff\xfe", "{}"])
    def test_a_charge_on_such_state_says_what_to_do(self, rich, tmp_path, fact, value):
        place = copied(rich, tmp_path / "budget.db")
        sql(place, "UPDATE facts SET value = ? WHERE name = ?", value, fact)
        with pytest.raises((TamperingFound, LedgerUnavailable)), Ledger.open(place) as ledger:
            ledger["a"].charge(LITTLE, **ASKED)


# --- imports ---


class TestImports:
    @pytest.fixture
    def exported(self, ledger, account, tmp_path):
        receipt = account.charge(PureLoss(epsilon=0.5), **ASKED)
        account.release(receipt, b"forty-two")
        ledger.export(tmp_path / "log.ndjson")
        return tmp_path / "log.ndjson"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"who":"ana"', '"who":"bob"'),
            ('"who":"ana"', '"who":"ana" '),
            ("Zm9ydHktdHdv", "Zm9ydHktc2l4"),  # the answer
        ],
    )
    def test_a_file_swapped_after_it_was_verified_is_not_taken(
        self, exported, tmp_path, monkeypatch, old, new
    ):
        verify = Export.verify

        def swapping(self, **options):
            verified = verify(self, **options)
            text = exported.read_text()
            assert old in text
            exported.write_text(text.replace(old, new))
            return verified

        monkeypatch.setattr(Export, "verify", swapping)
        with pytest.raises(TamperingFound):
            Ledger.imported(exported, tmp_path / "copy.db")
        monkeypatch.undo()
        exported.write_text(exported.read_text().replace(new, old))
        with Ledger.imported(exported, tmp_path / "copy.db") as copy:  # nothing was left there
            assert copy.verify().size == 4

    def test_an_old_export_is_told_by_a_pinned_checkpoint(self, ledger, exported, tmp_path):
        ledger["a"].charge(PureLoss(epsilon=0.1), **ASKED)
        with pytest.raises(TamperingFound):
            Ledger.imported(exported, tmp_path / "copy.db", pinned=ledger.checkpoint())
        assert not (tmp_path / "copy.db").exists()
        new = tmp_path / "new.ndjson"
        ledger.export(new)
        with Ledger.imported(new, tmp_path / "copy.db", pinned=ledger.checkpoint()) as copy:
            assert copy.size == 5
