"""A gateway on data with canaries in every column, and questions that try to get one out."""

import pyarrow as pa
from gateway_sites import make_site

import discreet
from discreet.ledger import Ledger

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT team, SUM(salary) AS s, AVG(salary) AS a FROM people GROUP BY team",
    "SELECT MEDIAN(salary) AS m, MAX(salary) AS high FROM people",
    "SELECT name, email FROM people",
    "SELECT nonsense FROM people",
    "SELECT SUM(CLAMP(CAST(email AS INTEGER), 0, 10)) AS s FROM people",
    "SELECT SUM(CLAMP(1 / (salary - salary), 0, 10)) AS s FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE name = email",
    "SELECT COUNT(*) AS n FROM people GROUP BY email HAVING COUNT(*) > 1",
    "SELECT SUM(salary) FROM nowhere",
]


def planted_site(planted, folder, **more):
    """Return a gateway on planted people, answering at public times."""
    made = make_site(folder, others_only=True, answer_after=0.2, **more)
    planted.write(folder / "data" / "people.csv")
    with (
        Ledger.open(made.settings.ledger) as ledger,
        discreet.protect(
            folder / "data" / "people.csv",
            name="people",
            unit="person_id",
            rows=1,
            guarantee=discreet.Guarantee(epsilon=3, delta=1e-9),
            ledger=ledger,
            columns={"salary": {"bounds": (0, 1_000_000)}, "team": {"keys": ["amber", "blue"]}},
        ) as tables,
    ):
        tables.save(folder / "people.toml")
    return made


def rows_of(planted):
    return pa.table({name: list(column) for name, column in planted.table.items()}).to_pylist()
