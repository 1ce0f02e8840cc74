"""Groups that nobody listed are found by their people, whatever is asked about them."""

import numpy as np
import pyarrow as pa
import pytest

from discreet.privacy import Guarantee
from discreet.tables import Groups, Norm, protect

PEOPLE = [1, 2, 60, 80, 100, 150, 200, 300]  # of group 0, 1, ...
QUESTIONS = {
    "rows": "SELECT g, COUNT(*) FROM t GROUP BY g",
    "values": "SELECT g, COUNT(x) FROM t GROUP BY g",
    "mean": "SELECT g, AVG(x) FROM t GROUP BY g",
    "both": "SELECT g, COUNT(*), AVG(x) FROM t GROUP BY g",
    "sum": "SELECT g, SUM(x) FROM t GROUP BY g",
    "people": "SELECT g, COUNT(DISTINCT person) FROM t GROUP BY g",
}


@pytest.fixture
def table(tmp_path):
    """Return people of one group each, with 40 rows there."""
    group = np.repeat(np.arange(len(PEOPLE)), PEOPLE)
    person = np.repeat(np.arange(len(group)), 40)
    rows = pa.table({"person": person, "g": np.repeat(group, 40), "x": person % 7.0})
    return protect(
        rows, name="t", unit="person", guarantee=Guarantee(epsilon=100, delta=1e-3),
        ledger=tmp_path / "ledger.db", rows=50, groups=1, columns={"x": {"bounds": (0, 7)}},
    )  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("bounding", [None, Groups(groups=1, rows=50)])
def test_whatever_is_asked_shows_the_same_groups(table, bounding):
    """From 1 and 2 people to 60 is far enough for all, at a chance of error below 1e-6."""
    for question in QUESTIONS.values():
        answer = table.sql(question, epsilon=2, delta=1e-9, bounding=bounding)
        assert sorted(answer.to_arrow()["g"].to_pylist()) == [2, 3, 4, 5, 6, 7], question


@pytest.mark.lengthy
def test_groups_have_one_price_and_one_threshold(table):
    """What is asked beside the number of people is one part more, whichever it is."""
    facts = {
        name: table.sql(question, epsilon=2, delta=1e-9).facts["keys"]["threshold"]
        for name, question in QUESTIONS.items()
    }
    assert facts["rows"] == facts["values"] == facts["mean"] == facts["both"] == facts["sum"]
    assert facts["people"] < facts["rows"] < 2 * facts["people"]


@pytest.mark.parametrize(
    ("bounding", "most"),
    [
        (Groups(groups=3, rows=50), 3),
        (Norm(limit=5.5, order=1), 5),
        (Norm(limit=2.5, order=2), 6),
        (Norm(limit=0.5, order=2), 1),
    ],
)
def test_who_asks_for_a_bound_on_rows_has_said_in_how_many_groups_a_unit_counts(
    tmp_path, bounding, most
):
    """So nothing is paid for finding that out, and tables are not read for it."""
    rows = pa.table({"person": np.arange(9000) % 900, "g": np.arange(9000) // 900})
    with protect(
        rows, name="t", unit="person", guarantee=Guarantee(epsilon=100, delta=1e-3),
        ledger=tmp_path / "ledger.db",
    ) as table:  # fmt: skip
        answer = table.sql(QUESTIONS["rows"], epsilon=2, delta=1e-9, bounding=bounding)
        assert answer.facts["limits"] == {}
        people = "SELECT g, COUNT(DISTINCT person) FROM t GROUP BY g"
        asked = table.quote(people, epsilon=1, delta=1e-9, bounding=bounding).expected[0]
    with protect(
        rows, name="t", unit="person", guarantee=Guarantee(epsilon=100, delta=1e-3),
        ledger=tmp_path / "other.db", groups=most,
    ) as table:  # fmt: skip
        declared = table.quote(people, epsilon=1, delta=1e-9, bounding=bounding).expected[0]
    assert asked == declared


def test_people_of_one_row_are_counted_once_for_all(tmp_path):
    """Where a count of rows is one of people, nothing is paid for selecting keys besides."""
    rows = pa.table({"person": range(300), "g": ["a"] * 300})
    one = protect(
        rows, name="t", unit="person", guarantee=Guarantee(epsilon=100, delta=1e-3),
        ledger=tmp_path / "ledger.db", rows=1,
    )  # fmt: skip
    counts = ("COUNT(*)", "COUNT(DISTINCT person)")
    errors = [
        one.quote(f"SELECT g, {count} FROM t GROUP BY g", epsilon=1).expected[0].half_width
        for count in counts
    ]
    assert errors[0] == errors[1]
