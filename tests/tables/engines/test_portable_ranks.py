"""The rank that all engines share: as an engine writes it, and as its docstring says it."""

import hashlib
import math
from datetime import UTC, date, datetime

import duckdb
import pyarrow as pa
import pytest

from discreet.tables.engines import DuckDBConnection
from discreet.tables.engines.compile.dialect import Hashed
from discreet.tables.engines.duckdb.dialect import PORTABLE
from discreet.testing import EngineConformance

SALT = "a salt"
VALUES = [
    ("int64", "BIGINT", -(2**63)),
    ("uint8", "UTINYINT", 255),
    ("int128", "HUGEINT", 2**100),
    ("DECIMAL(9,2)", "DECIMAL(9,2)", "1.50"),
    ("boolean", "BOOLEAN", True),
    ("date", "DATE", date(2024, 2, 29)),
    ("timestamp", "TIMESTAMP", datetime(1969, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001
    ("text", "VARCHAR", ""),
    ("text", "VARCHAR", "a|b"),
    ("text", "VARCHAR", "Çelik"),
    ("double", "DOUBLE", 0.0),
    ("double", "DOUBLE", -0.1),
    ("double", "DOUBLE", 5e-324),
    ("double", "DOUBLE", 2.0**62),
    ("double", "DOUBLE", -math.inf),
    ("double", "DOUBLE", math.nan),
    ("double", "DOUBLE", 2.0**62 - 512),
]


def _said(type_: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if not abs(value) < 2**62:
            return "x"
        low = math.floor(value)
        return f"{low}.{math.floor((value - low) * 2**52)}"
    if isinstance(value, datetime):
        passed = value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return str((passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds)
    if type_ == "text":
        return f"{len(str(value).encode())}:{value}"
    return str(value)


def rank(*values: tuple[str, object]) -> float:
    """Compute a rank without SQL."""
    text = "|".join([SALT, *(_said(*one) for one in values)])
    return float(int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) * 2**12)


def _asked(columns: list[tuple[str, str, object]]) -> float:
    given = [f"CAST(? AS {declared}) AS c{i}" for i, (_, declared, _) in enumerate(columns)]
    text = PORTABLE.hash([Hashed(f"c{i}", type_) for i, (type_, _, _) in enumerate(columns)])
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT {text.replace('$salt', '?')} FROM (SELECT {', '.join(given)}) AS r",
            [SALT, *(value for _, _, value in columns)],
        ).fetchone()
    assert found is not None
    return float(found[0])


@pytest.mark.parametrize(("type_", "declared", "value"), VALUES)
def test_a_rank_is_what_its_docstring_says(type_, declared, value):
    assert _asked([(type_, declared, value)]) == rank((type_, value))
    assert _asked([(type_, declared, None)]) == rank((type_, None))


def test_columns_do_not_run_into_each_other():
    text = ("text", "VARCHAR")
    pairs = [("a|1:b", ""), ("a", "b|0:"), ("", "a|1:b"), (None, "-"), ("-", None)]
    ranks = [_asked([(*text, one), (*text, other)]) for one, other in pairs]
    assert len(set(ranks)) == len(pairs)
    assert ranks[0] == rank(("text", "a|1:b"), ("text", ""))


def test_ranks_are_below_two_to_the_64th_and_fill_the_range():
    ranks = [rank(("int64", i)) for i in range(2_000)]
    assert 0 <= min(ranks) < 2**56 < 2**64 - 2**56 < max(ranks) < 2**64


class TestPortableDuckDB(EngineConformance):
    def connect(self, tables: dict[str, pa.Table]) -> DuckDBConnection:
        return DuckDBConnection(tables, portable=True)
