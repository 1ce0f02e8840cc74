"""Somebody who may write the database, the exports and the receipts changes them: it is found out.

Every case starts from a sound copy of one ledger that holds all kinds of entries. Edits are chosen
at random and unseeded, since every single one must be found; a failure prints the seed.

What no verification of the database alone can find: an older sound copy of it, a continuation of
one, or another ledger that somebody signed with a key of their own. Those are told by what the
attacker cannot reach: a witness, a pinned checkpoint, or the public key.
"""

import json
import random
import secrets
import shutil
import sqlite3
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from discreet.accounting import GaussianLoss, LaplaceLoss, PureLoss
from discreet.errors import (
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    TamperingFound,
)
from discreet.ledger import Export, Ledger, Witness
from discreet.ledger.checking import verify as verify_module
from discreet.ledger.checking.replay import Replay
from discreet.ledger.checking.verification import Verification
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.log.tree import Tree, root
from discreet.ledger.rules.table import RULES
from discreet.ledger.stores.protocol import Row
from discreet.ledger.verifier import NotProven, check_receipt, leaf_hash
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit

COLUMNS = {
    "entries": ("idx", "account", "key", "body", "hashes"),
    "facts": ("name", "value"),
    "head": ("size", "time", "last", "frontier", "note"),
    "answers": ("idx", "body"),
}
NAMED_BY = {"entries": "idx", "facts": "name", "head": "one", "answers": "idx"}
LARGEST = 2**63 - 1


# --- one ledger with everything in it ---


@dataclass
class Original:
    """A sound ledger, what was taken away from it on the way, and what belongs to it."""

    path: Path
    key: Path
    vkey: str  # that it was founded with
    witness: Path
    oldest: Path  # a copy from before the key was rotated
    oldest_key: Path
    older: Path  # one from after that
    pinned: str  # a checkpoint of the ledger as it is now
    older_verified: Verification
    size: int
    receipts: list[str] = field(default_factory=list)
    export: Path = Path()


def fill(ledger: Ledger, folder: Path) -> Original:
    """Write every kind of entry, and some twice."""
    salaries = ledger.create(
        "salaries",
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=5, delta=1e-6),
        sources=[{"name": "payroll", "version": "1", "identities": ["a place"]}],
    )
    visits = ledger.create(
        "visits",
        unit=Unit.column("user_id").per("day"),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=1),
        policy="wait",
    )
    salaries.limit(Guarantee(epsilon=4, delta=1e-7), analyst="*")
    salaries.limit(Guarantee(epsilon=3, delta=1e-7), purpose="report", every="year")
    salaries.register("payroll", version="2", identities=["a place", "its digest"])
    for n in range(6):
        loss = LaplaceLoss(noise_multiplier=20 + n)
        salaries.charge(loss, who="ana", purpose="report", key=f"ana-{n}")
    visits.charge(PureLoss(epsilon=0.25), who="bo", purpose="count", periods=["2026-11-14"])
    salaries.grant(Guarantee(epsilon=6, delta=1e-6), who="owner", reason="a second year")
    noisy = DiscreteLaplace(sensitivity=1, scale=20)
    asked = {"query": "how many", "version": "1"}
    first = salaries.answer(noisy, lambda: 41, who="ana", purpose="report", **asked)
    again = salaries.answer(noisy, lambda: 41, who="bo", purpose="audit", **asked)
    salaries.answer(noisy, lambda: 57, who="cy", purpose="audit", query="how many more")
    step = GaussianLoss(noise_multiplier=100)
    with salaries.reserve(step * 50, who="trainer", purpose="model") as job:
        job.spend(step)
        job.spend(step * 2)
    salaries.reserve(step * 10, who="trainer", purpose="model").spend(step)  # stays open
    vkey = ledger.vkey
    witness = Witness.create(folder / "witness", name="witness.example/w1")
    ledger.witness(witness)
    oldest, oldest_key = folder / "oldest.db", folder / "oldest.db.key"
    ledger.backup(oldest)
    shutil.copy2(folder / "budget.db.key", oldest_key)
    ledger.rotate()
    ledger.accept_clock(who="chris", reason="checked against the radio")
    ledger.backup(folder / "older.db")
    older_verified = ledger.verify(vkey=vkey)
    salaries.charge(LaplaceLoss(noise_multiplier=30), who="dee", purpose="x", key="dee")
    ledger.witness(witness)
    visits.charge(PureLoss(epsilon=0.5), who="bo", purpose="count", periods=["2026-11-15"])
    ledger.export(folder / "log.ndjson")
    kinds = {entry["kind"] for entry in ledger.history()}
    assert kinds == set(RULES), "an attack is missing for a kind of entry"
    return Original(
        path=folder / "budget.db",
        key=folder / "budget.db.key",
        vkey=vkey,
        witness=folder / "witness",
        oldest=oldest,
        oldest_key=oldest_key,
        older=folder / "older.db",
        pinned=ledger.checkpoint(),
        older_verified=older_verified,
        size=ledger.size,
        export=folder / "log.ndjson",
        receipts=[
            ledger.prove(first.receipt).to_json(),
            ledger.prove(again.receipt, witnessed=True).to_json(),
        ],
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Original:
    folder = tmp_path_factory.mktemp("original")
    with Ledger.open(folder / "budget.db", name="example.com/ledger") as ledger:
        return fill(ledger, folder)


# --- databases that can be edited and put back ---


class SqliteSite:
    """Copies of the file, one for each attack."""

    def __init__(self, original: Original, folder: Path) -> None:
        self._original = original
        self._folder = folder
        self.location = ""
        self.reset()

    def reset(self, copy_of: Path | None = None) -> None:
        for file in self._folder.iterdir():
            file.unlink()
        self.location = str(self._folder / "budget.db")
        shutil.copyfile(copy_of or self._original.path, self.location)

    def rows(self, table: str) -> list[dict]:
        with closing(sqlite3.connect(self.location)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY 1")]

    def execute(self, sql: str, *parameters: object) -> None:
        self.execute_all([(sql, parameters)])

    def execute_all(self, statements) -> None:
        with closing(sqlite3.connect(self.location)) as db, db:
            for sql, parameters in statements:
                db.execute(sql, parameters)


class PostgresSite:
    """One database, with a sound copy of every table in another schema."""

    def __init__(self, original: Original, url: str) -> None:
        import psycopg

        self.location = url
        in_schema = "-c search_path=discreet_ledger"
        self._connect = lambda: psycopg.connect(url, options=in_schema)
        Ledger.imported(original.export, url, key=original.key).close()
        with self._connect() as db:
            db.execute("CREATE SCHEMA sound")
            for table in (*COLUMNS, "meta"):
                db.execute(f"CREATE TABLE sound.{table} AS TABLE {table}")

    def reset(self) -> None:
        with self._connect() as db:
            for table in (*COLUMNS, "meta"):
                db.execute(f"DELETE FROM {table}")
                db.execute(f"INSERT INTO {table} SELECT * FROM sound.{table}")

    def rows(self, table: str) -> list[dict]:
        from psycopg.rows import dict_row

        with self._connect() as db:
            cursor = db.cursor(row_factory=dict_row)
            # In order: after a reset the server may keep rows where others were.
            return list(cursor.execute(f"SELECT * FROM {table} ORDER BY 1"))

    def execute(self, sql: str, *parameters: object) -> None:
        self.execute_all([(sql, parameters)])

    def execute_all(self, statements) -> None:
        with self._connect() as db:
            for sql, parameters in statements:
                db.execute(sql.replace("?", "%s"), parameters)


@pytest.fixture(scope="module")
def postgres():
    from discreet.testing._postgres import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def postgres_site(original, postgres) -> PostgresSite:
    return PostgresSite(original, postgres.new_database())


@pytest.fixture
def sqlite_site(original, tmp_path) -> SqliteSite:
    folder = tmp_path / "site"
    folder.mkdir()
    return SqliteSite(original, folder)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def site(request):
    made = request.getfixturevalue(f"{request.param}_site")
    made.reset()
    yield made
    made.reset()


@pytest.fixture
def rng() -> random.Random:
    seed = secrets.randbits(64)
    sys.stdout.write(f"seed {seed}\n")  # shown with a failure only
    return random.Random(seed)


def look(location: object, **options: object) -> Verification:
    """Verify as an auditor does: without the key, changing nothing."""
    with Ledger.open(str(location), read_only=True) as ledger:
        return ledger.verify(**options)


@dataclass(frozen=True)
class Attack:
    """Statements to run, and the entry that must be blamed, where one must be."""

    name: str
    statements: list
    blamed: int | None = None


def survivors(site, attacks: list[Attack]) -> list[str]:
    """Return the attacks that were not found, or for which the wrong entry was blamed."""
    found = []
    for attack in attacks:
        site.reset()
        site.execute_all(attack.statements)
        try:
            look(site.location)
        except TamperingFound as error:
            if attack.blamed is not None and error.entry != attack.blamed:
                found.append(f"{attack.name}: blamed {error.entry}, not {attack.blamed}: {error}")
        except Exception as error:
            found.append(f"{attack.name}: {type(error).__name__}: {error}"[:200])
        else:
            found.append(f"{attack.name}: not found")
    return found


def assert_found(site, attacks: list[Attack]) -> None:
    """Carry out every attack, and list those that go through."""
    missed = survivors(site, attacks)
    assert not missed, "\n".join(missed)


# --- edits of stored fields ---


def altered(value: object, rng: random.Random, *, any_byte: bool) -> object:
    """Return something else of the same type; ``any_byte`` also makes texts that are none."""
    if value is None:
        return "x"
    if isinstance(value, int):
        others = [value + 1, value - 1, -1 - value, value ^ 1 << rng.randrange(62), LARGEST]
        return rng.choice([other for other in others if other != value])
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    at = rng.randrange(len(raw)) if raw else 0
    usual = rng.choice(b'0123456789abcxyzABCXYZ{}[]:," -./+=')
    byte = rng.randrange(256) if isinstance(value, bytes) or any_byte else usual
    how = rng.choice(["replace", "replace", "flip", "insert", "remove"])
    if how == "insert" or not raw:
        raw.insert(at, byte)
    elif how == "remove":
        del raw[at]
    elif how == "flip" and (any_byte or isinstance(value, bytes)):
        raw[at] ^= 1 << rng.randrange(8)
    else:
        raw[at] = byte
    if isinstance(value, bytes):
        return bytes(raw) if raw != value else altered(value, rng, any_byte=any_byte)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return bytes(raw) if any_byte else altered(value, rng, any_byte=False)
    is_storable = any_byte or "\x00" not in text
    return text if text != value and is_storable else altered(value, rng, any_byte=any_byte)


def difference(old: object, new: object) -> str:
    """Return what changed, in a few characters."""
    if isinstance(old, str) and isinstance(new, bytes):
        old = old.encode()
    if not isinstance(old, (str, bytes)):
        return f"{old!r} -> {new!r}"
    at = next((i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y), len(old))
    return f"at {at}: {old[at : at + 6]!r} -> {new[at : at + 6]!r}"


def random_edits(site, rng: random.Random, *, any_byte: bool) -> list[Attack]:
    """Return one edit of every field of every row of every table."""
    edits = []
    for table, columns in COLUMNS.items():
        name = NAMED_BY[table]
        rows = site.rows(table)
        unique = [column for column in (name, "key") if column in rows[0]]
        taken = {column: {row[column] for row in rows} for column in unique}
        for row in rows:
            for column in columns:
                new = altered(row[column], rng, any_byte=any_byte)
                while new in taken.get(column, ()):  # the database would refuse it
                    new = altered(row[column], rng, any_byte=any_byte)
                is_text = isinstance(row[column], str)
                value = "CAST(? AS TEXT)" if is_text and isinstance(new, bytes) else "?"
                sql = f"UPDATE {table} SET {column} = {value} WHERE {name} = ?"
                is_named = table == "entries" or (table, column) == ("answers", "body")
                blamed = row["idx"] if is_named else None
                title = f"{table}.{column} of {row[name]!r}, {difference(row[column], new)}"
                edits.append(Attack(title, [(sql, (new, row[name]))], blamed))
    return edits


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


# --- entries that go, come, and change places ---


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
    one, other = rng.sample(facts, 2)
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


# --- histories that fit together again ---


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


# --- old copies and forks: sound in themselves ---


@pytest.fixture
def restored(original, tmp_path) -> Path:
    """An older copy of the file in its place, and the key that signs it still."""
    place = tmp_path / "budget.db"
    shutil.copyfile(original.older, place)
    shutil.copy2(original.key, f"{place}.key")
    return place


def witness_of(original: Original, folder: Path) -> Witness:
    """Return a copy of the witness, so that one test does not teach it for another."""
    shutil.copytree(original.witness, folder / "witness")
    return Witness.open(folder / "witness")


def test_a_restored_copy_is_sound_in_itself(restored, original):
    assert look(restored, vkey=original.vkey).size < original.size


def test_a_restored_copy_is_found_by_a_pinned_checkpoint(restored, original, tmp_path):
    size = look(restored).size
    with pytest.raises(TamperingFound) as error:
        look(restored, pinned=original.pinned)
    assert error.value.entry == size
    with pytest.raises(TamperingFound) as error:
        Ledger.open(restored, pinned=original.pinned)
    assert error.value.entry == size
    (tmp_path / "pinned").write_text(original.pinned)
    with pytest.raises(TamperingFound):
        Ledger.open(restored, pinned=tmp_path / "pinned")


def test_a_restored_copy_is_found_by_an_earlier_verification(restored, original):
    latest = look(original.path)
    with pytest.raises(TamperingFound):
        look(restored, since=latest)


def test_a_restored_copy_is_found_by_a_witness(restored, original, tmp_path):
    witness = witness_of(original, tmp_path)
    with Ledger.open(restored) as ledger:
        size = ledger.size
        with pytest.raises(TamperingFound):
            ledger.witness(witness)
        assert ledger.size == size
    assert witness.last("example.com/ledger").size > size


@pytest.mark.parametrize("more", [1, 3, 4, 5, 9])
def test_a_fork_signed_with_the_real_key_is_found(restored, original, tmp_path, more):
    """A copy that goes on by itself, shorter than the ledger, as long, or longer."""
    witness = witness_of(original, tmp_path)
    with Ledger.open(restored) as fork:
        for n in range(more):
            loss = LaplaceLoss(noise_multiplier=40 + n)
            fork["salaries"].charge(loss, who="eve", purpose="x")
        fork.verify(vkey=original.vkey)  # sound in itself
        for pinned in (original.pinned,):
            with pytest.raises(TamperingFound):
                fork.verify(pinned=pinned)
            with pytest.raises(TamperingFound):
                Ledger.open(restored, pinned=pinned)
        size = fork.size
        with pytest.raises(TamperingFound):
            fork.witness(witness)
        assert fork.size == size
        other = fork.checkpoint()
    # And the other way round: who pinned the fork finds out about the ledger.
    with pytest.raises(TamperingFound):
        look(original.path, pinned=other)


def test_of_two_continuations_a_witness_cosigns_one(restored, original, tmp_path):
    second = tmp_path / "second.db"
    shutil.copyfile(restored, second)
    shutil.copy2(f"{restored}.key", f"{second}.key")
    witness = Witness.create(tmp_path / "fresh", name="witness.example/w2")
    for place, who in ((restored, "ana"), (second, "bo")):
        with Ledger.open(place) as ledger:
            for _ in range(3):
                ledger["salaries"].charge(LaplaceLoss(noise_multiplier=40), who=who, purpose="x")
    with Ledger.open(restored) as ledger:
        ledger.witness(witness)
    with Ledger.open(second) as ledger, pytest.raises(TamperingFound):
        ledger.witness(witness)
    with Ledger.open(restored) as ledger:
        ledger.witness(witness)  # the first goes on


def test_a_key_that_was_rotated_away_signs_no_continuation(original, tmp_path):
    """Whoever stole the old key can only fork from before its end, which others remember."""
    place = tmp_path / "budget.db"
    shutil.copyfile(original.oldest, place)
    shutil.copy2(original.oldest_key, f"{place}.key")
    witness = witness_of(original, tmp_path)
    seen = witness.last("example.com/ledger")
    with Ledger.open(place) as fork:
        for step in ("charge", "rotate"):  # with the old key, or a third one that it leads to
            for _ in range(20):
                loss = LaplaceLoss(noise_multiplier=40)
                fork["salaries"].charge(loss, who="eve", purpose="x")
            if step == "rotate":
                fork.rotate()
            fork.verify(vkey=original.vkey)
            with pytest.raises(TamperingFound):
                fork.verify(pinned=original.pinned)
            with pytest.raises((LedgerError, NotProven)):
                fork.witness(witness)
    assert witness.last("example.com/ledger") == seen


def test_a_statement_of_a_witness_about_another_log_is_found(restored, original):
    """A fork cannot show the cosignature that the witness gave to the ledger."""
    with Ledger.open(original.path, read_only=True) as ledger:
        statement = [entry for entry in ledger.history() if entry["kind"] == "witness"][-1]
    with Ledger.open(restored) as fork:
        while fork.size < original.size:
            fork["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="eve", purpose="x")
        place = fork.size
        taken = {name: statement[name] for name in ("kind", "note", "vkey")}
        fork._session.submit({**taken, "key": "taken"})  # as somebody with the key could
        with pytest.raises(TamperingFound) as error:
            fork.verify()
        assert error.value.entry == place


def test_a_write_ahead_log_that_is_taken_away_is_a_restored_copy(original, tmp_path):
    place = tmp_path / "budget.db"
    shutil.copyfile(original.path, place)
    shutil.copy2(original.key, f"{place}.key")
    ledger = Ledger.open(place)
    try:
        for n in range(3):
            loss = LaplaceLoss(noise_multiplier=40 + n)
            ledger["salaries"].charge(loss, who="ana", purpose="x")
        pinned = ledger.checkpoint()
        alone = tmp_path / "alone.db"
        shutil.copyfile(place, alone)  # without the write-ahead log beside it
    finally:
        ledger.close()
    look(place, pinned=pinned)
    with pytest.raises(TamperingFound):
        look(alone, pinned=pinned)


def test_an_emptied_file_is_no_fresh_budget(original, tmp_path):
    place = tmp_path / "budget.db"
    place.touch()
    shutil.copy2(original.key, f"{place}.key")
    with pytest.raises(LedgerError):
        Ledger.open(place)
    place.unlink()
    with pytest.raises(LedgerError):
        Ledger.open(place)


# --- going on from an earlier verification ---


def test_from_a_marker_on_every_edit_is_found(sqlite_site, original, rng):
    marker = original.older_verified
    edits = [
        attack
        for attack in random_edits(sqlite_site, rng, any_byte=False)
        if attack.blamed is None or attack.blamed >= marker.size
    ]
    missed = []
    for attack in edits:
        sqlite_site.reset()
        sqlite_site.execute_all(attack.statements)
        try:
            look(sqlite_site.location, since=marker)
        except TamperingFound as error:
            if attack.blamed not in (None, error.entry):
                missed.append(f"{attack.name}: blamed {error.entry}")
        else:
            missed.append(attack.name)
    assert not missed, "\n".join(missed)


def test_before_the_marker_only_the_state_is_looked_at(sqlite_site, original, rng):
    """What lies before a marker was verified then; who edits it later is found by a full pass."""
    marker = original.older_verified
    i = 7
    sqlite_site.execute("UPDATE entries SET body = body || ' ' WHERE idx = ?", i)
    assert look(sqlite_site.location, since=marker).start == marker.size
    with pytest.raises(TamperingFound) as error:
        look(sqlite_site.location)
    assert error.value.entry == i


def test_a_marker_survives_its_file(original, tmp_path):
    original.older_verified.save(tmp_path / "marker.json")
    marker = Verification.load(tmp_path / "marker.json")
    assert look(original.path, since=marker).size == original.size


# --- exports ---


def logical(text: bytes) -> object:
    """Return what an export says, whatever way the lines that are not hashed are written."""
    head, *rest = text.split(b"\n")
    header = json.loads(head)
    size = header["size"]
    tail = [json.loads(line) for line in rest[size:] if line]
    for line in tail:
        if "answer" in line:
            line["answer"] = b64decode(line["answer"], validate=True)
    return header, rest[:size], tail, text.endswith(b"\n")


def check_export(text: bytes, original: Original, place: Path, *, blamed: int | None) -> str | None:
    place.write_bytes(text)
    try:
        is_same = logical(text) == logical(original.export.read_bytes())
    except (ValueError, KeyError, TypeError):
        is_same = False
    try:
        Export(place).verify(vkey=original.vkey)
    except TamperingFound as error:
        # What an entry says of the one before it may be wrong on either side: no hash is stored.
        is_right = blamed is None or error.entry in (blamed, max(blamed - 1, 0))
        return None if is_right else f"blamed {error.entry} for {blamed}"
    except ParameterError:  # the first line no longer says that it is an export
        return None if blamed is None else "no longer an export"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if is_same else "not found"


def test_an_edit_of_any_line_of_an_export_is_found(original, tmp_path, rng):
    lines = original.export.read_bytes().splitlines(keepends=True)
    missed = []
    for number, line in enumerate(lines * 3):
        number %= len(lines)
        changed = bytearray(line)
        at = rng.randrange(len(line))
        changed[at] = rng.choice([byte for byte in range(256) if byte != line[at]])
        text = b"".join([*lines[:number], bytes(changed), *lines[number + 1 :]])
        blamed = number - 1 if 1 <= number <= original.size else None
        missed += [
            f"byte {at} of line {number}, {line[at]} -> {changed[at]}: {why}"
            for why in [check_export(text, original, tmp_path / "log.ndjson", blamed=blamed)]
            if why
        ]
    assert not missed, "\n".join(missed)


def test_lines_of_an_export_cannot_go_come_or_change_places(original, tmp_path, rng):
    lines = original.export.read_bytes().splitlines(keepends=True)
    texts = {"cut off": b"".join(lines)[: rng.randrange(1, len(b"".join(lines)))]}
    for number in range(1, len(lines)):
        if not original.size < number < len(lines) - 1:  # an answer; see below
            texts[f"without line {number}"] = b"".join(lines[:number] + lines[number + 1 :])
            texts[f"line {number} twice"] = b"".join(lines[: number + 1] + lines[number:])
        i, j = sorted(rng.sample(range(1, len(lines)), 2))
        swapped = [*lines]
        swapped[i], swapped[j] = lines[j], lines[i]
        if not original.size < i < j < len(lines) - 1:  # answers have no order
            texts[f"lines {i} and {j} swapped"] = b"".join(swapped)
    nothing = json.dumps({**json.loads(lines[0]), "size": 0}).encode() + b"\n"
    texts["no entries"] = nothing + lines[-1]
    renamed = json.dumps({**json.loads(lines[0]), "origin": "example.com/other"}).encode() + b"\n"
    texts["another origin"] = b"".join([renamed, *lines[1:]])
    missed = []
    for name, text in texts.items():
        why = check_export(text, original, tmp_path / "log.ndjson", blamed=None)
        missed += [f"{name}: {why}"] if why else []
    assert not missed, "\n".join(missed)


def test_a_kept_answer_cannot_be_removed_from_an_export(original, tmp_path):
    lines = original.export.read_bytes().splitlines(keepends=True)
    missed = []
    for number in range(original.size + 1, len(lines) - 1):
        text = b"".join(lines[:number] + lines[number + 1 :])
        missed += [check_export(text, original, tmp_path / "log.ndjson", blamed=None)]
    assert missed == [None] * len(missed) != []


def test_an_edited_export_is_not_imported(original, tmp_path):
    text = original.export.read_bytes()
    (tmp_path / "log.ndjson").write_bytes(text.replace(b'"who":"ana"', b'"who":"eve"', 1))
    with pytest.raises(TamperingFound):
        Ledger.imported(tmp_path / "log.ndjson", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


# --- receipts ---


@pytest.mark.parametrize("number", [0, 1])
def test_an_edit_of_any_byte_of_a_receipt_is_found(original, rng, number):
    receipt = original.receipts[number]
    witnesses = [Witness.open(original.witness).vkey] * number
    options = {"vkey": original.vkey, "witnesses": witnesses}
    check_receipt(receipt, **options)
    raw = receipt.encode()
    missed = []
    for at in rng.sample(range(len(raw)), 400):
        changed = bytearray(raw)
        changed[at] = rng.choice([byte for byte in range(256) if byte != raw[at]])
        try:
            is_same = json.loads(bytes(changed)) == json.loads(raw)
        except ValueError:
            is_same = False
        try:
            check_receipt(bytes(changed), **options)
        except NotProven:
            continue
        except Exception as error:
            missed.append(f"byte {at}: {type(error).__name__}")
        else:
            missed += [] if is_same else [f"byte {at}: {raw[at]} -> {changed[at]}"]
    assert not missed, "\n".join(missed)


def test_a_receipt_of_a_fork_is_of_no_use_against_a_witness(restored, original):
    with Ledger.open(restored) as fork:
        receipt = fork["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="eve", purpose="x")
        told = fork.prove(receipt).to_json()
    check_receipt(told, original.vkey)
    with pytest.raises(NotProven):
        check_receipt(told, original.vkey, witnesses=[Witness.open(original.witness).vkey])


# --- the file itself ---


def content(path: object) -> object:
    """Return all that a ledger says, or why it cannot be read. Its version is no part of that."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        try:
            return {
                table: db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()
                for table in COLUMNS
            }
        except (sqlite3.Error, UnicodeDecodeError) as error:  # its message quotes the file
            return type(error).__name__


def test_a_flipped_byte_in_the_file_is_found_or_changes_nothing(sqlite_site, original, rng):
    sound = content(original.path)
    data = original.path.read_bytes()
    wrong, changes = [], 0
    for _ in range(250):
        at = rng.randrange(len(data))
        new = rng.choice([byte for byte in range(256) if byte != data[at]])
        sqlite_site.reset()
        with open(sqlite_site.location, "r+b") as file:
            file.seek(at)
            file.write(bytes([new]))
        is_same = content(sqlite_site.location) == sound
        changes += not is_same
        try:
            look(sqlite_site.location)
        except (TamperingFound, LedgerUnavailable):
            continue
        except Exception as error:
            wrong.append(f"byte {at} -> {new}: {type(error).__name__}: {error}")
        else:
            wrong += [] if is_same else [f"byte {at}: {data[at]} -> {new}: not found"]
    assert not wrong, "\n".join(wrong)
    assert changes > 20, "most flips fell into unused space: this showed little"


def test_overwritten_pages_are_found_or_change_nothing(sqlite_site, original, rng):
    sound = content(original.path)
    data = original.path.read_bytes()
    page = int.from_bytes(data[16:18])
    wrong = []
    for number in range(len(data) // page):
        for fill in (bytes(page), rng.randbytes(page), data[-page:]):
            sqlite_site.reset()
            with open(sqlite_site.location, "r+b") as file:
                file.seek(number * page)
                file.write(fill)
            is_same = content(sqlite_site.location) == sound
            try:
                look(sqlite_site.location)
            except (TamperingFound, LedgerUnavailable):
                continue
            except Exception as error:
                wrong.append(f"page {number}: {type(error).__name__}: {error}")
            else:
                wrong += [] if is_same else [f"page {number}: not found"]
    assert not wrong, "\n".join(wrong)


def test_a_damaged_index_is_found(sqlite_site, original):
    """The table is whole, but a key is not found again where it is looked up."""
    data = bytearray(original.path.read_bytes())
    size = int.from_bytes(data[16:18])
    key = b"key/salaries/ana-3"
    for start in range(size, len(data), size):
        is_index = data[start] in (2, 10)
        at = data.find(key, start, start + size)
        if is_index and at >= 0:
            data[at : at + len(key)] = b"key/salaries/ana-?"
    assert data != original.path.read_bytes()
    Path(sqlite_site.location).write_bytes(data)
    assert content(sqlite_site.location) == content(original.path)
    with pytest.raises((TamperingFound, LedgerUnavailable)):
        look(sqlite_site.location)


def charge_and_verify(location: str) -> None:
    with Ledger.open(location) as ledger:
        ledger["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="ana", purpose="x")
        ledger.verify()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM meta",
        "UPDATE meta SET value = '1'",
        "UPDATE meta SET value = '3'",
        "UPDATE meta SET value = ''",
        "UPDATE meta SET value = 'two'",
        "UPDATE meta SET name = 'another'",
        "DROP TABLE meta",
        "DROP TABLE facts",
        "DROP TABLE answers",
        "ALTER TABLE entries RENAME TO old",
        "ALTER TABLE entries RENAME COLUMN hashes TO digest",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM facts; END",
        "CREATE VIEW v AS SELECT * FROM facts",
    ],
)
def test_a_changed_schema_is_refused(sqlite_site, original, sql):
    sqlite_site.execute(sql)
    before = Path(sqlite_site.location).read_bytes()
    with pytest.raises(LedgerUnavailable):
        look(sqlite_site.location)
    shutil.copy2(original.key, f"{sqlite_site.location}.key")
    with pytest.raises(LedgerUnavailable):
        charge_and_verify(sqlite_site.location)
    if "meta" in sql:
        assert Path(sqlite_site.location).read_bytes() == before
