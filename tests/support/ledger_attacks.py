"""One ledger with everything in it, databases to edit it in, and attacks on them."""

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from discreet.accounting import GaussianLoss, LaplaceLoss, PureLoss
from discreet.errors import BudgetExceeded, TamperingFound
from discreet.ledger import Ledger, Witness, withdraw
from discreet.ledger.checking.verification import Verification
from discreet.ledger.rules.table import RULES
from discreet.ledger.writing.sealed import SEAL
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
        who="chris",
    )
    salaries.limit(Guarantee(epsilon=4, delta=1e-7), analyst="*", who="chris")
    salaries.limit(Guarantee(epsilon=3, delta=1e-7), purpose="report", every="year")
    salaries.register("payroll", version="2", identities=["a place", "its digest"], who="dee")
    for n in range(6):
        loss = LaplaceLoss(noise_multiplier=20 + n)
        salaries.charge(loss, who="ana", purpose="report", key=f"ana-{n}")
    visits.charge(PureLoss(epsilon=0.25), who="bo", purpose="count", periods=["2026-11-14"])
    salaries.grant(Guarantee(epsilon=6, delta=1e-6), who="owner", reason="a second year")
    visits.set_policy("deny", who="owner", reason="nobody waits")
    visits.set_policy("degrade", who="owner", reason="rough answers will do")
    reopened = {"who": "chris", "subject": "visits", "reason": "the disk was slow"}
    ledger.act("dataset.reopened", **reopened, account="visits")
    ledger.act("key.created", who="chris", subject="ana-1")
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
    mistake = ledger.create(
        "mistake",
        unit=Unit.column("usr"),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=1),
        sources=[{"name": "users", "version": "1", "identities": ["another place"]}],
    )
    withdraw(mistake, who="chris", reason="wrong unit")
    vkey = ledger.vkey
    witness = Witness.create(folder / "witness", name="witness.example/w1")
    ledger.witness(witness)
    oldest, oldest_key = folder / "oldest.db", folder / "oldest.db.key"
    ledger.backup(oldest)
    shutil.copy2(folder / "budget.db.key", oldest_key)
    ledger.rotate()
    ledger.accept_clock(who="chris", reason="checked against the radio")
    gone = {"size": 99, "root": "0" * 64, "who": "chris", "reason": "as if", "key": "gone"}
    ledger._session.submit({"kind": "rollback", **gone})
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
        # A request, though refused, has the state sealed.
        imported = Ledger.imported(original.export, url, key=original.key)
        with imported, suppress(BudgetExceeded):
            imported["salaries"].charge(PureLoss(epsilon=99), who="ana", purpose="x")
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
        rows = [row for row in site.rows(table) if row.get("name") != SEAL]  # takes the key to tell
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
