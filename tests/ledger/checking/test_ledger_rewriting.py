"""Histories that fit together again: made without the key, and by a custodian with it."""

import json

import pytest
from ledger_attacks import Attack, assert_found, look

from discreet.errors import (
    LedgerError,
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.ledger.checking.replay import Replay
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.log.tree import Tree, root
from discreet.ledger.stores.protocol import Row
from discreet.ledger.verifier import leaf_hash

pytestmark = pytest.mark.lengthy


def rewritten(site, bodies: list[dict], key: SigningKey | None) -> list:
    """Return statements that install a log whose chain, tree and state fit, as far as they can.

    Without a key the old checkpoint stays, since nothing else is signed.
    """
    tree, last, rows = Tree(), "0" * 64, []
    for index, entry in enumerate(bodies):
        entry = {**entry, "index": index, "previous": last}
        body = json.dumps(entry, sort_keys=True, separators=(",", ":"))
        leaf = leaf_hash(body.encode())
        account = entry["name"] if entry["kind"] == "account" else entry.get("account")
        rows.append(Row(index, account, entry["key"], body, tree.add(leaf)))
        last = leaf.hex()
    statements = [("DELETE FROM entries", ())]
    insert = "INSERT INTO entries (idx, account, key, body, hashes) VALUES (?, ?, ?, ?, ?)"
    statements += [(insert, tuple(row)) for row in rows]
    (head,) = site.rows("head")
    note = head["note"] if key is None else sign_checkpoint(key, tree.size, root(tree.frontier))
    values = (tree.size, bodies[-1]["time"], bytes.fromhex(last), tree.frontier, note)
    sql = "UPDATE head SET size = ?, time = ?, last = ?, frontier = ?, note = ?"
    statements.append((sql, values))
    replay = Replay(lambda index: rows[index])
    for row in rows:
        try:
            replay.add(row)
        except TamperingFound:
            return statements  # it cannot be made to fit; leave the state as it is
    statements.append(("DELETE FROM facts", ()))
    put = "INSERT INTO facts (name, value) VALUES (?, ?)"
    return statements + [(put, fact) for fact in replay.facts().items()]


def entries_of(site) -> list[dict]:
    rows = sorted(site.rows("entries"), key=lambda row: row["idx"])
    return [json.loads(row["body"]) for row in rows]


def test_all_hashes_after_an_edit_made_to_fit_is_found_by_the_signature(site, rng):
    bodies = entries_of(site)
    attacks = []
    for i in rng.sample(range(1, len(bodies)), 6):
        changed = [dict(body) for body in bodies]
        changed[i]["time"] = changed[i - 1]["time"]  # harmless to every rule
        changed[i]["note about it"] = "was not there"
        attacks.append(Attack(f"entry {i} and all hashes", rewritten(site, changed, None)))
    assert_found(site, attacks)


def test_a_history_signed_with_another_key_is_found_by_whoever_knows_the_right_one(
    site, original, rng
):
    # Everything fits: the attacker founds the same ledger with a key of the own.
    stolen = SigningKey.generate("example.com/ledger")
    bodies = [b for b in entries_of(site) if b["kind"] != "rotate"]
    cut = next(i for i, body in enumerate(bodies) if body["kind"] == "witness")
    bodies = [dict(bodies[0], vkey=stolen.vkey), *bodies[1:cut]]
    site.execute_all(rewritten(site, bodies, stolen))
    site.execute("DELETE FROM answers WHERE idx >= ?", cut)
    look(site.location)  # nothing to tell by: this is another sound ledger
    with pytest.raises(TamperingFound) as error:
        look(site.location, vkey=original.vkey)
    assert error.value.entry == 0
    for pinned in (original.pinned, original.older_verified.checkpoint):
        with pytest.raises(TamperingFound):
            look(site.location, pinned=pinned)
    with pytest.raises(LedgerError):  # the custodian's own key does not sign for it
        Ledger.open(site.location, key=original.key)


def understated(bodies: list[dict], i: int) -> None:
    budget = min(bodies[i]["after"])
    spent, bar, held = bodies[i]["after"][budget].partition("|")
    numbers = spent.split(" ")
    numbers[0] = str(int(numbers[0]) // 2)
    bodies[i]["after"][budget] = " ".join(numbers) + bar + held


def cheaper(bodies: list[dict], i: int) -> None:
    bodies[i]["loss"]["noise_multiplier"] *= 2


def back_in_time(bodies: list[dict], i: int) -> None:
    bodies[i]["time"] = "2001-01-01T00:00:00.000000Z"


def of_another(bodies: list[dict], i: int) -> None:
    bodies[i]["account"] = "visits"


def seeded(bodies: list[dict], i: int) -> None:
    bodies[i]["noise"] = "seeded"


def of_nobody(bodies: list[dict], i: int) -> None:
    del bodies[i]["who"]


@pytest.mark.parametrize(
    "change", [understated, cheaper, back_in_time, of_another, seeded, of_nobody]
)
def test_a_custodian_with_the_key_cannot_sign_wrong_arithmetic(site, original, rng, change):
    bodies = entries_of(site)
    charges = [i for i, b in enumerate(bodies) if b.get("who") in ("ana", "dee")]
    charges = [i for i in charges if bodies[i].get("loss", {}).get("kind") == "laplace"]
    i = rng.choice(charges)
    change(bodies, i)
    key = Keyring(original.key).any()
    attack = Attack(f"{change.__name__} in {i}", rewritten(site, bodies, key), i)
    assert_found(site, [attack])


def test_a_custodian_with_the_key_cannot_leave_out_a_charge(site, original):
    bodies = entries_of(site)
    i = next(i for i, body in enumerate(bodies) if body.get("key") == "key/salaries/ana-2")
    del bodies[i]
    key = Keyring(original.key).any()
    assert_found(site, [Attack("left out", rewritten(site, bodies, key), i)])


def test_a_custodian_with_the_key_cannot_return_a_job_twice(site, original):
    bodies = entries_of(site)
    i = next(i for i, body in enumerate(bodies) if body["kind"] == "settle")
    bodies.append({**bodies[i], "key": "settle/again", "time": bodies[-1]["time"]})
    key = Keyring(original.key).any()
    blamed = len(bodies) - 1
    assert_found(site, [Attack("returned", rewritten(site, bodies, key), blamed)])


def test_a_key_that_nobody_handed_over_to_does_not_sign(site, original, rng):
    bodies = entries_of(site)
    i = next(i for i, body in enumerate(bodies) if body["kind"] == "rotate")
    mine = SigningKey.generate("example.com/ledger")
    bodies[i]["vkey"] = mine.vkey
    assert_found(site, [Attack("rotated", rewritten(site, bodies, mine), i)])
