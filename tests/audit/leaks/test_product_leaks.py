"""The product as it is lets no canary out: answers, errors, ledger files, commands, training.

Every scan here fails a product that leaks nothing with probability at most 1e-9, plus the delta of
its guarantees, 1e-9 as well, for each of 5 people who live alone.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet import audit
from discreet.errors import DiscreetError
from discreet.tables import count, count_distinct, mean, median

GUARANTEE = discreet.Guarantee(epsilon=3, delta=1e-9)
COLUMNS = {"salary": {"bounds": (0, 1_000_000)}, "team": {"keys": ["amber", "blue"]}}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT team, SUM(salary) AS s, AVG(salary) AS a FROM people GROUP BY team",
    "SELECT MEDIAN(salary) AS m, MIN(salary) AS low, MAX(salary) AS high FROM people",
    "SELECT MAX(born) AS last FROM people WHERE team = 'amber'",
    # refused, or failing while they run
    "SELECT name, email FROM people",
    "SELECT MAX(name) AS n FROM people",
    "SELECT nonsense FROM people",
    "SELECT SUM(CLAMP(CAST(email AS INTEGER), 0, 10)) AS s FROM people",
    "SELECT SUM(CLAMP(1 / (salary - salary), 0, 10)) AS s FROM people",
    "SELECT SUM(CLAMP(CAST(name AS DATE) - born, 0, 10)) AS s FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE LENGTH(REPEAT(email, 100000000)) > 3",
    "SELECT COUNT(*) AS n FROM people GROUP BY email HAVING COUNT(*) > 1",
    "SELECT SUM(salary) FROM nowhere",
    "SELECT SUM(CLAMP(salary * 1e300 * 1e300, 0, 10)) AS s FROM people",
]


def attempts(table, epsilon):
    """Yield whatever each question gives: a price, an answer with all its forms, or an error."""
    for question in QUESTIONS:
        for ask in (table.quote, table.sql):
            try:
                result = ask(question, epsilon=epsilon)
            except DiscreetError as error:
                yield error
            else:
                yield result
                yield [str(result), repr(result)]
                if ask == table.sql:
                    yield [result.receipt, table.account.ledger.prove(result.receipt).to_json()]
                    yield [result.explain(), result.to_json(), result.to_dicts()]
                    yield [result.to_arrow(), result.to_pandas()]
    yield table.group_by("team").agg(n=count(), pay=mean("salary")).release(epsilon=epsilon)
    yield table.agg(half=median("salary"), people=count_distinct("person_id")).release(
        epsilon=epsilon
    )


@pytest.fixture
def planted():
    return audit.plant(rows=400)


@pytest.mark.lengthy
@pytest.mark.parametrize("source", ["frame", "file"])
def test_a_protected_table_and_its_ledger(planted, tmp_path, source):
    folder = tmp_path / "work"
    folder.mkdir()
    data = dict(planted.table) if source == "frame" else planted.write(tmp_path / "people.csv")

    def surface():
        table = discreet.protect(
            data, name="people", unit="person_id", rows=1, guarantee=GUARANTEE,
            ledger=folder / "budget.db", columns=COLUMNS,
        )  # fmt: skip
        yield table
        yield from attempts(table, 0.02)
        ledger = table.account.ledger
        yield [table.account, ledger, str(table), repr(table)]
        table.close()
        completed.append(True)

    completed = []
    found = audit.scan(surface, planted, folders=[folder], epsilon=3)
    assert completed
    assert found.passed, found
    assert found.size > 50_000  # the ledger's file, answers and errors: it did look


def discreet_command(*args, folder):
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *map(str, args)],
        cwd=folder, capture_output=True, timeout=300, check=False,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": str(Path(discreet.__file__).parents[1])},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.lengthy
def test_the_commands(planted, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    source = planted.write(folder / "people.csv")
    group = "SELECT city, COUNT(*) AS n, AVG(salary) AS pay FROM people GROUP BY city"
    commands = [
        ["protect", "people.csv", "--name", "people", "--unit", "person_id", "--epsilon", "3",
         "--delta", "1e-9", "--rows", "1", "--bounds", "salary=0,1000000"],
        ["quote", "people", group, "--epsilon", "0.2"],
        ["query", "people", group, "--epsilon", "0.2", "--csv", "cities.csv"],
        ["query", "people", QUESTIONS[8], "--epsilon", "0.1"],
        ["query", "people", "SELECT email FROM people", "--epsilon", "0.2"],
        ["query", "people", "SELECT SUM(salary) AS s FROM people", "--epsilon", "200"],
        ["ledger", "show", "people"],
    ]  # fmt: skip
    codes = []

    def surface():
        for args in commands:
            code, out, err = discreet_command(*args, folder=folder)
            codes.append(code)
            yield [out, err]

    found = audit.scan(surface, planted, folders=[folder], excluded=[source], epsilon=3)
    assert found.passed, found
    assert codes[:3] == [0, 0, 0]
    assert all(codes[4:6])


@pytest.mark.lengthy
def test_training_and_its_failures(planted, tmp_path):
    torch = pytest.importorskip("torch")
    from discreet.learn import prepare

    salaries = torch.tensor(planted.table["salary"], dtype=torch.float64)
    rows = torch.stack([salaries, salaries.sqrt()], dim=1)

    def broken(model, batch):
        if batch.shape[0]:
            raise ValueError("the loss cannot be computed")
        return model(batch).squeeze(1)

    def surface():
        model = torch.nn.Linear(2, 1, dtype=torch.float64)
        sgd = torch.optim.SGD(model.parameters(), lr=1e-3)
        private = prepare(
            model, sgd, rows, epsilon=1, delta=1e-9, epochs=2, batch_size=50, clip=1.0
        )
        for batch in private.batches():
            private.step(batch, lambda model, x: (model(x).squeeze(1) / 1e6).square())
        yield [
            private.spent,
            private,
            list(model.parameters()),
            model.state_dict(),
            sgd.state_dict(),
        ]
        for loss in (broken, lambda model, x: model(x).mean(), lambda model, x: model(x)[9999]):
            model = torch.nn.Linear(2, 1, dtype=torch.float64)
            sgd = torch.optim.SGD(model.parameters(), lr=1e-3)
            try:
                private = prepare(
                    model, sgd, rows, epsilon=1, delta=1e-9, epochs=1, batch_size=50, clip=1.0
                )
                for batch in private.batches():
                    private.step(batch, loss)
            except Exception as error:
                failed.append(loss)
                yield error

    failed = []
    found = audit.scan(surface, planted, folders=[tmp_path], epsilon=4)
    assert found.passed, found
    assert len(failed) == 3
