"""Generated digits: the same everywhere, of all kinds, and not too easy."""

import hashlib

import numpy as np
import pytest

from discreet.datasets import digits
from discreet.errors import ParameterError


def test_the_same_digits_on_every_platform():
    table = digits(50, seed=3)
    text = table["image"].tobytes() + table["label"].astype("<i8").tobytes()
    assert hashlib.sha256(text).hexdigest()[:16] == "de8b0fb7e868e778"


def test_pictures_and_labels():
    table = digits(500)
    assert table["image"].shape == (500, 16, 16)
    assert table["image"].dtype == np.uint8
    assert set(table["label"].tolist()) == set(range(10))
    # There is ink in every picture, and paper around it.
    assert (table["image"] > 80).mean(axis=(1, 2)).min() > 0.03
    assert (table["image"] < 80).mean(axis=(1, 2)).min() > 0.5


def test_the_seed_decides():
    assert (digits(20, seed=1)["image"] != digits(20, seed=2)["image"]).any()
    assert (digits(20, seed=1)["image"] == digits(20, seed=1)["image"]).all()


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_bad_numbers_are_refused(n):
    with pytest.raises(ParameterError):
        digits(n)
