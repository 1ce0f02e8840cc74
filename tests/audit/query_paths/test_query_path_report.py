"""What an audit of a query path proves, how it is told, and what it refuses."""

import json
import math

import numpy as np
import pytest

from discreet import audit
from discreet.audit.query_paths import KINDS
from discreet.audit.query_paths.certificate import Terms, least_flagged, prove
from discreet.audit.query_paths.changes import Subject, pair_of
from discreet.errors import DataError, ParameterError
from discreet.privacy import Neighbours, Unit

rng = np.random.default_rng()

PEOPLE = {"person": ["ann", "bob", "cyn"], "x": [1.0, 2.0, None], "town": ["a", "b", "b"]}


def noisy(table):
    return len(table["x"]) + float(rng.laplace(scale=2_000))


def test_a_true_claim_is_refuted_no_more_often_than_stated():
    # Randomized response at exactly epsilon = 1. More than 50 of 400 at a rate of at most 5%
    # happens with probability below 1e-8.
    terms = Terms(epsilon=1, delta=0, alpha=0.05)
    yes = math.e / (1 + math.e)
    flagged = 0
    for _ in range(400):
        first, second = ((rng.random(200) < rate).tolist() for rate in (yes, 1 - yes))
        flagged += prove(first, second, terms).epsilon_lower > 1
    assert flagged <= 50


def test_a_leak_as_large_as_the_power_says_is_flagged_most_of_the_time():
    terms = Terms(epsilon=1, delta=0, alpha=1e-3)
    rate = math.exp(-least_flagged(150, terms))
    flagged = 0
    for _ in range(100):
        second = (rng.random(200) < rate).tolist()
        flagged += prove([True] * 200, second, terms).epsilon_lower > 1
    assert flagged >= 75  # of 95 expected: fewer has probability below 1e-9


def test_too_few_samples_read_as_nothing_learned():
    found = audit.table(
        PEOPLE, lambda table: 1.5 * len(table["x"]), unit="person", epsilon=5, delta=0, samples=100
    )
    assert found.passed
    assert math.isinf(found.power)
    assert {one.verdict for one in found.findings} == {"nothing learned"}
    assert "nothing learned: take more samples" in str(found)


def test_a_report_fits_a_terminal_and_reads_back():
    found = audit.table(
        PEOPLE, lambda table: {"n": 1 / len(table["x"])}, unit="person", epsilon=1, delta=0
    )
    assert not found.passed
    passing = audit.table(PEOPLE, noisy, unit="person", epsilon=1, delta=0)
    for one in (found, passing):
        assert max(map(len, str(one).splitlines())) <= 80
    told = json.loads(found.to_json())
    assert told["passed"] is False
    assert len(told["findings"]) == len(found.findings)
    assert told["epsilon_lower"] == found.epsilon_lower


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", ["person", None])
def test_every_pair_differs_in_one_unit(kind, neighbours, unit):
    subject = Subject(table=PEOPLE, unit=unit)
    tables = pair_of(kind, subject, Neighbours(neighbours))
    rows = [list(zip(*table.values(), strict=True)) for table in tables]
    if unit is None:
        longer, shorter = rows
        assert len(longer) - len(shorter) == (neighbours == "add_remove")
        return
    names = {row[0] for own in rows for row in own}
    owned = [{name: [repr(row) for row in own if row[0] == name] for name in names} for own in rows]
    changed = [name for name in names if owned[0][name] != owned[1][name]]
    assert len(changed) == 1
    assert bool(owned[1][changed[0]]) == (neighbours == "replace_one")


def test_records_are_units_too():
    found = audit.table(
        {"x": [1.0, 2.0, 3.0]}, lambda table: float(len(table["x"])), unit=Unit.record(),
        epsilon=1, delta=0, kinds=["typical unit"],
    )  # fmt: skip
    assert [one.channel for one in found.failures][:1] == ["answer"]


def test_mistakes_are_refused():
    asked = {"unit": "person", "epsilon": 1, "delta": 0}
    with pytest.raises(ParameterError, match="'sorrow' is none of them"):
        audit.table(PEOPLE, noisy, kinds=["sorrow"], **asked)
    with pytest.raises(ParameterError, match="no column 'who'"):
        audit.table(PEOPLE, noisy, **{**asked, "unit": "who"})
    with pytest.raises(ParameterError, match="rows: settings of protect"):
        audit.table(PEOPLE, noisy, rows=1, **asked)
    with pytest.raises(ParameterError, match="guarantee of its own"):
        audit.table(PEOPLE, "SELECT COUNT(*) FROM data", guarantee=None, **asked)
    with pytest.raises(ParameterError, match="no null record"):
        audit.table(PEOPLE, noisy, neighbours="zero_out", **asked)
    with pytest.raises(ParameterError, match="with a period"):
        audit.table(PEOPLE, noisy, **{**asked, "unit": Unit.column("person").per("day")})
    with pytest.raises(ParameterError, match="samples"):
        audit.table(PEOPLE, noisy, samples=10, **asked)
    with pytest.raises(ParameterError, match="data must be a table"):
        audit.table([1, 2], noisy, **asked)
    with pytest.raises(DataError, match="equally long"):
        audit.table({"person": [1], "x": []}, noisy, **asked)
    with pytest.raises(DataError, match="at least one unit"):
        audit.table({"person": [], "x": []}, noisy, **asked)
