"""Types of columns that have none are guessed once: no later row can change them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet import Guarantee, Ledger, open_tables, protect
from discreet.errors import LedgerError
from discreet.tables.declarations import registration
from discreet.testing import temporary_ledger

GUARANTEE = Guarantee(epsilon=3, delta=1e-6)
TERMS: dict[str, Any] = {"unit": "person", "rows": 1, "guarantee": GUARANTEE}
BOUNDS = {"age": {"bounds": (0, 100)}}
TOTAL = "SELECT SUM(age) AS total FROM people"
BORDER = [*range(9), "nine"]  # nine tenths are numbers, so that one row decides


def csv(place: Path, ages: list[Any]) -> Path:
    path = place / "people.csv"
    path.write_text("person,age\n" + "".join(f"{i},{age}\n" for i, age in enumerate(ages)))
    return path


def frame(place: Path, ages: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"person": range(len(ages)), "age": pd.Series(ages, dtype=object)})


def kind(protected: Any) -> str:
    return str(protected.tables["people"]["age"])


@pytest.mark.lengthy
@pytest.mark.parametrize("made", [csv, frame])
def test_one_row_more_changes_no_type(made: Callable[..., Any], tmp_path: Path) -> None:
    terms = {**TERMS, "name": "people", "ledger": tmp_path / "budget.db", "columns": BOUNDS}
    seen = []
    for ages in (BORDER, [*BORDER, "ten"], ["x"] * 12):
        with protect(made(tmp_path, ages), **terms) as T:
            seen.append(kind(T))
            T.sql(TOTAL, epsilon=0.1)
    assert seen == ["BIGINT"] * 3
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.verify()


@pytest.mark.lengthy
def test_what_is_declared_goes_before_and_is_kept(tmp_path: Path) -> None:
    terms = {**TERMS, "name": "people", "ledger": tmp_path / "budget.db"}
    path = csv(tmp_path, BORDER)
    with protect(path, **terms) as T:
        assert kind(T) == "BIGINT"
        T.save(tmp_path / "people.toml")
    with protect(path, **terms, columns={"AGE": {"type": "DOUBLE"}}) as T:
        assert kind(T) == "DOUBLE"
    with protect(path, **terms) as T:
        assert kind(T) == "DOUBLE"
    with open_tables(tmp_path / "people.toml") as T:
        assert kind(T) == "BIGINT"
    with protect(path, **terms) as T:
        assert kind(T) == "BIGINT"


@pytest.mark.lengthy
def test_new_columns_are_kept_from_then_on_also_by_a_question(tmp_path: Path) -> None:
    path, terms = tmp_path / "people.csv", {**TERMS, "name": "people"}
    with Ledger.open(tmp_path / "budget.db") as ledger:
        path.write_text("person\n1\n2\n")
        with protect(path, ledger=ledger, **terms) as T:
            csv(tmp_path, BORDER)
            assert T.refresh()
            assert kind(T) == "BIGINT"
        with protect(csv(tmp_path, ["x"] * 9), ledger=ledger, **terms) as T:
            assert kind(T) == "BIGINT"
            size = ledger.size
        with protect(path, ledger=ledger, **terms):
            assert ledger.size == size  # nothing is registered twice


@pytest.mark.lengthy
def test_a_ledger_without_types_keeps_them_from_the_next_time_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = csv(tmp_path, BORDER)
    known = registration._registration
    with Ledger.open(tmp_path / "budget.db") as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(registration, "_registration", lambda *of: known(*of) | {"types": {}})
            protect(path, name="people", ledger=ledger, **TERMS).close()
        assert not ledger["people"].registered()["people"].types
        protect(path, name="people", ledger=ledger, **TERMS).close()
        with protect(csv(tmp_path, ["x"] * 9), name="people", ledger=ledger, **TERMS) as T:
            assert kind(T) == "BIGINT"


@pytest.mark.lengthy
def test_an_export_keeps_types_and_names_no_column(tmp_path: Path) -> None:
    with protect(csv(tmp_path, BORDER), name="people", ledger=tmp_path / "budget.db", **TERMS) as T:
        log = json.dumps(T.account.history())
        assert "BIGINT" in log
        assert "age" not in log
        types, vkey = T.account.registered()["people"].types, T.account.ledger.vkey
        assert sorted(types.values()) == ["BIGINT", "BIGINT"]
        T.account.ledger.export(tmp_path / "log.jsonl")
    with Ledger.imported(tmp_path / "log.jsonl", tmp_path / "new.db", vkey=vkey) as moved:
        assert moved["people"].registered()["people"].types == types


@pytest.mark.lengthy
def test_types_are_kept_between_processes(tmp_path: Path) -> None:
    path = csv(tmp_path, BORDER)
    program = (
        "from discreet import Guarantee, protect\n"
        f"protect({str(path)!r}, name='people', unit='person', rows=1,\n"
        "        guarantee=Guarantee(epsilon=3, delta=1e-6),\n"
        f"        ledger={str(tmp_path / 'budget.db')!r}).close()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    path = csv(tmp_path, [*BORDER, "ten"])
    with protect(path, name="people", ledger=tmp_path / "budget.db", **TERMS) as T:
        assert kind(T) == "BIGINT"


@pytest.mark.parametrize("types", [{"age": "BIGINT"}, {"0" * 64: 3}, {"0" * 64: "a\nb"}])
def test_the_log_takes_no_names_of_columns_and_nothing_but_types(types: Any) -> None:
    with temporary_ledger() as ledger:
        account = ledger.create("a", unit="person", neighbours="add_remove", guarantee=GUARANTEE)
        with pytest.raises(LedgerError):
            account.register("a", version="1", identities=["/a"], types=types)
        assert account.sources() == {}
