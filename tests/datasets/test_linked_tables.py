"""Voters and ratings: the same everywhere, with the tails that attacks live on."""

import numpy as np
import pytest

from discreet.datasets import ratings, voters
from discreet.errors import ParameterError


def test_the_same_arguments_give_the_same_people():
    for make in (voters, ratings):
        first, second, other = make(500), make(500), make(500, seed=1)
        assert all((first[name] == second[name]).all() for name in first)
        assert any(len(first[n]) != len(other[n]) or (first[n] != other[n]).any() for n in first)


def test_a_diagnosis_has_nothing_to_do_with_the_place():
    people = voters(20_000)
    shares = [np.mean(people["diagnosis"][people["zip"] == z] == "asthma") for z in (2100, 2119)]
    assert abs(shares[0] - shares[1]) < 0.08  # the same for the same seed


def test_ratings_have_long_tails_and_no_film_twice():
    sheet = ratings(50_000)
    films = np.bincount(sheet["item"])
    assert films.max() > 381
    assert np.median(films[films > 0]) < 15
    pairs = set(zip(sheet["user"].tolist(), sheet["item"].tolist(), strict=True))
    assert len(pairs) == len(sheet["user"])
    assert set(np.unique(sheet["rating"])) == {0, 1, 2, 3, 4, 5}


def test_sizes_are_whole_numbers():
    for wrong in ({"n": 0}, {"users": 0}, {"items": 1.5}):
        with pytest.raises(ParameterError):
            ratings(**wrong)
    with pytest.raises(ParameterError):
        voters(zips=0)
