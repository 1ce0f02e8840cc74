"""Mistakes of users: an error that says so, and nothing is charged."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_requests import ASKED, LITTLE, make_account

from discreet.accounting import PureLoss
from discreet.errors import (
    DiscreetError,
)
from discreet.ledger import Ledger, Verification
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee

NOISY = DiscreteLaplace(sensitivity=1, scale=40)


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
    "policy that is none": lambda a: a.set_policy("beg", who="a", reason="b"),
    "policy of a set": lambda a: a.set_policy({"deny"}, who="a", reason="b"),
    "policy that waits for nothing": lambda a: a.set_policy("wait", who="a", reason="b"),
    "policy by nobody": lambda a: a.set_policy("deny", who="", reason="b"),
    "policy for no reason": lambda a: a.set_policy("deny", who="a", reason=""),
    "limit by nobody": lambda a: a.limit(Guarantee(epsilon=1), analyst="z", who=""),
    "account by a number": lambda a: make_account(a.ledger, "y", who=3),
    "source by nobody": lambda a: a.register("s", version="1", identities=["x"], who=""),
    "act of a number": lambda a: a.ledger.act(3, who="a", subject="b"),
    "act in a sentence": lambda a: a.ledger.act("revoked the key", who="a", subject="b"),
    "act by nobody": lambda a: a.ledger.act("key.created", who="", subject="b"),
    "act on nothing": lambda a: a.ledger.act("key.created", who="a", subject=""),
    "act on much": lambda a: a.ledger.act("key.created", who="a", subject="b" * 129),
    "act for no reason": lambda a: a.ledger.act("key.created", who="a", subject="b", reason=""),
    "act of no account": lambda a: a.ledger.act("key.lost", who="a", subject="b", account="no"),
    "act of a number as account": lambda a: a.ledger.act(
        "key.lost", who="a", subject="b", account=5
    ),
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
