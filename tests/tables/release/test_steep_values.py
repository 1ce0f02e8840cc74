"""Quotients and the like: a few rows can be most of a mean, and no noisy profile shows them."""

import numpy as np
import pyarrow as pa
import pytest

import discreet

PEOPLE = 5_000


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    rng = np.random.default_rng(5)
    distance = np.round(rng.lognormal(0.7, 0.8, PEOPLE), 2) + 0.01
    distance[:5] = 1e-6  # five trips are most of the mean of fare / distance
    rows = {"id": np.arange(PEOPLE), "fare": 3 + 2.5 * distance, "distance": distance}
    with discreet.protect(
        pa.table(rows),
        name="trips",
        unit="id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=100, delta=1e-6),
        ledger=tmp_path_factory.mktemp("steep") / "budget.db",
        columns={"distance": {"bounds": (0, 100)}},
    ) as table:
        yield table


def ask(trips, sql):
    return trips.sql(sql if "FROM" in sql else f"SELECT {sql} AS a FROM trips", epsilon=1)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "sql",
    [
        "AVG(fare / distance)",
        "SUM(fare / distance)",
        "STDDEV(1 - fare / distance)",
        "AVG(EXP(fare))",
        "AVG(POWER(fare, -2))",
        "AVG(CASE WHEN fare > 4 THEN fare / distance ELSE 1 END)",
        "SELECT AVG(r) AS a FROM (SELECT id, fare / distance AS r FROM trips) AS s",
        "SELECT AVG(r) AS a FROM (SELECT MAX(fare / distance) AS r FROM trips GROUP BY id) AS s",
    ],
)
def test_what_is_cut_of_steep_values_is_said_to_be_unknown(trips, sql):
    answer = ask(trips, sql)
    assert not answer.reliable["a"][0]
    if np.isfinite(answer["a"][0]):  # else too few people were found, which is said as well
        assert "CLAMP" in str(answer)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "sql",
    [
        "AVG(fare / 10)",
        "SUM(fare) / SUM(distance)",
        "AVG(CLAMP(fare / distance, 0, 30))",
        "AVG(LEAST(fare, 30) * 2)",
        "MEDIAN(fare / distance)",
        "AVG(SIGN(fare / distance))",
        "AVG(POWER(LEAST(fare, 30), 2))",
    ],
)
def test_others_are_answered_as_before(trips, sql):
    answer = ask(trips, sql)
    assert answer.reliable["a"][0]
    assert "as large as they like" not in str(answer)
