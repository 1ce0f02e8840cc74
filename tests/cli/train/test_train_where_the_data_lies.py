"""Training on tables of PostgreSQL and of Spark, by command: with units, on the same ledger."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.ledger import Ledger
from discreet.testing import PostgresServer

pytestmark = pytest.mark.lengthy

TRAIN = [
    "train", "people", "--target", "good", "--features", "x,kind", "--epsilon", "8",
    "--delta", "1e-6", "--epochs", "4", "--batch-size", "100", "--held-out", "public.csv", "--json",
]  # fmt: skip
PROTECT = [
    "--name", "people", "--unit", "person", "--epsilon", "20", "--delta", "1e-6", "--rows", "2",
    "--bounds", "x=-1,1", "--keys", "kind=a,b",
]  # fmt: skip


def rows(persons, seed):
    """Return two rows of each person; whether they are good is whether x is positive."""
    x = np.random.default_rng(seed).uniform(-1, 1, 2 * persons)
    return pa.table(
        {
            "person": np.repeat(np.arange(persons), 2),
            "x": x,
            "kind": pa.array([("a", "b")[i % 2] for i in range(2 * persons)]),
            "good": x > 0,
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    pyarrow.csv.write_csv(rows(300, 2), "public.csv")
    return tmp_path


def run(*args, code=0):
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result


def learnt(run=run):
    """Train, and say what came of it; a model that guesses is right in half of the rows."""
    found = json.loads(run(*TRAIN).stdout)
    (only,) = found["runs"]
    assert only["unit"] == "all records of one person"
    assert only["certified_epsilon"] <= 8
    assert only["accuracy"] > 0.8
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger.verify()
        assert [entry["kind"] for entry in ledger["people"].history()][-1] == "settle"


@pytest.mark.needs("postgres")
def test_on_a_table_of_postgresql(folder, monkeypatch):
    import psycopg

    with PostgresServer() as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE people (person int, x float8, kind text, good bool)")
            with connection.cursor() as cursor, cursor.copy("COPY people FROM STDIN") as lines:
                for row in rows(1000, 1).to_pylist():
                    lines.write_row(row.values())
        monkeypatch.setenv("DISCREET_POSTGRES_URL", url)
        run("protect", "people", "--engine", "postgres", *PROTECT)
        assert 'source = "table://public.people"' in (folder / "people.toml").read_text()
        learnt()


@pytest.mark.slow
@pytest.mark.needs("spark")
def test_on_files_that_spark_reads(folder):
    """As a command of its own, with the Spark that is configured where it runs."""
    (folder / "spark-defaults.conf").write_text(
        "spark.master local[2]\nspark.ui.enabled false\nspark.sql.shuffle.partitions 1\n"
        f"spark.driver.extraJavaOptions -Dderby.system.home={folder}\n"
    )
    (folder / "rows").mkdir()
    pq.write_table(rows(1000, 1), "rows/people.parquet")
    where = {**os.environ, "SPARK_CONF_DIR": str(folder)}

    def run_alone(*args):
        found = subprocess.run(
            [sys.executable, "-m", "discreet", *map(str, args)],
            capture_output=True, text=True, check=False, env=where,
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        return found

    run_alone("protect", "rows", "--engine", "spark", *PROTECT)
    learnt(run_alone)


def test_an_engine_that_nobody_knows(folder):
    error = run("protect", "public.csv", "--engine", "abacus", *PROTECT, code=2).stderr
    assert "one of duckdb, postgres, spark" in error
