"""A server for all tests of this folder, and tables that are copied into it."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pyarrow as pa
import pytest

from discreet.tables.engines import PostgresConnection, PostgresEngine
from discreet.testing import PostgresServer

_KINDS = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"), (pa.types.is_int16, "smallint"),
    (pa.types.is_uint8, "smallint"), (pa.types.is_uint16, "integer"),
    (pa.types.is_int32, "integer"), (pa.types.is_uint32, "bigint"), (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "real"), (pa.types.is_float64, "float8"),
    (pa.types.is_date, "date"),
]  # fmt: skip
_names = count(1)


def kind_of(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    return next((name for fits, name in _KINDS if fits(type_)), "text")


class Loaded:
    """Copies tables into one database, each under a new name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)

    def load(self, table: pa.Table) -> str:
        name = f"t{next(_names)}"
        columns = [
            psycopg.sql.SQL("{} " + kind_of(field.type)).format(psycopg.sql.Identifier(field.name))
            for field in table.schema
        ]
        self.connection.execute(
            psycopg.sql.SQL("CREATE TABLE {} ({})").format(
                psycopg.sql.Identifier(name), psycopg.sql.SQL(", ").join(columns)
            )
        )
        copy = psycopg.sql.SQL("COPY {} FROM STDIN").format(psycopg.sql.Identifier(name))
        with self.connection.cursor() as cursor, cursor.copy(copy) as lines:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                lines.write_row(row)
        return name

    def connect(self, tables: dict[str, pa.Table]) -> PostgresConnection:
        engine = PostgresEngine(self.url)
        return engine.open(
            {name: engine.look(name, self.load(table)) for name, table in tables.items()}
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"max_connections": "200", "fsync": "off"}) as running:
        yield running


@pytest.fixture(scope="session")
def loaded(postgres: PostgresServer) -> Iterator[Loaded]:
    made = Loaded(postgres.new_database())
    yield made
    made.connection.close()
