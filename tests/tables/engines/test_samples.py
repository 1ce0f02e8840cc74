"""Samples, by which copies are known, do not depend on how a table is written, and never fail."""

from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from discreet.tables.engines import DuckDBConnection

ODD = """
    'infinity'::TIMESTAMPTZ; '290000-01-01'::TIMESTAMP; '5881580-07-10'::DATE; 'nan'::DOUBLE;
    170141183460469231731687303715884105727::HUGEINT; '\\xFF'::BLOB; [1]; {'a': 1}; MAP {1: 2};
    repeat('x', 100000); ''; NULL; '3 days'::INTERVAL; '1e400'; chr(0); '9999999-01-01'; 'inf';
    '00:00:00+02'::TIMETZ; '0101'::BIT; 'a'::ENUM('a', 'b'); '290000-01-01'::TIMESTAMP_S;
    '-infinity'::DATE; 1.50::DECIMAL(5, 2); 18446744073709551615::UBIGINT; 'inf'::FLOAT
"""


def sampled(place: Path, select: str, unit: str):
    place.unlink(missing_ok=True)
    with closing(duckdb.connect(place)) as made:
        made.execute(f"CREATE TABLE t AS {select}")
    with DuckDBConnection({"t": f"{place}::t"}) as engine:
        return engine.sample("t", unit=unit, salt="s").reveal_without_noise()


@pytest.mark.lengthy
def test_whatever_a_cell_holds_a_sample_is_taken(tmp_path):
    cells = [one.strip() for one in ODD.split(";")]
    columns = ", ".join(f"{one} AS c{i}" for i, one in enumerate(cells))
    for unit in ("c0", "c9", "c22"):
        content = sampled(tmp_path / "t.duckdb", f"SELECT {columns}", unit)
        assert len(content.rows) == 1
        assert "1.5" in content.rows[0]
        assert max(len(one) for one in content.rows[0] if one) <= 64
    assert sampled(tmp_path / "t.duckdb", "SELECT [1] AS x", "y").samples == []


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("forms", "value"),
    [
        (("BIGINT", "DOUBLE", "VARCHAR", "USMALLINT", "DECIMAL(9, 3)", "FLOAT"), "range"),
        (("DATE", "TIMESTAMP", "VARCHAR", "TIMESTAMPTZ"), "DATE '2026-01-01' + range::INTEGER"),
        (("VARCHAR", "BLOB"), "'Ab' || range"),
    ],
)
def test_the_same_values_are_sampled_from_every_type(tmp_path, forms, value):
    found = []
    for form in forms:
        select = f"SELECT ({value})::{form} AS x, range % 7 AS y FROM range(900)"
        (sample, *_) = sampled(tmp_path / "t.duckdb", select, "x").samples
        found.append((sample.hashes, sample.limit, sample.values, sample.times, sample.beside))
    assert found == found[:1] * len(found)
    assert len(found[0][0]) == 511


def test_the_salt_decides_which_values_those_are(tmp_path):
    with DuckDBConnection({"t": {"x": list(range(3000))}}) as engine:
        first, again, other = (
            engine.sample("t", unit="x", salt=salt).reveal_without_noise().samples[0]
            for salt in ("a", "a", "b")
        )
    assert first.values == again.values
    assert len(set(first.values) & set(other.values)) < 300  # 87 are expected
