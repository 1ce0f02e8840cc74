"""A rehearsal refuses what protecting refuses, in the same words, and leaves no trace."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError
from discreet.ledger import Ledger
from discreet.tables import open_tables, rehearse_tables

DECLARED = """
name = "{name}"
{more}
unit = "{unit}"
rows = 1
[guarantee]
epsilon = {epsilon}
[tables.{name}]
"""


@pytest.fixture
def log(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        yield ledger


def declared(folder, *, name="people", unit="person", epsilon=1, more=""):
    path = folder / f"{name}.toml"
    path.write_text(DECLARED.format(name=name, unit=unit, epsilon=epsilon, more=more))
    return path


def people(folder, name, *, seed):
    dice = np.random.default_rng(seed)
    table = pa.table({"person": dice.integers(0, 10**12, 500), "age": dice.integers(0, 90, 500)})
    pq.write_table(table, folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def test_what_can_be_protected_is_priced_and_nothing_is_written(tmp_path, log):
    path, source = declared(tmp_path), people(tmp_path, "people", seed=1)
    with rehearse_tables(path, ledger=log, sources={"people": source}) as trial:
        price = trial.quote("SELECT COUNT(*) AS n FROM people", epsilon=0.1).expected
        assert trial.remaining == 1.0
    assert (log.size, list(log)) == (1, [])
    with open_tables(path, ledger=log, sources={"people": source}) as tables:
        assert tables.quote("SELECT COUNT(*) AS n FROM people", epsilon=0.1).expected == price


@pytest.mark.parametrize(
    "case",
    [
        {"name": "copy"},  # by its content, since it lies elsewhere
        {"name": "people", "unit": "age"},  # the account has other terms
        {"name": "people", "epsilon": 2},
        {"name": "again", "more": 'account = "people"', "epsilon": 2},
        {"name": "nobody", "unit": "name"},
    ],
)
def test_it_refuses_what_protecting_refuses(tmp_path, log, case):
    first = people(tmp_path, "people", seed=1)
    with open_tables(declared(tmp_path), ledger=log, sources={"people": first}):
        pass
    copy = people(tmp_path, "copy", seed=1)
    path, size = declared(tmp_path, **case), log.size
    told = []
    for attempt in (rehearse_tables, open_tables):
        with (
            pytest.raises(DiscreetError) as refusal,
            attempt(path, ledger=log, sources={case["name"]: copy}),
        ):
            pass
        told.append((type(refusal.value), str(refusal.value)))
        assert log.size == size
    assert told[0] == told[1]


def test_a_table_may_share_the_account_of_its_people(tmp_path, log):
    first = people(tmp_path, "people", seed=1)
    with open_tables(declared(tmp_path), ledger=log, sources={"people": first}):
        pass
    copy = people(tmp_path, "copy", seed=1)
    path, size = declared(tmp_path, name="again", more='account = "people"'), log.size
    with rehearse_tables(path, ledger=log, sources={"again": copy}):
        assert log.size == size
