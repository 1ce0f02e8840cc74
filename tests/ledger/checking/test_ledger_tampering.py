"""Whoever edits the database is found: fields, entries that go, come or move, the state."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_attacks import (
    COLUMNS,
    LARGEST,
    NAMED_BY,
    Attack,
    assert_found,
    look,
    random_edits,
    survivors,
)

from discreet.accounting import LaplaceLoss
from discreet.errors import (
    LedgerError,
)
from discreet.ledger import Ledger
from discreet.ledger.checking import verify as verify_module
from discreet.ledger.checking.replay import Replay
from discreet.ledger.stores.protocol import Row
from discreet.ledger.verifier import leaf_hash

pytestmark = pytest.mark.lengthy


def test_an_edit_of_any_field_of_any_row_is_found(sqlite_site, rng):
    look(sqlite_site.location)  # sound before
    attacks = random_edits(sqlite_site, rng, any_byte=True)
    attacks += rng.sample(random_edits(sqlite_site, rng, any_byte=False), 40)
    assert len(attacks) >= 200
    assert_found(sqlite_site, attacks)


@pytest.mark.slow
def test_many_edits_of_any_field_are_found(sqlite_site, rng):
    for _ in range(20):
        assert_found(sqlite_site, random_edits(sqlite_site, rng, any_byte=True))


@pytest.mark.needs("postgres")
def test_an_edit_in_a_server_is_found(postgres_site, rng):
    postgres_site.reset()
    attacks = rng.sample(random_edits(postgres_site, rng, any_byte=False), 60)
    assert_found(postgres_site, attacks)


def test_a_verifier_that_does_not_check_would_fail_these_tests(sqlite_site, rng, monkeypatch):
    sound = {row["idx"]: row for row in sqlite_site.rows("entries")}
    add = Replay.add

    def trusting(self, row):
        if row.index in sound:
            row = Row(*(sound[row.index][column] for column in COLUMNS["entries"]))
        add(self, row)

    monkeypatch.setattr(Replay, "add", trusting)
    monkeypatch.setattr(verify_module, "_check_facts", lambda replay, view: None)
    attacks = random_edits(sqlite_site, rng, any_byte=False)
    missed = survivors(sqlite_site, attacks)
    edited = [attack for attack in attacks if attack.name.startswith(("entries.body", "facts."))]
    assert len(missed) > len(edited) / 2


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        (table, column, kind)
        for table, columns in COLUMNS.items()
        for column in columns
        for kind in ("BLOB", "TEXT")
        if column != "idx"
    ],
)
def test_a_value_of_another_type_is_found(sqlite_site, table, column, kind):
    rows = sqlite_site.rows(table)
    row = rows[len(rows) // 2]
    old = row[column]
    if isinstance(old, str if kind == "TEXT" else bytes):
        return
    new = old if old is not None else "x"
    sql = f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE {NAMED_BY[table]} = ?"
    if isinstance(old, int):
        new = "many"
    blamed = row["idx"] if table in ("entries", "answers") else None
    attack = Attack(f"{table}.{column} as {kind}", [(sql, (new, row[NAMED_BY[table]]))], blamed)
    assert_found(sqlite_site, [attack])


def removals(size: int, rng: random.Random) -> Iterator[Attack]:
    for i in [0, size - 1, *rng.sample(range(1, size - 1), 5)]:
        yield Attack(f"entry {i} removed", [("DELETE FROM entries WHERE idx = ?", (i,))], i)
        closed = [
            ("DELETE FROM entries WHERE idx = ?", (i,)),
            # In two steps, for no two entries may share a place in between.
            ("UPDATE entries SET idx = -idx WHERE idx > ?", (i,)),
            ("UPDATE entries SET idx = -idx - 1 WHERE idx < 0", ()),
            ("UPDATE head SET size = ?", (size - 1,)),
        ]
        blamed = i if i < size - 1 else None
        yield Attack(f"entry {i} removed and the gap closed", closed, blamed)
        tail = [("DELETE FROM entries WHERE idx >= ?", (i,))]
        yield Attack(f"cut off at {i}", tail, i)
        tail = [*tail, ("UPDATE head SET size = ?", (i,))]
        yield Attack(f"cut off at {i}, with the size made to fit", tail)


def swaps(rows: list[dict], rng: random.Random) -> Iterator[Attack]:
    pairs = [sorted(rng.sample(range(len(rows)), 2)) for _ in range(6)]
    pairs += [sorted(2 * place for place in rng.sample(range(len(rows) // 2), 2))]
    for i, j in pairs:
        bodies = [
            ("UPDATE entries SET body = ? WHERE idx = ?", (rows[j]["body"], i)),
            ("UPDATE entries SET body = ? WHERE idx = ?", (rows[i]["body"], j)),
        ]
        yield Attack(f"bodies of {i} and {j} swapped", bodies, i)
        places = [
            ("UPDATE entries SET idx = -5 WHERE idx = ?", (i,)),
            ("UPDATE entries SET idx = ? WHERE idx = ?", (i, j)),
            ("UPDATE entries SET idx = ? WHERE idx = -5", (j,)),
        ]
        yield Attack(f"entries {i} and {j} swapped", places, i)


def copies(rows: list[dict], rng: random.Random) -> Iterator[Attack]:
    size = len(rows)
    again = "INSERT INTO entries SELECT {}, account, NULL, body, hashes FROM entries WHERE idx = ?"
    for i in rng.sample(range(size), 3):
        yield Attack(f"entry {i} again at the end", [(again.format(size), (i,))], size)
        longer = [(again.format(size), (i,)), ("UPDATE head SET size = ?", (size + 1,))]
        yield Attack(f"entry {i} again at the end of a longer log", longer, size)
        shifted = [
            ("UPDATE entries SET idx = -idx - 1 WHERE idx > ?", (i,)),
            ("UPDATE entries SET idx = -idx WHERE idx < 0", ()),
            (again.format(i + 1), (i,)),
            ("UPDATE head SET size = ?", (size + 1,)),
        ]
        yield Attack(f"entry {i} twice", shifted, i + 1)
    # Where no entry of a log can be, and nobody who goes through it from the first would look.
    for place in (-1, -LARGEST, 2**62, LARGEST):
        i = rng.randrange(size)
        yield Attack(f"entry {i} again at {place}", [(again.format(place), (i,))])


def state_changes(site, rng: random.Random) -> Iterator[Attack]:
    facts = site.rows("facts")
    for fact in [*rng.sample(facts, 4), *(one for one in facts if one["name"] == "ledger")]:
        gone = [("DELETE FROM facts WHERE name = ?", (fact["name"],))]
        yield Attack(f"fact {fact['name']} removed", gone)
    one = rng.choice(facts)
    # Two people who spent alike have the same value: swapped, nothing would have changed.
    other = rng.choice([fact for fact in facts if fact["value"] != one["value"]])
    swapped = [
        ("UPDATE facts SET value = ? WHERE name = ?", (one["value"], other["name"])),
        ("UPDATE facts SET value = ? WHERE name = ?", (other["value"], one["name"])),
    ]
    yield Attack("two facts swapped", swapped)
    yield Attack("a fact added", [("INSERT INTO facts VALUES ('budget/salaries/z', '0 0')", ())])
    yield Attack("the end forgotten", [("DELETE FROM head", ())])
    everything = [(f"DELETE FROM {table}", ()) for table in ("entries", "facts", "answers")]
    yield Attack("all but the end forgotten", everything[:1])
    empty = [*everything, ("UPDATE head SET size = 0", ())]
    yield Attack("an empty log", empty)
    ledger = next(fact["value"] for fact in facts if fact["name"] == "ledger")
    named = ("INSERT INTO facts VALUES ('ledger', ?)", (ledger,))
    yield Attack("an empty log with a name", [*empty, named])
    kept = site.rows("answers")
    for answer in kept:
        index = answer["idx"]
        for place in (index - 1, -index, LARGEST):
            moved = [("UPDATE answers SET idx = ? WHERE idx = ?", (place, index))]
            yield Attack(f"the answer of {index} moved to {place}", moved)
    yield Attack("an answer added", [("INSERT INTO answers VALUES (1, ?)", (b"41",))], 1)
    yield Attack("an answer hidden", [("INSERT INTO answers VALUES (-1, ?)", (b"41",))])
    (a, x), (b, y) = [(one["idx"], one["body"]) for one in kept[:2]]
    update = "UPDATE answers SET body = ? WHERE idx = ?"
    yield Attack("two answers swapped", [(update, (y, a)), (update, (x, b))], a)


def test_no_entry_can_be_removed(site, original, rng):
    assert_found(site, list(removals(original.size, rng)))


def test_no_two_entries_can_change_places(site, rng):
    assert_found(site, list(swaps(site.rows("entries"), rng)))


def test_no_entry_can_be_added(site, rng):
    assert_found(site, list(copies(site.rows("entries"), rng)))


def test_the_state_beside_the_log_cannot_be_changed(site, rng):
    assert_found(site, list(state_changes(site, rng)))


def test_a_kept_answer_cannot_be_removed(site):
    """Whoever asks the same again would pay again, and be told something else."""
    removed = "DELETE FROM answers WHERE idx = ?"
    kept = [row["idx"] for row in site.rows("answers")]
    attacks = [Attack(f"answer of {i} removed", [(removed, (i,))], i) for i in kept]
    assert_found(site, attacks)


def test_a_forged_row_does_not_pay_for_a_request(original, sqlite_site):
    """The row lies where nobody reads the log, but whoever looks up its key would find it."""
    path = Path(sqlite_site.location)
    shutil.copy2(original.key, f"{path}.key")
    asked = {"loss": LaplaceLoss(noise_multiplier=20), "who": "eve", "purpose": "x"}
    with Ledger.open(path) as ledger:
        donor = ledger["salaries"].charge(**asked, key="donor")
    body = donor.bodies[0].replace("donor", "free")
    sql = "INSERT INTO entries VALUES (-7, 'salaries', ?, ?, ?)"
    sqlite_site.execute(sql, donor.key.replace("donor", "free"), body, leaf_hash(body.encode()))
    with Ledger.open(path) as ledger:
        size = ledger.size
        try:
            receipt = ledger["salaries"].charge(**asked, key="free")
        except LedgerError:
            return
        assert ledger.size == size + 1
        assert ledger.prove(receipt).is_proven
