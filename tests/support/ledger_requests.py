"""Requests as programs write them, with the key and without, for tests of what a ledger refuses."""

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from discreet.accounting import PureLoss
from discreet.accounting.filters import PRICING
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.log.tree import Tree
from discreet.ledger.verifier import leaf_hash
from discreet.ledger.writing.request import loss_document, new_key
from discreet.privacy import Guarantee, Unit

LONG = 20.0  # seconds after which something that should happen will not


ASKED = {"who": "ana", "purpose": "report"}


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


def copied(template: Path, place: Path) -> Path:
    shutil.copyfile(template, place)
    shutil.copy2(f"{template}.key", f"{place}.key")
    return place


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


def exported(ledger, file) -> list[str]:
    ledger.export(file)
    return file.read_text().splitlines()


LITTLE = PureLoss(epsilon=0.01)
