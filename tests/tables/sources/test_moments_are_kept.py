"""Moments come out of every source as they went in: no hour is lost, and no time zone refused."""

from datetime import datetime

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import DuckDBConnection, open_sources
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.sql.parse import parse

HOURS = list(range(24))


def hours(source):
    """Return the types of the columns, and the hours of the column t that a question sees."""
    sources = open_sources({"visits": source})
    columns = dict(sources["visits"].columns)
    table = Table(
        name="visits",
        columns=tuple(Column(name=name, type=type_) for name, type_ in columns.items()),
    )
    catalog = Catalog(unit=Unit.column("id"), neighbours=Neighbours.add_remove, tables=(table,))
    rows = parse("SELECT EXTRACT(hour FROM t) AS h, COUNT(*) FROM visits GROUP BY h", catalog).rows
    with DuckDBConnection(sources) as engine:
        found = engine.rows(rows).reveal_without_noise()
    return columns, found["key_0"].to_pylist()


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("%Y-%m-%d %H:%M:%S", "TIMESTAMP"),
        ("%Y-%m-%d %H:%M", "TIMESTAMP"),
        ("%Y-%m-%dT%H:%M:%S", "TIMESTAMP"),
        ("%Y-%m-%dT%H:%M:%SZ", "TIMESTAMP"),
        ("%Y-%m-%d %H:%M:%S.%f", "TIMESTAMP"),
        ("%Y-%m-%d", "DATE"),
        (" %Y/%m/%d ", "DATE"),
    ],
)
def test_a_clock_in_a_csv_file_is_not_lost(tmp_path, pattern, kind):
    path = tmp_path / "visits.csv"
    lines = [f"{hour},{datetime(2026, 1, 31, hour):{pattern}}" for hour in HOURS]  # noqa: DTZ001
    path.write_text("id,t\n" + "\n".join(lines) + "\n")
    columns, found = hours(path)
    assert columns["t"] == kind
    assert found == (HOURS if kind == "TIMESTAMP" else [0] * 24)


def test_days_with_few_clocks_among_them_stay_days_and_others_do_not(tmp_path):
    for clocks, kind in ((1, "DATE"), (3, "TIMESTAMP")):  # a tenth may be misfits
        path = tmp_path / f"{clocks}.csv"
        fields = ["2026-01-31 07:00:00"] * clocks + ["2026-01-31"] * (20 - clocks)
        path.write_text("id,t\n" + "".join(f"{i},{field}\n" for i, field in enumerate(fields)))
        assert hours(path)[0]["t"] == kind


def zoned(unit):
    moments = pd.date_range("2026-01-31", periods=24, freq="h", tz="UTC", unit=unit)
    return pd.DataFrame({"id": HOURS, "t": moments.tz_convert("Asia/Kolkata")})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("form", ["pandas", "arrow", "parquet", "duckdb"])
def test_time_zones_are_read_in_every_unit(tmp_path, unit, form):
    frame = zoned(unit)
    source = {"pandas": frame, "arrow": pa.Table.from_pandas(frame)}.get(form)
    if form == "parquet":
        source = tmp_path / "visits.parquet"
        pq.write_table(pa.Table.from_pandas(frame), source)
    elif form == "duckdb":
        with duckdb.connect(tmp_path / "a.duckdb") as connection:
            connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
        source = f"{tmp_path / 'a.duckdb'}::visits"
    assert hours(source)[1] == HOURS  # in UTC, whatever the zone


def test_time_zones_in_nanoseconds_beside_coarser_times(tmp_path):
    moments = pa.array([1, 3_600_000_000_001, None], pa.timestamp("ns", "UTC"))
    table = pa.table({"id": [1, 2, 3], "t": moments, "s": pa.array([0, 1, 2], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "visits.parquet")
    assert hours(tmp_path / "visits.parquet")[1] == [0, 1, None]
