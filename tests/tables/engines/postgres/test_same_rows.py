"""Plans mean the same to DuckDB and to PostgreSQL, question by question."""

import importlib.util
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.tables.engines import DuckDBConnection
from discreet.tables.sql.parse import parse

pytestmark = pytest.mark.needs("postgres")

FILE = Path(__file__).parents[1] / "test_two_engines.py"
SPEC = importlib.util.spec_from_file_location("two_engines", FILE)
two_engines = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(two_engines)


@pytest.fixture(scope="module")
def engines(loaded):
    with DuckDBConnection(two_engines.TABLES, threads=1) as duckdb:
        typed = {
            name: pa.table(
                {
                    column: table[column].cast(
                        {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "INTEGER": pa.int32()}.get(
                            two_engines.TYPES[name][column], table[column].type
                        )
                    )
                    for column in table.column_names
                }
            )
            for name, table in two_engines.TABLES.items()
        }
        with loaded.connect(typed) as postgres:
            yield postgres, duckdb


@pytest.mark.parametrize("question", two_engines.QUESTIONS)
def test_both_read_the_same_rows(question, engines):
    rows = parse(question, two_engines.CATALOG).rows
    postgres, duckdb = (
        sorted((tuple(row.values()) for row in found.to_pylist()), key=two_engines._order)
        for found in (engine.rows(rows).reveal_without_noise() for engine in engines)
    )
    assert len(postgres) == len(duckdb)
    for one, other in zip(postgres, duckdb, strict=True):
        assert all(map(two_engines._is_close, one, other)), (one, other)
