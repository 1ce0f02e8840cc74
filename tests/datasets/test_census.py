"""The census is the same everywhere, hangs together, and looks like people."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.datasets import census, census_places
from discreet.datasets._census import EDUCATION, EMPLOYMENT, REGIONS, ROLES, SEXES
from discreet.errors import ParameterError


def digest(table):
    """A fingerprint that does not depend on byte order or on the width of strings."""
    text = "\n".join(f"{name}:{','.join(map(str, table[name].tolist()))}" for name in table)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def people():
    return census(40_000, seed=7)


def test_the_same_people_on_every_platform():
    assert digest(census(2_000, seed=0)) == "40cdba5861a9d2cb"


@settings(max_examples=30)
@given(n=st.integers(1, 300), seed=st.integers(0, 2**64))
def test_any_size_any_seed(n, seed):
    table = census(n, seed=seed)
    assert {len(column) for column in table.values()} == {n}
    assert digest(table) == digest(census(n, seed=seed))
    assert table["person_id"].tolist() == list(range(n))
    assert set(table["region"]) <= set(REGIONS)
    assert set(table["role"]) <= set(ROLES)
    assert set(table["sex"]) <= set(SEXES)
    assert set(table["education"]) <= set(EDUCATION)
    assert set(table["employment"]) <= set(EMPLOYMENT)
    assert (table["age"] >= 0).all()
    assert (table["age"] < 100).all()
    assert (table["income"] >= 0).all()
    assert ((table["hours"] >= 0) & (table["hours"] <= 70)).all()


def test_other_seeds_give_other_people():
    assert digest(census(500, seed=1)) != digest(census(500, seed=2))


def test_columns_are_plain_arrays(people):
    for name in ("person_id", "household_id", "age", "hours", "income"):
        assert people[name].dtype == np.int64
    for name in ("region", "role", "sex", "education", "employment"):
        assert people[name].dtype.kind == "U"


def test_households_share_a_region_and_have_one_head(people):
    home = people["household_id"]
    assert len(set(zip(home.tolist(), people["region"].tolist(), strict=True))) == home.max() + 1
    heads = np.bincount(home, weights=people["role"] == "head")
    assert (heads == 1).all()


def test_children_live_with_someone_older_and_earn_nothing(people):
    head_age = people["age"][people["role"] == "head"][people["household_id"]]
    child = people["role"] == "child"
    assert (people["age"][child] <= head_age[child] - 17).all()
    young = people["age"] < 15
    assert (people["income"][young] == 0).all()
    assert (people["employment"][young] == "child").all()
    assert not np.isin(people["education"][young], ["bachelor", "postgraduate"]).any()


def test_only_workers_have_hours(people):
    working = np.isin(people["employment"], ["employed", "self-employed"])
    assert (people["hours"][~working] == 0).all()
    assert (people["hours"][working] > 0).all()


def test_wages_rise_with_schooling(people):
    working = people["hours"] > 30
    medians = [
        np.median(people["income"][working & (people["education"] == level)])
        for level in EDUCATION[1:]
    ]
    assert medians == sorted(medians)
    assert medians[-1] > 2 * medians[0]


def test_wages_rise_with_age_and_have_a_long_tail(people):
    working = (people["hours"] > 30) & (people["education"] == "secondary")
    older = working & (people["age"] > 40) & (people["age"] < 60)
    assert np.median(people["income"][older]) > 1.15 * np.median(
        people["income"][working & (people["age"] < 30)]
    )
    wages = people["income"][people["hours"] > 0]
    assert wages.mean() > 1.1 * np.median(wages)


def test_partners_resemble_each_other(people):
    heads = people["role"] == "head"
    level = np.array([EDUCATION.index(e) for e in people["education"]])
    partner = (people["role"] == "partner") & (people["age"] > 25)
    theirs = level[heads][people["household_id"]]
    assert np.corrcoef(level[partner], theirs[partner])[0, 1] > 0.2


def test_places_are_one_column_more_and_change_nothing_else():
    table, atlas = census(2_000, seed=0, places=30), census_places(30)
    assert list(table)[-1] == "place"
    assert digest({name: table[name] for name in list(table)[:-1]}) == "40cdba5861a9d2cb"
    assert digest(table) == "ab7d0b5cb065a003"
    region = dict(zip(atlas["place"].tolist(), atlas["region"].tolist(), strict=True))
    assert [region[place] for place in table["place"].tolist()] == table["region"].tolist()
    assert len(region) == 300
    home = table["household_id"]
    assert len(set(zip(home.tolist(), table["place"].tolist(), strict=True))) == home.max() + 1


def test_places_are_of_all_sizes():
    sizes = np.unique(census(40_000, seed=7, places=30)["place"], return_counts=True)[1]
    assert sizes.max() > 20 * np.median(sizes)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "many", 10_001])
def test_bad_numbers_of_places(bad):
    with pytest.raises(ParameterError, match=r"^places must be"):
        census(10, places=bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "many", None])
def test_bad_sizes(bad):
    with pytest.raises(ParameterError, match=r"^n must be a whole number"):
        census(bad)


@pytest.mark.parametrize("bad", [-1, 0.5, None])
def test_bad_seeds(bad):
    with pytest.raises(ParameterError, match=r"^seed must be a whole number"):
        census(10, seed=bad)
