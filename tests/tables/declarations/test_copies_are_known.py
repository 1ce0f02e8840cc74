"""A copy of protected data is no new population, whatever became of the file; other data is."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet import Guarantee, Ledger, Unit, protect
from discreet.errors import LedgerError

N = 1500
Frame = pd.DataFrame


def people(seed: int, n: int = N, *, first: int = 0) -> Frame:
    """People with numbers counted through, as many tables have them; other seeds, other people."""
    dice = np.random.default_rng(seed)
    pay = np.round(dice.lognormal(10, 0.5, n), 2)
    return pd.DataFrame(
        {
            "person": np.arange(first, first + n),
            "age": dice.integers(0, 90, n),
            "sex": dice.choice(["f", "m"], n),
            "pay": np.where(dice.random(n) < 0.1, np.nan, pay),
            "born": pd.Timestamp("1930-01-01") + pd.to_timedelta(dice.integers(0, 30000, n), "D"),
            "town": dice.choice([f"town {i}" for i in range(40)], n),
        }
    )


def account(
    ledger: Any, source: object, name: str, unit: Unit | str = "person", **more: Any
) -> None:
    protect(
        source, name=name, unit=unit, rows=1, ledger=ledger,
        guarantee=Guarantee(epsilon=3, delta=1e-6), **more,
    ).close()  # fmt: skip


def is_refused(place: Path, first: object, second: object, **more: Any) -> bool:
    """Protect two tables in one ledger, and say whether the second was taken for the first."""
    with Ledger.open(place / "budget.db") as ledger:
        account(ledger, first, "first", **({"unit": more.pop("units")} if "units" in more else {}))
        said = ""
        try:
            account(ledger, second, "second", **more)
        except LedgerError as refusal:
            said = str(refusal)
        ledger.verify()
        assert len(list(ledger)) == (1 if said else 2)
        assert said == "" or "this data is that of account 'first'" in said
        return bool(said)


def parquet(frame: Frame, place: Path) -> Path:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), place)
    return place


def same_file(make: Callable[[Path, Path], object], name: str) -> Callable[[Path], Path]:
    def made(place: Path) -> Path:
        make(place / "people.parquet", place / name)
        return place / name

    return made


def rewritten(change: Callable[[Frame], object]) -> Callable[[Path], object]:
    def made(place: Path) -> object:
        found = change(pd.read_parquet(place / "people.parquet"))
        return parquet(found, place / "new.parquet") if isinstance(found, pd.DataFrame) else found

    return made


def as_csv(place: Path) -> Path:
    pd.read_parquet(place / "people.parquet").to_csv(place / "new.csv", index=False)
    return place / "new.csv"


def as_arrow_csv(place: Path) -> Path:
    pyarrow.csv.write_csv(pq.read_table(place / "people.parquet"), place / "new.csv")
    return place / "new.csv"


def as_database(place: Path) -> str:
    with closing(duckdb.connect(place / "new.duckdb")) as made:
        made.execute("CREATE TABLE t AS FROM read_parquet(?)", [str(place / "people.parquet")])
    return f"{place / 'new.duckdb'}::t"


def texts(frame: Frame) -> Frame:
    return (
        frame.astype(object).where(frame.notna(), None).map(lambda x: None if x is None else str(x))
    )


COPIES: dict[str, Callable[[Path], object]] = {
    "a copy": same_file(shutil.copy, "new.parquet"),
    "moved": same_file(shutil.move, "new.parquet"),
    "hard link": same_file(os.link, "new.parquet"),
    "symbolic link": same_file(lambda old, new: os.symlink(old, new), "new.parquet"),
    "CSV by pandas": as_csv,
    "CSV by Arrow": as_arrow_csv,
    "DuckDB": as_database,
    "Arrow": lambda place: pq.read_table(place / "people.parquet"),
    "pandas": lambda place: pd.read_parquet(place / "people.parquet"),
    "Polars": lambda place: pl.read_parquet(place / "people.parquet"),
    "columns in another order": rewritten(lambda f: f[f.columns[::-1]]),
    "rows in another order": rewritten(lambda f: f.sample(frac=1, random_state=1)),
    "a third less rows": rewritten(lambda f: f.sample(frac=0.7, random_state=1)),
    "a third more rows": rewritten(lambda f: pd.concat([f, people(7, N // 3, first=N)])),
    "rows gone and rows new": rewritten(
        lambda f: pd.concat([f.iloc[N // 4 :], people(7, N // 3, first=N)])
    ),
    "a tenth of the rows": rewritten(lambda f: f.sample(frac=0.1, random_state=1)),
    "a column less": rewritten(lambda f: f.drop(columns="pay")),
    "two columns": rewritten(lambda f: f[["person", "age"]]),
    "two columns, one of them of two values": rewritten(lambda f: f[["person", "sex"]]),
    "new columns": rewritten(lambda f: f.assign(x=np.random.default_rng(3).random(len(f)))),
    "one old column and many new ones": rewritten(
        lambda f: f[["person", "age"]].assign(**{f"x{i}": people(i)["age"] for i in range(9)})
    ),
    "other names": rewritten(lambda f: f.rename(columns=lambda c: c if c == "person" else c * 2)),
    "numbers as floats": rewritten(lambda f: f.astype({"person": float, "age": float})),
    "numbers as narrow ones": rewritten(lambda f: f.astype({"person": "int16", "age": "uint8"})),
    "all as texts": rewritten(texts),
    "moments as dates": rewritten(lambda f: f.assign(born=f["born"].dt.date)),
    "no value as an empty text": rewritten(lambda f: texts(f).fillna("")),
    "other numbers of people": rewritten(
        lambda f: f.assign(person=np.random.default_rng(5).permutation(len(f)) + 10**6)
    ),
    "all at once": rewritten(
        lambda f: texts(f.sample(frac=0.8, random_state=2)[["town", "pay", "person"]]).rename(
            columns={"pay": "salary"}
        )
    ),
}  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_refused_a_budget_of_its_own(tmp_path: Path, how: str) -> None:
    original = parquet(people(1), tmp_path / "people.parquet")
    with Ledger.open(tmp_path / "budget.db") as ledger:
        account(ledger, original, "first")
        copy = COPIES[how](tmp_path)
        before = ledger.size
        with pytest.raises(LedgerError, match="account 'first'") as refused:
            account(ledger, copy, "second")
        assert "override=" in str(refused.value)
        assert ledger.size == before
        assert [one.name for one in ledger] == ["first"]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("columns", "unit"),
    [
        (["age", "sex", "pay", "born", "town"], Unit.record()),
        (["pay", "sex"], Unit.record()),
        (["pay"], Unit.record()),
        (["person", "age", "sex"], Unit.record()),
        (["pay", "born"], "pay"),
    ],
)
def test_neither_does_another_unit_make_it_other_people(
    tmp_path: Path, columns: list[str], unit: Unit | str
) -> None:
    first = people(1)
    assert is_refused(tmp_path, first, first[columns].iloc[100:], unit=unit)


@pytest.mark.lengthy
def test_many_rows_of_each_are_known_when_some_are_gone_and_others_new(tmp_path: Path) -> None:
    dice = np.random.default_rng(4)

    def visits(n: int) -> Frame:
        return pd.DataFrame(
            {
                "person": dice.integers(0, 300, n),
                "day": dice.integers(0, 300, n),
                "cost": np.round(dice.exponential(50, n), 1),
            }
        )

    first = visits(3000)
    later = pd.concat([first.sample(frac=0.8, random_state=1), visits(500)])
    assert is_refused(tmp_path, first, later)


# Nothing of these is the same by anything but chance. With FALSE_ALARM = 1e-9 for any pair of
# tables a correct program fails one of them once in ten million runs; where values may be the same
# by chance themselves (a column of few values, counted-through numbers) they prove nothing alone.
OTHERS: dict[str, tuple[Callable[[], Frame], Callable[[], Frame]]] = {
    "the same columns": (lambda: people(1), lambda: people(2)),
    "of another size": (lambda: people(1), lambda: people(2, 300)),
    "numbers further on": (lambda: people(1), lambda: people(2, first=N // 2)),
    "few values": (
        lambda: people(1)[["person", "age", "sex"]],
        lambda: people(2)[["person", "age", "sex"]],
    ),
    "two values": (lambda: people(1)[["person", "sex"]], lambda: people(2)[["person", "sex"]]),
    "nothing but numbers": (lambda: people(1)[["person"]], lambda: people(2, N + 9)[["person"]]),
    "texts counted through": (
        lambda: people(1).assign(person=[f"P{i:06d}" for i in range(N)]),
        lambda: people(2).assign(person=[f"P{i:06d}" for i in range(N)]),
    ),
    "a value for all": (
        lambda: people(1)[["person"]].assign(country="de", year=2026),
        lambda: people(2, N + 9)[["person"]].assign(country="de", year=2026),
    ),
    "groups counted through": (
        lambda: people(1).assign(household=np.arange(N) // 3, since=np.arange(N)),
        lambda: people(2).assign(household=np.arange(N) // 3, since=np.arange(N)),
    ),
    "towns and their regions": (
        lambda: people(1).assign(region=lambda f: f["town"].str[-1]),
        lambda: people(2).assign(region=lambda f: f["town"].str[-1]),
    ),
    "three rows": (lambda: people(1, 3), lambda: people(2, 3)),
    "thirty rows": (lambda: people(1, 30), lambda: people(2, 30)),
    "empty": (lambda: people(1, 0), lambda: people(2, 0)),
    "empty, and not": (lambda: people(1, 0), lambda: people(2)),
    "a tenth in common": (
        lambda: people(1),
        lambda: pd.concat([people(1).iloc[: N // 10], people(2, N - N // 10, first=N // 10)]),
    ),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("unit", ["person", Unit.record()], ids=str)
def test_other_people_get_a_budget_of_their_own(tmp_path: Path, how: str, unit: Unit | str) -> None:
    first, second = (make() for make in OTHERS[how])
    if first.equals(second):
        second = parquet(second, tmp_path / "second.parquet")
    assert not is_refused(tmp_path, first, second, units=unit, unit=unit)
