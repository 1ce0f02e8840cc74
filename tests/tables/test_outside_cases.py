"""Questions that none of us thought of: what each gives, and that the answer is SQL's."""

from collections import Counter
from pathlib import Path

import dashboard_tables as dashboards
import duckdb
import outside_tables as outside
import pytest

from discreet import protect
from discreet.errors import Refused
from discreet.privacy import Guarantee

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.PrivacyWarning")

CASES = list(outside.outside_cases())
ENOUGH = 1e6  # epsilon at which noise is far below what is compared
TINY = 1e-12  # delta of which hundreds fit
SURE = 1 - 1e-9  # an extreme may lie beyond the data with the rest of it


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Return protected tables and a database with the same rows, by source."""
    folder = tmp_path_factory.mktemp("outside")
    guarantee = Guarantee(epsilon=1e10, delta=1e-3)
    with duckdb.connect() as plain, duckdb.connect() as tpch:
        people_tables = outside.made(plain, outside.PEOPLE | dashboards.TABLES)
        people_public = outside.made(plain, outside.PUBLIC | dashboards.PUBLIC)
        tpch_tables = outside.made(tpch, outside.TPCH)
        tpch_public = outside.made(tpch, outside.TPCH_PUBLIC)
        with (
            protect(
                people_tables, name="people", unit="person", rows=10, public=people_public,
                columns=outside.COLUMNS | dashboards.COLUMNS, guarantee=guarantee,
                ledger=folder / "people.db",
            ) as people,
            protect(
                tpch_tables, name="customers", unit="custkey", rows=15, public=tpch_public,
                columns=outside.TPCH_COLUMNS, guarantee=guarantee, ledger=folder / "tpch.db",
            ) as customers,
        ):  # fmt: skip
            yield lambda case: (customers, tpch) if case.source == "tpch" else (people, plain)


def named(case):
    return case.name


def test_the_list_is_long_and_at_most_a_tenth_of_it_is_refused():
    counts = Counter(case.outcome for case in CASES)
    assert set(counts) == set(outside.OUTCOMES)
    aggregates = len(CASES) - counts["lists"]
    assert aggregates >= 150
    assert counts["refused"] <= aggregates / 10
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.source == "tpch" for case in CASES) == 22
    for case in CASES:
        assert (case.outcome == "rewritten") == (case.rewrite is not None), case.name
        assert (case.outcome == "refused") == (case.reason is not None), case.name


def test_the_docs_tell_the_tally():
    counts = Counter(case.outcome for case in CASES)
    told = " ".join((Path(__file__).parents[2] / "docs/explanation/tables.md").read_text().split())
    assert f"Of {len(CASES)} questions that others wrote" in told
    assert f"{counts['lists']} ask for single rows" in told
    assert f"Of the other {len(CASES) - counts['lists']}, {counts['answered']} are answered" in told
    assert f"{counts['rewritten']} after a rewrite that the refusal names" in told
    assert f"and {counts['refused']} are refused" in told


@pytest.mark.lengthy
@pytest.mark.parametrize("case", CASES, ids=named)
def test_outside_question(case, opened):
    tables, plain = opened(case)
    asked = case.sql
    if case.is_empty:
        assert (
            len(tables.sql(asked, epsilon=1, delta=TINY)) == 0
        )  # no group is large enough to be shown
        return
    if case.outcome != "answered":
        with pytest.raises(Refused) as refusal:
            tables.quote(asked, epsilon=1)
        if case.code is not None:
            assert refusal.value.code == case.code
        if case.rewrite is None:
            return
        asked = case.rewrite
    answer = tables.sql(asked, epsilon=ENOUGH, delta=TINY, confidence=SURE)
    truth = plain.sql(case.check or asked).to_arrow_table()
    shown = outside.plain_rows([answer.values[name].tolist() for name in answer.columns])
    meant = outside.plain_rows([column.to_pylist() for column in truth.columns])
    assert len(shown) == len(meant)
    assert outside.unmatched(shown, meant, case.tolerance) == [], shown
    assert meant, "an empty answer shows nothing"
