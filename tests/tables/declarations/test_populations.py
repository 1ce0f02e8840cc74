"""What follows from knowing data again: sharing, overriding, growing, moving a ledger."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Guarantee, Ledger, open_tables, protect
from discreet.errors import LedgerError, TamperingFound
from discreet.ledger import Export
from discreet.tables import protected
from discreet.tables.engines import DuckDBConnection

TERMS: dict[str, Any] = {"unit": "person", "rows": 1, "guarantee": Guarantee(epsilon=3, delta=1e-6)}
COUNT = "SELECT COUNT(*) AS n FROM "
SECRET = "a rare disease of one"


def table(seed: int, n: int = 400) -> pa.Table:
    dice = np.random.default_rng(seed)
    notes = [SECRET, *("none" for _ in range(n - 1))]
    return pa.table({"person": np.arange(n), "age": dice.integers(0, 90, n), "note": notes})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, seed in (("a", 1), ("copy", 1), ("b", 2)):
        pq.write_table(table(seed), tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.fixture(autouse=True)
def sampled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "SAMPLE_EVERY", 0.0)


@pytest.fixture
def ledger(place: Path) -> Iterator[Ledger]:
    with Ledger.open(place / "budget.db") as opened:
        yield opened


def test_two_tables_of_the_same_people_share_an_account(place: Path, ledger: Ledger) -> None:
    with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as first:
        first.sql(COUNT + "a", share="40%")
    with protect(place / "copy.parquet", name="copy", account="a", ledger=ledger, **TERMS) as same:
        assert same.account.name == "a"
        assert same.remaining == pytest.approx(0.6, abs=0.01)
        same.sql(COUNT + "copy", share="40%")
        same.save(place / "copy.toml")
    assert 'account = "a"' in (place / "copy.toml").read_text()
    with open_tables(place / "copy.toml", ledger=ledger) as again:
        assert again.remaining == pytest.approx(0.2, abs=0.02)
    assert [one.name for one in ledger] == ["a"]
    ledger.verify()


def test_an_override_is_an_entry_that_is_replayed(place: Path, ledger: Ledger) -> None:
    protect(place / "a.parquet", name="a", ledger=ledger, **TERMS).close()
    reason = "twins, says the board"
    protect(place / "copy.parquet", name="copy", ledger=ledger, override=reason, **TERMS).close()
    entry = ledger.history("copy")[0]
    assert (entry["override"], entry["matches"]) == (reason, ["a"])
    ledger.export(place / "log.jsonl")
    assert Export(place / "log.jsonl").verify().size == ledger.size
    # Without the reason the same entry is refused when the log is replayed.
    bodies = (place / "log.jsonl").read_text().splitlines()
    at = next(i for i, body in enumerate(bodies) if reason in body)
    bodies[at] = json.dumps(
        {key: value for key, value in json.loads(bodies[at]).items() if key != "override"},
        sort_keys=True, separators=(",", ":"),
    )  # fmt: skip
    (place / "log.jsonl").write_text("\n".join(bodies) + "\n")
    with pytest.raises(TamperingFound, match=f"entry {at - 1} "):
        Export(place / "log.jsonl").verify()


def test_told_apart_once_both_grow_in_peace(place: Path, ledger: Ledger) -> None:
    with (
        protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as first,
        protect(place / "b.parquet", name="b", ledger=ledger, **TERMS),
        protect(
            place / "copy.parquet", name="copy", ledger=ledger, override="twins", **TERMS
        ) as second,
    ):
        for one, name in ((first, "a"), (second, "copy")):
            pq.write_table(table(1, 500), place / f"{name}.parquet")
            assert one.refresh()
            assert one.sql(f"{COUNT}{name}", epsilon=1).value > 400
        for name in ("a", "copy", "b"):
            more = {"more": place / f"more {name}.parquet"}
            pq.write_table(table(1, 500), more["more"])
            if name == "b":
                with pytest.raises(LedgerError, match="'a'"):
                    protect(more, name=name, ledger=ledger, **TERMS)
            else:
                protect(more, name=name, ledger=ledger, **TERMS).close()


def test_a_question_is_never_refused_because_the_data_became_like_another(
    place: Path, ledger: Ledger
) -> None:
    protect(place / "a.parquet", name="a", ledger=ledger, **TERMS).close()
    with protect(place / "b.parquet", name="b", ledger=ledger, **TERMS) as other:
        pq.write_table(table(1), place / "b.parquet")
        assert other.sql(COUNT + "b", epsilon=1).value > 300
    pq.write_table(table(1), place / "c.parquet")
    with pytest.raises(LedgerError, match="'a'"):  # but who protects it elsewhere is
        protect(place / "c.parquet", name="c", ledger=ledger, **TERMS)


def test_a_sketch_follows_the_data(place: Path, ledger: Ledger) -> None:
    with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as first:
        pq.write_table(table(5), place / "a.parquet")
        first.refresh()
    protect(place / "copy.parquet", name="before", ledger=ledger, **TERMS).close()
    pq.write_table(table(5), place / "now.parquet")
    with pytest.raises(LedgerError, match="'a'"):
        protect(place / "now.parquet", name="now", ledger=ledger, **TERMS)
    with sqlite3.connect(place / "budget.db") as stored:
        found = stored.execute("SELECT name FROM facts WHERE name LIKE 'sketch/%'").fetchall()
    assert sorted(found) == [("sketch/a/a",), ("sketch/before/before",)]


def test_data_that_changes_all_the_time_is_not_sampled_each_time(
    place: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as first:
        monkeypatch.setattr(protected, "SAMPLE_EVERY", 600.0)
        monkeypatch.setattr(DuckDBConnection, "sample", None)
        for seed in (5, 6):
            pq.write_table(table(seed), place / "a.parquet")
            assert first.refresh()
    pq.write_table(table(1), place / "c.parquet")  # as it was when it was sampled
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="'a'"):
        protect(place / "c.parquet", name="c", ledger=ledger, **TERMS)


def test_nothing_is_read_again_while_the_data_stays(
    place: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS):
        size = ledger.size
        monkeypatch.setattr(DuckDBConnection, "sample", None)
        with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as again:
            assert ledger.size == size
            again.sql(COUNT + "a", epsilon=1)


def test_nothing_of_a_sketch_is_shown(
    place: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    with protect(place / "a.parquet", name="a", ledger=ledger, **TERMS) as first:
        receipt = ledger.prove(first.sql(COUNT + "a", epsilon=1).receipt)
        content = first._opened.connection.sample("a", unit="person", salt="s")  # type: ignore[attr-defined]
        shown = [repr(first), repr(content), repr(content.reveal_without_noise())]
        shown += map(repr, content.reveal_without_noise().samples)
    with pytest.raises(LedgerError) as refused:
        protect(place / "copy.parquet", name="copy", ledger=ledger, **TERMS)
    ledger.export(place / "log.jsonl")
    receipt.save(place / "receipt.json")
    ledger.verify().save(place / "verified.json")
    shown += [str(refused.value), repr(ledger.history()), repr(ledger["a"])]
    shown += [(place / one).read_text() for one in ("log.jsonl", "receipt.json", "verified.json")]
    with sqlite3.connect(place / "budget.db") as stored:
        ((text,),) = stored.execute("SELECT value FROM facts WHERE name = 'sketch/a/a'")
    assert SECRET not in text
    hashes = {part for one in json.loads(text)["samples"] for part in (one["keys"], *one["beside"])}
    assert all(len(one) > 20 for one in hashes)
    for one in shown:
        assert SECRET not in one
        assert not any(part in one for part in hashes)


def test_a_sketch_is_of_one_ledger_only(place: Path) -> None:
    kept = []
    for name in ("one.db", "two.db"):
        protect(place / "a.parquet", name="a", ledger=place / name, **TERMS).close()
        with sqlite3.connect(place / name) as stored:
            kept += stored.execute("SELECT value FROM facts WHERE name = 'sketch/a/a'").fetchall()
    first, second = (json.loads(one) for (one,) in kept)
    assert first["whole"] != second["whole"]
    for ours, theirs in zip(first["samples"], second["samples"], strict=True):
        assert ours["keys"] != theirs["keys"]
        assert not set(ours["beside"]) & set(theirs["beside"])


@pytest.mark.parametrize(
    "statement", ["UPDATE facts SET value = '{' || value", "DELETE FROM facts"]
)
def test_a_sketch_that_was_altered_or_removed_lets_nobody_through(
    place: Path, statement: str
) -> None:
    protect(place / "a.parquet", name="a", ledger=place / "budget.db", **TERMS).close()
    with sqlite3.connect(place / "budget.db") as stored:
        stored.execute(f"{statement} WHERE name = 'sketch/a/a'")
    with pytest.raises(LedgerError, match="the stored sketch state is not what was written last"):
        protect(place / "copy.parquet", name="copy", ledger=place / "budget.db", **TERMS)


def test_an_altered_sketch_is_found_by_verification(place: Path, ledger: Ledger) -> None:
    protect(place / "a.parquet", name="a", ledger=ledger, **TERMS).close()
    ledger.verify()
    with sqlite3.connect(place / "budget.db") as stored:
        stored.execute("UPDATE facts SET value = value || ' ' WHERE name = 'sketch/a/a'")
    with pytest.raises(TamperingFound, match="stored sketch state"):
        ledger.verify()


def test_an_imported_ledger_waits_for_the_data_that_it_cannot_know(
    place: Path, ledger: Ledger
) -> None:
    protect(place / "a.parquet", name="a", ledger=ledger, **TERMS).close()
    ledger.export(place / "log.jsonl")
    key = place / "budget.db.key"
    assert key.exists()
    with Ledger.imported(place / "log.jsonl", place / "new.db", vkey=ledger.vkey) as moved:
        moved.verify()
    (place / "new.db.key").write_bytes(key.read_bytes())
    (place / "new.db.key").chmod(0o600)
    with Ledger.open(place / "new.db") as moved:
        with pytest.raises(LedgerError, match="lacks the sketch of the data of account 'a'"):
            protect(place / "b.parquet", name="b", ledger=moved, **TERMS)
        protect(place / "a.parquet", name="a", ledger=moved, **TERMS).close()
        protect(place / "b.parquet", name="b", ledger=moved, **TERMS).close()
        with pytest.raises(LedgerError, match="'a'"):
            protect(place / "copy.parquet", name="copy", ledger=moved, **TERMS)
        moved.verify()


def test_an_account_from_before_gets_its_sketch_when_it_is_opened(
    place: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    without: Callable[..., Any] = lambda *given, **named: {}  # noqa: E731
    monkeypatch.setattr("discreet.tables.declarations.registration._content", without)
    for name in ("a", "copy"):
        protect(place / f"{name}.parquet", name=name, ledger=ledger, **TERMS).close()
    monkeypatch.undo()
    for name in ("a", "copy"):  # nobody compared them then, and nobody stops them now
        protect(place / f"{name}.parquet", name=name, ledger=ledger, **TERMS).close()
    pq.write_table(table(1), place / "third.parquet")
    with pytest.raises(LedgerError, match="'a'"):
        protect(place / "third.parquet", name="third", ledger=ledger, **TERMS)
    ledger.verify()


def test_the_same_people_by_random_numbers_are_known_without_their_rows(
    place: Path, ledger: Ledger
) -> None:
    dice = np.random.default_rng(8)
    people = dice.choice(10**12, 400, replace=False)
    for name, expected in (("pay", None), ("visits", "'pay'")):
        about = pa.table({"person": people, name: dice.random(400)})
        if expected is None:
            protect(about, name=name, ledger=ledger, **TERMS).close()
        else:
            with pytest.raises(LedgerError, match=expected):
                protect(about, name=name, ledger=ledger, **TERMS)


_RACE = """
import sys
from discreet import Guarantee, protect
from discreet.errors import LedgerError
name = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
try:
    protect(f"{name}.parquet", name=name, unit="person", rows=1, ledger="budget.db",
            guarantee=Guarantee(epsilon=3, delta=1e-6)).close()
    print("won")
except LedgerError as refusal:
    print("lost" if "Data about the same people" in str(refusal) else refusal)
"""


@pytest.mark.lengthy
def test_of_two_who_protect_copies_at_once_one_wins(place: Path) -> None:
    Ledger.open(place / "budget.db").close()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACE, name], cwd=place, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for name in ("a", "copy")
    ]  # fmt: skip
    for one in racers:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in racers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = sorted(one.communicate()[0].strip() for one in racers)
    assert said == ["lost", "won"]
    with Ledger.open(place / "budget.db") as ledger:
        assert len(list(ledger)) == 1
        ledger.verify()
