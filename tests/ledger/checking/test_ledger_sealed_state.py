"""Whatever a request reads of the database was written last, by somebody with the key, or it fails.

The attacks are made from the schema and from what each request is seen to read.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_attacks import NAMED_BY, SqliteSite, altered

from discreet.accounting import LaplaceLoss, PureLoss
from discreet.errors import DiscreetError, LedgerError, TamperingFound
from discreet.ledger import Ledger, Receipt
from discreet.ledger.log.state_tree import EMPTY, NODES, StateTree, check_tree
from discreet.ledger.rules.entry import encode
from discreet.ledger.stores.postgres.snapshot import PostgresTransaction
from discreet.ledger.stores.schema import migrations
from discreet.ledger.stores.sqlite.snapshot import SqliteTransaction
from discreet.ledger.writing import scribe
from discreet.ledger.writing.sealed import SEAL
from discreet.privacy import Guarantee, Unit

TABLES = {
    name
    for _, statements in migrations("sqlite", found=0)
    for statement in statements
    for name in re.findall(r"CREATE TABLE (\w+)", statement)
}
# Read when a ledger is opened (test_ledger_damaged_files.py), and when an answer is read again,
# which must hash to what its release says (test_a_kept_answer_is_read_as_it_was_released).
ELSEWHERE = {"meta", "answers"}
READS = {"facts": "facts", "row": "entries", "by_keys": "entries", "head": "head"}
LOSS = LaplaceLoss(noise_multiplier=50)
ANA = {"who": "ana", "purpose": "report"}
CHANGING = ("index", "key", "previous", "time")

Entry = dict[str, Any]
Request = Callable[[Ledger, list[Entry]], Receipt]


def _charge_of(log: list[Entry], key: str) -> Receipt:
    return _receipt_of(next(entry for entry in log if entry["key"].endswith(key)))


def _receipt_of(entry: Entry) -> Receipt:
    return Receipt(bodies=(encode(entry),))


def _open_job(log: list[Entry]) -> int:
    return max(one["index"] for one in log if one["kind"] == "reserve")


REQUESTS: dict[str, Request] = {
    "charge": lambda ledger, log: ledger["salaries"].charge(LOSS, **ANA),
    "charge of somebody new": lambda ledger, log: ledger["salaries"].charge(
        LOSS, who="new", purpose="new"
    ),
    "charge of a day": lambda ledger, log: ledger["visits"].charge(
        PureLoss(epsilon=0.1), who="bo", purpose="count", periods=["2026-11-14"]
    ),
    "repeat": lambda ledger, log: ledger["salaries"].charge(
        LaplaceLoss(noise_multiplier=20), **ANA, key="ana-0"
    ),
    "release": lambda ledger, log: ledger["salaries"].release(_charge_of(log, "/dee"), b"41"),
    "spend": lambda ledger, log: ledger._session.submit(
        {"kind": "spend", "account": "salaries", "job": _open_job(log), "steps": [1], "key": "s"}
    ),
    "settle": lambda ledger, log: ledger._session.submit(
        {"kind": "settle", "account": "salaries", "job": _open_job(log), "key": "e"}
    ),
    "read an answer": lambda ledger, log: (
        ledger["salaries"].recall("how many", version="1", who="eve", purpose="x").receipt
    ),
    "take a source": lambda ledger, log: ledger["visits"].register(
        "payroll", version="1", identities=["a place"]
    ),
    "change the policy": lambda ledger, log: ledger["visits"].set_policy(
        "wait", who="chris", reason="again"
    ),
    "act": lambda ledger, log: ledger.act(
        "dataset.reopened", who="chris", subject="visits", account="visits"
    ),
    "take a name": lambda ledger, log: ledger.create(
        "SALARIES",
        unit=ledger["salaries"].unit,
        neighbours="add_remove",
        guarantee=ledger["salaries"].guarantee,
    ),
}


def outcome(location: str, key: Path, request: Request, log: list[Entry]) -> object:
    """Return what was written, without what differs each time, or the error."""
    try:
        with Ledger.open(location, key=key) as ledger:
            receipt = request(ledger, log)
    except DiscreetError as error:
        return error
    entry = dict(receipt.entries[-1])
    return {n: v for n, v in entry.items() if n not in CHANGING or receipt.is_repeated}


@pytest.fixture
def log(original) -> list[Entry]:
    """The entries of the sound ledger."""
    with Ledger.open(original.path, read_only=True) as ledger:
        return ledger.history()


@pytest.fixture
def seen(monkeypatch) -> set[tuple[str, object]]:
    """Which rows requests read, by table and name."""
    rows: set[tuple[str, object]] = set()

    def watch(kind: type, method: str, table: str) -> None:
        read = getattr(kind, method)

        def watched(self, *names):
            found = read(self, *names)
            if method == "facts":
                rows.update(("facts", name) for name in names[0])
            elif method == "by_keys":
                rows.update((table, row.index) for row in found.values())
            else:
                rows.add((table, names[0] if names else 1))
            return found

        monkeypatch.setattr(kind, method, watched)

    for kind in (SqliteTransaction, PostgresTransaction):
        for method, table in READS.items():
            watch(kind, method, table)
    return rows


def is_basic(table: str, name: object) -> bool:
    """Say whether every request reads this row."""
    return table == "head" or name in ("ledger", SEAL) or str(name).startswith(NODES)


def attacks_on(site, table: str, name: object, older: dict, rng) -> list[tuple[str, list]]:
    """Return how to remove a row, edit each field, put back what it was, and swap it."""
    by = NAMED_BY[table]
    rows = {row[by]: row for row in site.rows(table)}
    if name not in rows:  # it was looked for and is not there
        donor = next(iter(rows.values()))
        put = f"INSERT INTO {table} VALUES ({', '.join('?' * len(donor))})"
        return [("appears", [(put, tuple({**donor, by: name}.values()))])]
    row = rows.pop(name)
    found = [("removed", [(f"DELETE FROM {table} WHERE {by} = ?", (name,))])]

    def update(column: str, value: object, name: object) -> tuple[str, tuple]:
        return (f"UPDATE {table} SET {column} = ? WHERE {by} = ?", (value, name))

    for column in row:
        if column != by:
            new = altered(row[column], rng, any_byte=False)
            while column == "key" and new in {other["key"] for other in rows.values()}:
                new = altered(row[column], rng, any_byte=False)
            found.append((f"{column} edited", [update(column, new, name)]))
            if name in older and older[name][column] != row[column]:
                was = older[name][column]
                found.append((f"{column} as it was", [update(column, was, name)]))
    if name in older and older[name] != row:
        was = [update(column, value, name) for column, value in older[name].items() if column != by]
        found.append(("as it was", was))
    alike = [
        other
        for other in rows.values()
        if table == "facts"
        and str(other[by]).partition("/")[0] == str(name).partition("/")[0]
        and other["value"] != row["value"]
    ]
    for other in alike[:2]:
        swap = [update("value", other["value"], name), update("value", row["value"], other[by])]
        found.append((f"swapped with {other[by]}", swap))
    return found


@pytest.mark.lengthy
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_request_notices_every_change_of_what_it_reads(
    request_name, site, original, tmp_path, rng, seen, log
):
    request = REQUESTS[request_name]

    def attempt() -> object:
        folder = tmp_path / rng.randbytes(8).hex()
        folder.mkdir()
        return outcome(site.location, shutil.copy2(original.key, folder / "key"), request, log)

    sound = attempt()
    # What all requests read is attacked for one of them.
    read = sorted((one for one in seen if request_name == "charge" or not is_basic(*one)), key=str)
    assert {table for table, _ in seen} >= {"facts", "head"}
    assert read
    assert set(READS.values()) | ELSEWHERE == TABLES
    past = SqliteSite(original, _folder(tmp_path, "past"))
    past.reset(original.oldest)
    older = {
        table: {row[NAMED_BY[table]]: row for row in past.rows(table)} for table in READS.values()
    }
    missed = []
    site.reset()
    for table, name in read:
        for title, statements in attacks_on(site, table, name, older[table], rng):
            site.reset()
            site.execute_all(statements)
            count = len(site.rows("entries"))
            found = attempt()
            is_written = len(site.rows("entries")) != count
            assert is_written != isinstance(found, Exception) or request_name == "repeat"
            # Without knowing the ledger or its end, it cannot even be said what was altered.
            error = LedgerError if is_basic(table, name) else TamperingFound
            is_noticed = isinstance(found, error)
            # The way to an entry proves it, so edits beside it do not matter; a request of which
            # no trace is left is charged again.
            is_same = repr(found) == repr(sound)  # also where both refuse, for the same reason
            is_harmless = table == "entries" and (is_same or request_name == "repeat")
            if not (is_noticed or is_harmless):
                missed.append(f"{table} {name!r} {title}: {found!r}"[:300])
        site.reset()
    assert not missed, "\n".join(missed)


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def test_a_request_on_a_sound_ledger_is_not_noticed(site, original, tmp_path, log):
    for number, (name, request) in enumerate(REQUESTS.items()):
        site.reset()
        key = shutil.copy2(original.key, _folder(tmp_path, str(number)) / "key")
        found = outcome(site.location, key, request, log)
        assert not isinstance(found, TamperingFound), (name, found)


def test_an_entry_that_pays_is_the_one_that_was_written(sqlite_site, original, tmp_path, log):
    """Also where whoever asks does not say which it was."""
    key = shutil.copy2(original.key, tmp_path / "key")
    receipt = _charge_of(log, "/dee")
    body = receipt.bodies[0].replace('"who":"dee"', '"who":"eve"')
    assert body != receipt.bodies[0]
    sqlite_site.execute("UPDATE entries SET body = ? WHERE idx = ?", body, receipt.index)
    for claimed in (receipt, Receipt(bodies=(f'{{"index":{receipt.index}}}',))):
        with (
            Ledger.open(sqlite_site.location, key=key) as ledger,
            pytest.raises(TamperingFound) as error,
        ):
            ledger["salaries"].release(claimed, b"41")
        assert "Nothing was written" in str(error.value)


def test_a_charge_pays_for_one_release_though_the_first_one_is_gone(
    sqlite_site, original, tmp_path, log
):
    """Also where its entry and its answer were taken away, and not only the state."""
    key = shutil.copy2(original.key, tmp_path / "key")
    job = next(one["index"] for one in log if one["kind"] == "reserve")
    with Ledger.open(sqlite_site.location, key=key) as ledger:
        ledger["salaries"].release(_receipt_of(log[job]), b"weights")
        releases = [one for one in ledger.history() if one["kind"] == "release"]
    assert len(releases) > 2
    for release in releases:
        for table in ("entries", "answers"):
            sqlite_site.execute(f"DELETE FROM {table} WHERE idx = ?", release["index"])
        count = len(sqlite_site.rows("entries"))
        charge = _receipt_of(log[release["charge"]])
        (tmp_path / "key.anchor").unlink(missing_ok=True)  # as on another host
        with (
            Ledger.open(sqlite_site.location, key=key) as ledger,
            pytest.raises(TamperingFound, match="Nothing was written"),
        ):
            ledger["salaries"].release(charge, b"another answer")
        assert len(sqlite_site.rows("entries")) == count


def test_releases_from_before_their_charges_were_marked_stay_good(tmp_path, monkeypatch):
    monkeypatch.setattr(scribe, "_MARKED", {})
    location = tmp_path / "budget.db"
    terms = {"unit": Unit.record(), "neighbours": "add_remove", "guarantee": Guarantee(epsilon=1)}
    with Ledger.open(location) as ledger:
        account = ledger.create("people", **terms)
        old = account.charge(PureLoss(epsilon=0.25), **ANA)
        account.release(old, b"41")
        before = ledger.verify()
    monkeypatch.undo()
    with Ledger.open(location) as ledger:
        assert not [one for one in ledger.history() if "once" in one]
        account = ledger["people"]
        size = ledger.size
        account.release(old, b"41")
        assert ledger.size == size
        with pytest.raises(LedgerError, match="paid for another answer"):
            account.release(old, b"42")
        new = account.charge(PureLoss(epsilon=0.25), **ANA)
        account.release(new, b"43")
        assert ledger.verify(since=before).facts == ledger.verify().facts
        ledger.export(tmp_path / "log.ndjson")
    with Ledger.imported(tmp_path / "log.ndjson", tmp_path / "again.db") as again:
        assert again.verify().releases == 2


def test_a_kept_answer_is_read_as_it_was_released(sqlite_site, original, tmp_path):
    key = shutil.copy2(original.key, tmp_path / "key")
    (first, second) = sqlite_site.rows("answers")[:2]
    update = "UPDATE answers SET body = ? WHERE idx = ?"
    sqlite_site.execute(update, second["body"], first["idx"])
    with Ledger.open(sqlite_site.location, key=key) as ledger, pytest.raises(TamperingFound):
        ledger["salaries"].recall("how many", version="1", who="eve", purpose="x")


@pytest.mark.parametrize("is_altered", [False, True])
def test_a_ledger_without_a_seal_is_verified_once_and_sealed(
    sqlite_site, original, tmp_path, is_altered
):
    """As those of earlier versions are, or one whose seal was taken away."""
    key = shutil.copy2(original.key, tmp_path / "key")
    sqlite_site.execute("DELETE FROM facts WHERE name = ? OR name LIKE ?", SEAL, f"{NODES}%")
    sqlite_site.execute("UPDATE meta SET value = '2'")
    if is_altered:
        sqlite_site.execute("DELETE FROM facts WHERE name = 'budget/salaries/total'")
    with Ledger.open(sqlite_site.location, read_only=True) as ledger:
        assert ledger.size == original.size
    with Ledger.open(sqlite_site.location, key=key) as ledger:
        if is_altered:
            with pytest.raises(TamperingFound):
                ledger["salaries"].charge(LOSS, **ANA)
            assert ledger.size == original.size
            return
        ledger["salaries"].charge(LOSS, **ANA)
        ledger.verify()
    assert SEAL in {row["name"] for row in sqlite_site.rows("facts")}
    sqlite_site.execute("DELETE FROM facts WHERE name = ?", SEAL)  # and not the tree
    with Ledger.open(sqlite_site.location, key=key) as ledger, pytest.raises(TamperingFound):
        ledger["salaries"].charge(LOSS, **ANA)


def test_the_tree_holds_just_what_was_put(rng):
    """Against a dictionary: many names, some removed, read back from what was stored."""
    stored: dict[str, str] = {}
    facts: dict[str, str] = {}

    def read(names):
        return {name: stored[name] for name in names if name in stored}

    root = EMPTY
    for _ in range(60):
        tree = StateTree(read, root)
        names = [f"job/{rng.randrange(300)}" for _ in range(rng.randrange(1, 40))]
        changes = {name: rng.choice([None, str(rng.random())]) for name in names}
        if rng.random() < 0.1:
            changes = dict.fromkeys(facts)
        tree.put(changes)
        for name, value in (*changes.items(),):
            tree.check(name, value)
        for name, value in tree.take().items():
            stored.pop(name, None)
            if value is not None:
                stored[name] = value
        root = tree.root
        facts |= {name: value for name, value in changes.items() if value is not None}
        facts = {name: value for name, value in facts.items() if changes.get(name, "") is not None}
        check_tree(facts, stored, root)
        with pytest.raises(TamperingFound):
            check_tree({**facts, "one": "more"}, stored, root)
        if facts:
            less = dict(facts)
            less.pop(rng.choice(list(less)))
            with pytest.raises(TamperingFound):
                check_tree(less, stored, root)
            with pytest.raises(TamperingFound):
                check_tree(facts, {**stored, f"{NODES}zz": "="}, root)
    assert not facts or max(map(len, stored)) < 1000
    assert all(len(value) < 950 for value in stored.values())
