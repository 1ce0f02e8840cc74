"""Every refusal names its place, its reason and a remedy; the cases are plain files."""

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.composite import Composite
from discreet.tables.sql.parse import parse, parse_question
from discreet.tables.sql.question.refusals import CATALOGUE

CASES = Path(__file__).parents[1] / "cases" / "refusals"

PEOPLE = Table(
    name="people",
    columns=(
        Column(name="user_id", type="BIGINT"),
        Column(name="region", type="VARCHAR"),
        Column(name="income", type="DOUBLE", bounds=(Fraction(0), Fraction(200_000))),
        Column(name="age", type="INTEGER"),
        Column(name="ok", type="BOOLEAN"),
        Column(name="born", type="DATE"),
        Column(name="moved", type="DATE"),
        Column(name="tags", type="VARCHAR[]"),
    ),
)
VISITS = Table(
    name="visits",
    columns=(
        Column(name="user_id", type="BIGINT"),
        Column(name="at", type="TIMESTAMP"),
        Column(name="cost", type="DECIMAL(18,3)"),
        Column(name="region", type="VARCHAR"),
    ),
)
REGIONS = Table(
    name="regions",
    columns=(Column(name="region", type="VARCHAR"), Column(name="country", type="VARCHAR")),
    is_public=True,
)
ORDERS = Table(name="orders", columns=(Column(name="price", type="DOUBLE"),))
TABLES = (PEOPLE, VISITS, REGIONS)


def catalog(unit: Unit, *more: Table) -> Catalog:
    return Catalog(unit=unit, neighbours=Neighbours.add_remove, tables=(*TABLES, *more))


CATALOGS: dict[str, tuple[Catalog, list[str] | None]] = {
    "plain": (catalog(Unit.column("user_id")), None),
    "broken": (catalog(Unit.column("user_id"), ORDERS), None),
    "record": (catalog(Unit.record()), None),
    "monthly": (catalog(Unit.column("user_id").per("month")), None),
    "monthly_asked": (catalog(Unit.column("user_id").per("month")), ["2026-11"]),
}


def load() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{number}")
        for path in sorted(CASES.glob("*.toml"))
        for number, case in enumerate(tomllib.loads(path.read_text("utf-8"))["case"], 1)
    ]


def refusal(case: dict[str, Any]) -> Refused:
    known, periods = CATALOGS[case.get("catalog", "plain")]
    with pytest.raises(Refused) as caught:
        parse(case["sql"], known, periods=periods)
    return caught.value


@pytest.mark.parametrize("case", load())
def test_a_refusal_says_where_why_and_what_instead(case: dict[str, Any]) -> None:
    found = refusal(case)
    assert (found.code, found.line, found.column) == (case["code"], case["line"], case["column"])
    for word in case["reason"]:
        assert word in found.reason
    for word in case["remedy"]:
        assert word in found.remedy
    assert str(found).startswith(f"line {found.line}, column {found.column}: ")
    assert "Nothing was spent." in str(found)
    assert found.reason.endswith(".")
    assert found.remedy.endswith((".", "?"))
    assert "{" not in found.reason.replace("{'a'", "")


# What is refused, and the same in the words of its remedy.
REMEDIES = {
    "SELECT COUNT(*) FROM people AS p WHERE age < (SELECT AVG(q.age) FROM people AS q "
    "WHERE q.region = p.region)":
        "SELECT COUNT(*) FROM people AS p WHERE age < (SELECT AVG(age) FROM people)",
    "SELECT BOOL_OR(age > 3) FROM people": "SELECT COUNT_IF(age > 3), COUNT(*) FROM people",
    "SELECT APPROX_TOP_COUNT(region, 3) FROM people":
        "SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY 2 DESC LIMIT 3",
    "SELECT APPROX_TOP_SUM(region, age, 2) FROM people":
        "SELECT region, SUM(age) FROM people GROUP BY region ORDER BY 2 DESC LIMIT 2",
    "SELECT MODE(region) FROM people":
        "SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY 2 DESC LIMIT 1",
    "SELECT SUM(DISTINCT age) FROM people": "SELECT SUM(DISTINCT CLAMP(age, 0, 100)) FROM people",
    "SELECT AVG(DISTINCT age) FROM people": "SELECT AVG(DISTINCT CLAMP(age, 0, 100)) FROM people",
    "SELECT STDDEV(DISTINCT age) FROM people":
        "SELECT STDDEV(age) FROM (SELECT age, COUNT(*) FROM people GROUP BY age)",
    "SELECT AVG(born) FROM people": "SELECT AVG(EPOCH(born)) FROM people",
    "SELECT SUM(region) FROM people": "SELECT SUM(CAST(region AS DOUBLE)) FROM people",
    "SELECT AVG(at - TIMESTAMP '2026-01-01') FROM visits":
        "SELECT AVG(DATE_DIFF('second', CAST('2026-01-01' AS TIMESTAMP), at)) FROM visits",
    "SELECT AVG(MEDIAN(age)) FROM people": "SELECT MEDIAN(age) FROM people",
    "SELECT COUNT(*) FROM people WHERE age":
        "SELECT COUNT(*) FROM people WHERE CAST(age AS BOOLEAN)",
    "SELECT COUNT(*) FROM people WHERE born > NOW()":
        "SELECT COUNT(*) FROM people WHERE born > DATE '2026-01-31'",
    "SELECT QUANTILE(age, [0.1, 0.9]) FROM people":
        "SELECT QUANTILE(age, 0.1), QUANTILE(age, 0.9) FROM people",
    "SELECT STRFTIME(born, '%Q') AS q, COUNT(*) FROM people GROUP BY q":
        "SELECT STRFTIME(born, '%Y-%m') AS q, COUNT(*) FROM people GROUP BY q",
}  # fmt: skip


@pytest.mark.parametrize(("sql", "instead"), REMEDIES.items())
def test_what_a_refusal_advises_is_answered(sql: str, instead: str) -> None:
    refusal({"sql": sql})
    known, _ = CATALOGS["plain"]
    found = parse_question(instead, known)
    parts = found.parts if isinstance(found, Composite) else (found,)
    assert all(part.aggregates for part in parts)


def test_every_entry_of_the_catalogue_has_a_case_and_there_are_many() -> None:
    codes = [param.values[0]["code"] for param in load()]
    # What an engine cannot do depends on the engine: its own tests have the cases.
    assert set(codes) == set(CATALOGUE) - {"engine"}
    assert len(codes) >= 80
