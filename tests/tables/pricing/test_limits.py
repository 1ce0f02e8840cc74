"""Limits on units: as declared, and never more than there are public groups."""

from pathlib import Path

import pytest

from discreet import Guarantee
from discreet.tables import Protected, protect


def opened(tmp_path: Path, *, groups: int) -> Protected:
    """Protect 50 people, each in every week there is and in some that are not listed."""
    rows = [(user, week) for user in range(50) for week in range(-6, 6)]
    return protect(
        {"user_id": [user for user, _ in rows], "week": [week for _, week in rows]},
        name="visits", unit="user_id", groups=groups, rows=20,
        columns={"week": {"keys": list(range(6))}},
        guarantee=Guarantee(epsilon=2000), ledger=tmp_path / "budget.db",
    )  # fmt: skip


@pytest.mark.parametrize(("groups", "counted"), [(40, 6), (6, 6), (3, 3)])
def test_a_unit_is_in_no_more_groups_than_are_listed(
    tmp_path: Path, groups: int, counted: int
) -> None:
    question = "SELECT week, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY week"
    with opened(tmp_path, groups=groups) as T:
        quote = T.quote(question, epsilon=1, delta=0)
        answer = T.sql(question, epsilon=1000, delta=0)
    # Laplace noise of this scale: 95% is ln(20) of it, and quotes round up.
    assert quote.expected[0].half_width == pytest.approx(counted * 2.9957, rel=0.02)
    if counted == 6:  # nobody is cut because of weeks that are not asked about
        assert answer["n"] == pytest.approx([50] * 6, abs=0.5)
    else:
        assert answer["n"].sum() < 50 * 6


def test_secret_groups_may_be_as_many_as_declared(tmp_path: Path) -> None:
    question = "SELECT week + 1 AS next, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY next"
    with opened(tmp_path, groups=40) as T:
        quote = T.quote(question, epsilon=1, delta=0.001)
    assert quote.expected[0].half_width > 6 * 2.9957
