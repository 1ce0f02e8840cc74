"""Salaries and visits: reproducible, plausible, skewed."""

import hashlib
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.datasets import VisitEvent, clusters, salaries, visits
from discreet.errors import ParameterError


def digest(table):
    text = "\n".join(f"{name}:{','.join(map(str, table[name].tolist()))}" for name in table)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_same_payroll_on_every_platform():
    assert digest(salaries()) == "e7dddc7b1b41fec5"


def test_a_hundred_people_with_departments_years_and_salaries():
    payroll = salaries()
    assert list(payroll) == ["employee_id", "department", "years", "salary"]
    assert {len(column) for column in payroll.values()} == {100}
    assert payroll["salary"].min() > 15_000
    assert payroll["salary"].max() < 400_000
    assert (payroll["salary"] % 100 == 0).all()
    assert len(set(payroll["department"])) == 5


def test_pay_rises_with_years():
    payroll = salaries(20_000, seed=3)
    for department in set(payroll["department"]):
        here = payroll["department"] == department
        assert np.corrcoef(payroll["years"][here], payroll["salary"][here])[0, 1] > 0.4


def test_the_same_visits_on_every_platform():
    assert digest(visits(2_000, users=100)) == "ec5449efe172593f"


@settings(max_examples=30)
@given(n=st.integers(1, 300), users=st.integers(1, 300), seed=st.integers(0, 2**32))
def test_visits_of_any_size(n, users, seed):
    log = visits(n, users=users, seed=seed)
    assert {len(column) for column in log.values()} == {n}
    assert ((log["user_id"] >= 0) & (log["user_id"] < users)).all()
    assert (np.diff(log["time"]) >= np.timedelta64(0, "s")).all()
    assert log["time"][0] >= np.datetime64("2025-01-01")
    assert log["time"][-1] < np.datetime64("2026-01-01")
    assert (log["minutes"] > 0).all()


def test_a_few_users_make_most_visits():
    log = visits(50_000, users=2_000)
    rows = np.sort(np.bincount(log["user_id"], minlength=2_000))[::-1]
    assert rows[:20].sum() > 0.15 * rows.sum()
    assert rows[0] > 10 * np.median(rows)


def test_nights_are_quiet_and_sundays_too():
    log = visits(50_000)
    hour = log["time"].astype("datetime64[h]").astype(np.int64) % 24
    assert (hour < 5).mean() < 0.05
    weekday = (log["time"].astype("datetime64[D]").astype(np.int64) + 3) % 7
    assert (weekday == 6).mean() < 0.5 * (weekday == 0).mean()


def test_users_have_favourite_places():
    log = visits(50_000, users=50)
    overall = (log["place"] == "station").mean()
    shares = [(log["place"][log["user_id"] == u] == "station").mean() for u in range(50)]
    assert max(shares) > 1.4 * overall


def in_time(log, place, first, last):
    day = log["time"].astype("datetime64[D]")
    return (log["place"] == place) & (day >= np.datetime64(first)) & (day <= np.datetime64(last))


def test_events_move_visits_in_their_days_and_nothing_else():
    first, last = date(2025, 3, 3), date(2025, 3, 9)
    closed = VisitEvent(place="museum", first=first, last=last, percent=-100)
    match = VisitEvent(place="stadium", first=first, last=last, percent=50)
    before = visits(20_000, users=500)
    after = visits(20_000, users=500, events=[closed, match])
    for name in ("user_id", "time", "minutes"):
        assert (before[name] == after[name]).all()
    assert in_time(before, "museum", first, last).any()
    assert not in_time(after, "museum", first, last).any()
    that_week = in_time(before, "stadium", first, last) | (before["place"] != after["place"])
    assert set(after["time"][that_week].astype("datetime64[D]")) <= set(
        np.arange(first, date(2025, 3, 10), dtype="datetime64[D]")
    )
    # About 380 visits, each at the stadium with chance 0.52: below 80 for a chance under 1e-20.
    assert in_time(after, "stadium", first, last).sum() > 80
    assert digest(visits(2_000, users=100, events=[closed, match])) == "d94250c43c097cde"


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"place": "moon"}, "place must be one of"), ({"last": date(2025, 1, 1)}, "no day before"),
     ({"percent": 101}, "between -100 and 100")],
)  # fmt: skip
def test_odd_events_are_refused(changes, words):
    fields = {"place": "museum", "first": date(2025, 3, 3), "last": date(2025, 3, 9), "percent": 5}
    with pytest.raises(ParameterError, match=words):
        VisitEvent(**{**fields, **changes})


@pytest.mark.parametrize("bad", [0, -1, 2.5, "many"])
def test_bad_numbers_are_refused_by_name(bad):
    with pytest.raises(ParameterError, match=r"^n must be"):
        salaries(bad)
    with pytest.raises(ParameterError, match=r"^n must be"):
        visits(bad)
    with pytest.raises(ParameterError, match=r"^users must be"):
        visits(10, users=bad)


def test_the_same_points_on_every_platform():
    assert digest(clusters()) == "7dfa6e81a729d449"


def test_a_line_has_about_19_of_20_points_on_the_right_side():
    points = clusters(20_000, seed=5)
    side = 0.41 * points["x"] + 0.2 * points["y"] > 0
    assert 0.94 < (side == points["group"]).mean() < 0.96
