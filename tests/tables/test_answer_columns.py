"""The columns of an answer, known without paying: what is said before is what comes after."""

import pytest

from discreet.errors import Refused
from discreet.testing import temporary_tables

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, COUNT(*), AVG(income) AS pay FROM people GROUP BY sex",
    "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
    "SELECT COUNT(*) AS n, COUNT(*) AS n_error FROM people",
    "SELECT COUNT(*) > 10 AS many, CAST(COUNT(*) AS BIGINT) AS whole FROM people",
    "SELECT HISTOGRAM(age, 0, 100, 4) AS h FROM people",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)",
    "SELECT sex, n, RANK() OVER (ORDER BY n) AS place FROM "
    "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) x",
    "SELECT MAX(n) AS most FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) x",
]
KINDS = {"b": "BOOLEAN", "i": "BIGINT", "f": "DOUBLE", "O": "VARCHAR"}


@pytest.fixture(scope="module")
def people():
    with temporary_tables(epsilon=50) as tables:
        yield tables


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("errors", [False, True])
def test_columns_are_those_of_the_answer(people, question, errors):
    said = people.columns(question, errors=errors)
    result = people.sql(question, epsilon=0.5)
    assert list(said) == result.names(errors=errors)
    for name in result.columns:
        kinds = {said[name], KINDS[result[name].dtype.kind]}
        # A column of numbers may happen to hold whole ones, or none at all.
        assert len(kinds) == 1 or kinds == {"BIGINT", "DOUBLE"}, name


def test_asking_for_columns_is_free(people):
    before = people.remaining
    for question in QUESTIONS:
        people.columns(question)
    assert people.remaining == before


def test_what_cannot_be_asked_has_no_columns(people):
    with pytest.raises(Refused, match="raw rows"):
        people.columns("SELECT * FROM people")
    with pytest.raises(Refused, match="cannot be computed"):
        people.columns("SELECT UPPER(n) + 1 FROM (SELECT COUNT(*) AS n FROM people) x")
