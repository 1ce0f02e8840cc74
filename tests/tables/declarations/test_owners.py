"""Tables that have the unit under another name or through a key: from a program and a command."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import did, run

from discreet import protect
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.tables import open_tables
from discreet.tables.rows import UNIT, read_rows

PEOPLE = range(2_000)
TABLES = {
    "people": pa.table({"id": PEOPLE, "age": [20 + i % 60 for i in PEOPLE]}),
    "orders": pa.table({"nr": [i + 5_000 for i in PEOPLE], "customer": PEOPLE}),
    "items": pa.table({"order_nr": [i // 2 + 5_000 for i in range(4_000)], "price": [2.0] * 4_000}),
}
UNITS = {"orders": "customer", "items": "order_nr = orders.nr"}
GUARANTEE = Guarantee(epsilon=1e4, delta=1e-6)
ASKED = "SELECT COUNT(*) AS n FROM people, orders, items WHERE id = customer AND nr = order_nr"
pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.PrivacyWarning")


def test_a_program_says_whose_rows_they_are(tmp_path):
    files = {}
    for name, table in TABLES.items():
        files[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(table, files[name])
    with protect(
        files, name="shop", unit="id", units=UNITS, rows=2, guarantee=GUARANTEE,
        ledger=tmp_path / "budget.db",
    ) as T:  # fmt: skip
        assert abs(T.sql(ASKED, epsilon=100).value - 4_000) < 5
        assert abs(T.sql("SELECT SUM(price) AS s FROM items WHERE price < 9",
                         epsilon=100).value - 8_000) < 400  # fmt: skip
        T.save(tmp_path / "shop.toml")
        numbers = read_rows(T, ["nr"], table="orders").reveal_without_noise()[UNIT]
        assert len(set(numbers)) == 2_000
        with pytest.raises(ParameterError, match="through another table"):
            read_rows(T, ["price"], table="items")
    with open_tables(tmp_path / "shop.toml") as again:
        assert abs(again.sql(ASKED, epsilon=50).value - 4_000) < 5


@pytest.mark.parametrize("said", ["", "a = b", "= orders.nr", "a = .nr", 7])
def test_what_says_no_owner_is_refused(said, tmp_path):
    with pytest.raises(ParameterError, match=r"order_id = orders\.id"):
        protect(TABLES, name="shop", unit="id", units={"orders": said}, guarantee=GUARANTEE,
                ledger=tmp_path / "budget.db")  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_a_table_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="'ordres'"):
        protect(TABLES, name="shop", unit="id", units={"ordres": "customer"}, guarantee=GUARANTEE,
                ledger=tmp_path / "budget.db")  # fmt: skip


def test_a_command_says_whose_rows_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in TABLES.items():
        pq.write_table(table, f"{name}.parquet")
    common = ["protect", *(f"{name}={name}.parquet" for name in TABLES), "--name", "shop",
              "--unit", "id", "--epsilon", "3", "--delta", "1e-6"]  # fmt: skip
    refused = run(*common)
    assert refused.exit_code != 0
    assert not (tmp_path / "shop.toml").exists()
    told = did(*common, "--unit-of", "orders=customer", "--unit-of", "items=order_nr=orders.nr")
    assert "shop.toml" in told
    written = (tmp_path / "shop.toml").read_text(encoding="utf-8")
    assert 'unit = { column = "order_nr", table = "orders", key = "nr" }' in written
    assert "within" in did("quote", "shop", ASKED, "--epsilon", "1")
    wrong = run(*common, "--unit-of", "ordres=customer")
    assert wrong.exit_code != 0
    assert "--unit-of" in wrong.output
