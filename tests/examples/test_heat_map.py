"""The heat map shows more where more is trusted, and no cell that is empty."""

import re

import numpy as np
import pytest


@pytest.fixture(scope="module")
def heat(example):
    return example("heat_map")


@pytest.mark.lengthy
def test_dummies_find_more_than_reports_and_those_more_than_nobody(heat, tmp_path, capsys):
    file = tmp_path / "maps.png"
    heat.main(["--plot", str(file)])
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines()[:-1])) <= 80  # the last one is a path
    assert file.read_bytes().startswith(b"\x89PNG")
    rows = [
        re.search(rf"^{name} +([\d.]+) +(\d+) +(\d+)% +(\d+)$", told, re.MULTILINE)
        for name in ("nobody trusted", "shuffled, one report", "shuffled, dummies")
    ]
    errors, found, people, wrong = ([float(row[i]) for row in rows] for i in range(1, 5))
    # Standard errors of about 430, 16 and 8 a cell, each from 10,368 cells: far from one another.
    assert errors[0] > 10 * errors[1] > 10 * errors[2]
    assert found[0] < found[1] < found[2]
    assert people[0] < people[1] < people[2]
    # Each map shows an empty cell with a chance of 0.05, and then hardly more than a few.
    assert max(wrong) < 10


def test_characters_stand_for_all_their_cells(heat):
    counts = np.zeros(heat.CELLS)
    counts[[0, heat.WIDE * heat.TALL + heat.BROAD]] = heat.PEOPLE
    sketch = heat.sketched(heat.Map(name="", terms="", counts=counts, is_sure=counts > 0))
    assert (len(sketch), len(sketch[0])) == (16, 36)
    assert [row.count("@") for row in sketch[:3]] == [1, 1, 0]
    assert sketch[0][0] == sketch[1][1] == "@"
    unsure = heat.Map(name="", terms="", counts=counts, is_sure=counts < 0)
    assert not "".join(heat.sketched(unsure)).strip()
