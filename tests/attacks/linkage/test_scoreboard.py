"""People found by what they rated."""

import json

import pytest

from discreet.attacks import linkage
from discreet.datasets import ratings
from discreet.errors import DataError, ParameterError


def test_more_that_is_known_finds_more_people():
    sheet = ratings(30_000)
    found = [linkage.scoreboard(sheet, known=n, rating=None, people=200).success for n in (1, 3, 8)]
    assert found[0] < 0.4 < found[1] < found[2]
    assert found[2] > 0.9


def test_wrong_clues_and_other_stars_are_survived():
    sheet = ratings(30_000)
    found = linkage.scoreboard(sheet, known=8, wrong=2, time="time", people=200)
    assert found.success > 0.85
    assert found.details["claimed"] - found.details["right"] <= 10


def test_without_a_difference_nobody_is_claimed():
    same = {"user": [0, 0, 1, 1, 2, 2], "item": [0, 1] * 3, "rating": [5] * 6}
    found = linkage.scoreboard(same, known=2)
    assert (found.success, found.details["claimed"]) == (0, 0)


def test_what_is_no_rating_is_refused():
    with pytest.raises(DataError, match="nobody has 8"):
        linkage.scoreboard({"user": [0], "item": [0], "rating": [1]})
    with pytest.raises(DataError, match="numbers or times"):
        linkage.scoreboard({"user": [0], "item": [0], "rating": ["five"]}, known=1)


def test_the_report_goes_through_json():
    found = linkage.scoreboard(ratings(5000), known=6, people=20)
    read = json.loads(found.to_json())
    assert read["details"]["right"] == round(found.success * 20) > 0


@pytest.mark.parametrize("wrong", [{"near": 0}, {"days": -1}, {"eccentricity": -1}])
def test_scales_are_positive(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        linkage.scoreboard(ratings(500), known=2, **wrong)
