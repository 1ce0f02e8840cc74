"""No question fails, changes its type or is refused because of what one person's row holds.

Tables with and without one row, in which every bad value of a physical type has its column: both
are opened with the same columns or refused in the same words, and what can be asked of one can be
answered of the other. Whether a question is refused depends on the columns alone.
"""

import itertools

import pytest
from physical_columns import PLACES, SOURCES, People
from polars.exceptions import PanicException

from discreet.errors import DiscreetError
from discreet.privacy import Guarantee, Unit
from discreet.tables import Declaration, DeclaredTable, protect
from discreet.tables.engines import open_sources
from discreet.tables.model.bounds import Norm
from discreet.tables.model.statements import Cells, Sums
from discreet.tables.sql.parse import parse

QUESTIONS = (
    "SELECT x, COUNT(DISTINCT x) FROM t WHERE LENGTH(UPPER(CAST(x AS VARCHAR))) > 0 GROUP BY x",
    "SELECT SUM(CLAMP(x, 0, 10)) FROM t WHERE x > 1",
    "SELECT AVG(SQRT(x) * x + 1e300), MEDIAN(x), MIN(x) FROM t",
    "SELECT COUNT(*) FROM t WHERE x = 'north' OR x IS NULL OR x LIKE '%a'",
    "SELECT COUNT(*) FROM t WHERE x < TIMESTAMP '2026-01-31 12:00:00'",
    "SELECT EXTRACT(YEAR FROM x) AS y, COUNT(*) FROM t GROUP BY y",
    "SELECT CAST(x AS DATE) AS d, AVG(CAST(x AS DOUBLE)) FROM t GROUP BY d",
    "SELECT DATE_TRUNC('week', x + INTERVAL 1 MONTH) AS d, COUNT(*) FROM t GROUP BY d",
)
QUICK = QUESTIONS[:1]


def opened_or_refused(given):
    try:
        return open_sources({"t": given})
    except DiscreetError as error:
        return str(error)


def columns_of(opened):
    return opened if isinstance(opened, str) else opened["t"].columns


def plans(opened, names, questions):
    """Return a query for each question that is not refused, also with the column as the unit."""
    made = {}
    tables = {"t": DeclaredTable()}
    for name, unit in itertools.chain(((n, "u") for n in names), ((n, n) for n in names)):
        for text in questions if unit == "u" else ("SELECT COUNT(*) FROM t",):
            try:
                declared = Declaration(
                    name="t", unit=Unit.column(unit), guarantee=Guarantee(epsilon=1), tables=tables
                )
                catalog = declared.catalog(opened.columns)
                made[name, unit, text] = parse(text.replace("x", name), catalog)
            except DiscreetError:
                continue
    return made


def answer(engine, query):
    """Return the types of an answer, and of the rows that it is made of."""
    cells = (Cells(kind="rows"),)
    statement = Sums(query=query, cells=cells, bounding=Norm(limit=1, order=1), salt="s")
    try:
        found = engine.aggregate(statement).reveal_without_noise().schema
        rows = engine.rows(query.rows).reveal_without_noise().schema
    except DiscreetError as error:
        return f"FAILED: {error}"
    return str(found), str(rows)


def faults_of_answers(opened, queries, before):
    engine = opened.connected()
    try:
        engine.sample("t", unit="u", salt="s")
    except DiscreetError as error:
        yield f"sampling: {error}"
    for what, query in queries.items():
        after = answer(engine, query)
        if after != before.get(what, after) or after[0] == "F":
            yield f"{what}: {before.get(what)} became {after}"
            engine.close()  # one question may break the engine for those after it
            engine = opened.connected()
    engine.close()


def faults(kind, columns, folder, *, questions=QUESTIONS, places=PLACES):
    """Return whatever ends otherwise where a table has the row, and where it has not."""
    numbers = itertools.count()

    def made(those, place):
        here = folder / str(next(numbers))
        here.mkdir()
        return SOURCES[kind][1](People(those, place), here)

    def can_hold(one):
        try:
            made([one], "last")
        except (Exception, PanicException):  # a library that refuses the value by itself
            return False
        return True

    held = [one for one in columns if can_hold(one)]
    if not held:
        return []
    without = opened_or_refused(made(held, "without"))
    queries, before, found = {}, {}, []
    if not isinstance(without, str):
        queries = plans(without, [f"x{i}" for i in range(len(held))], questions)
        with without.connected() as engine:
            before = {what: answer(engine, query) for what, query in queries.items()}
    for place in places:
        opened = opened_or_refused(made(held, place))
        if columns_of(opened) != columns_of(without):
            found.append(f"{place}: {columns_of(without)} became {columns_of(opened)}")
        elif queries:
            found += [f"{place} {one}" for one in faults_of_answers(opened, queries, before)]
    return [f"{[(column.name, bad) for column, bad in held]} {fault}" for fault in found]


TRIALS = {
    f"{kind}-{column.name}": (kind, column)
    for kind, (columns, _) in SOURCES.items()
    for column in columns()
}


@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS)
def test_no_row_changes_how_a_question_ends(trial, tmp_path):
    kind, column = TRIALS[trial]
    columns = [(column, bad) for bad in column.bad]
    # A line of a CSV file can be bad as a whole, so there each value comes alone.
    for number, group in enumerate([[one] for one in columns] if kind == "csv" else [columns]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = faults(kind, group, folder)
        assert not found, "\n".join(found)


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", SOURCES)
def test_the_worst_row_changes_nothing(kind, tmp_path):
    """Every source and every type it can hold, each with one bad value and one question."""
    columns = [(column, next(iter(column.bad))) for column in SOURCES[kind][0]()]
    found = faults(kind, columns, tmp_path, questions=QUICK, places=("last",))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("trial", "bad"),
    [
        ("parquet-text", "no unicode"),
        ("parquet-timestamp ms UTC", "far"),
        ("arrow-timestamp s", "lowest"),
        ("pandas objects-ints as objects", "text"),
        ("csv-ints in lines", "open quote"),
    ],
)
def test_whoever_pays_gets_an_answer(trial, bad, tmp_path):
    kind, column = TRIALS[trial]
    given = SOURCES[kind][1](People([(column, bad)], "last"), tmp_path)
    many = Guarantee(epsilon=100, delta=0.1)
    with protect({"t": given}, name="t", unit="u", guarantee=many, ledger=tmp_path / "b.db") as t:
        for text in ("SELECT COUNT(x0) AS n FROM t", "SELECT x0, COUNT(*) AS n FROM t GROUP BY x0"):
            assert "n" in t.sql(text, epsilon=1, delta=1e-6).columns
