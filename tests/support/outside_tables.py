# ruff: noqa: E501 (rows of a table read better on one line)
"""Tables for questions that others thought of: generated, with units and bounds declared."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

OUTSIDE = Path(__file__).parents[1] / "tables" / "cases" / "outside"
OUTCOMES = ("answered", "rewritten", "refused", "lists")


@dataclass(frozen=True)
class OutsideCase:
    """One question, where it is from, and what it gives."""

    source: str
    item: str
    sql: str
    outcome: str = "answered"
    rewrite: str | None = None
    check: str | None = None
    code: str | None = None
    reason: str | None = None
    tolerance: float = 0.01
    is_empty: bool = False

    @property
    def name(self) -> str:
        return f"{self.source}, {self.item}"


def outside_cases() -> Iterator[OutsideCase]:
    for path in sorted(OUTSIDE.glob("*.toml")):
        with path.open("rb") as file:
            found = tomllib.load(file)
        for one in found["case"]:
            yield OutsideCase(source=path.stem, **one)


# Whole numbers stand for chance: i * 7919 % n goes through all of 0 ... n - 1.

PEOPLE = {
    "numbers": """
        SELECT i AS person, (i * 7919 % 41) % 21 - 10 AS x, (i * 104729 % 1000) / 100.0 + 0.3 * ((i * 7919 % 41) % 21) AS y,
            ['apple', 'apple', 'apple', 'banana', 'banana', 'pear'][1 + i * 31 % 6] AS fruit
        FROM range(3000) r(i)""",
    "events": """
        SELECT i % 1000 AS person, DATE '2026-01-01' + CAST(i % 30 AS INTEGER) AS day,
            CASE WHEN i % 30 % 7 = 3 THEN 'FAILURE' ELSE 'SUCCESS' END AS kind
        FROM range(3000) r(i)""",
    "stock": """
        SELECT i AS person, ['shirt', 'shirt', 'pants'][1 + i % 3] AS type,
            ['t-shirt', 'polo', 'jeans'][1 + i % 3] AS name, 3 + i * 13 % 20 + i % 3 AS amount
        FROM range(3000) r(i)""",
    "players": """
        SELECT i AS person, ['Adams', 'Buchanan', 'Coolidge', 'Davis'][1 + i * 7 % 10 % 4] AS last_name,
            ['Noam', 'Jie', 'Kiran'][1 + i * 11 % 13 % 3] AS first_name, i * 17 % 14 AS points
        FROM range(3000) r(i)""",
    "weather": """
        SELECT i AS person, ['San Francisco', 'Hayward', 'Santa Fe', 'athens', 'bern'][1 + i * 7 % 12 % 5] AS city,
            20 + (i * 37 % 31) + 8 * (i * 7 % 12 % 5) AS low
        FROM range(3000) r(i)""",
    "purchases": """
        SELECT i % 1000 AS person, 1 + i * 7 % 11 % 4 AS product, 1 + i * 13 % 9 AS units,
            DATE '2026-04-01' + CAST(i * 29 % 90 AS INTEGER) AS day
        FROM range(4000) r(i)""",
    "orders": """
        SELECT i % 1000 AS person, 1 + i * 7 % 11 % 4 AS product, 20 + i % 7 AS price, 1 + i * 13 % 9 AS quantity,
            ['SF', 'SJ', 'Miami', 'Orlando'][1 + i * 3 % 10 % 4] AS city, ['CA', 'CA', 'FL', 'FL'][1 + i * 3 % 10 % 4] AS state
        FROM range(4000) r(i)""",
    "sales": """
        SELECT i % 1500 AS person, ['north', 'south', 'east', 'west', 'north'][1 + (i * i + i) % 101 % 5] AS region,
            ['tea', 'salt', 'rice'][1 + i * 5 % 7 % 3] AS product, 1 + i * 13 % 9 AS quantity, 5 + i * 37 % 100 AS amount,
            CASE WHEN i % 10 > 0 THEN DATE '2025-07-01' + CAST(i * 29 % 500 AS INTEGER) END AS day
        FROM range(4500) r(i)""",
    "addresses": """
        SELECT i AS person, ['Delft', 'Leiden', 'Breda'][1 + i * 7 % 11 % 3] AS city,
            ['Main', 'Oak', 'Park'][1 + i * 5 % 13 % 3] AS street, 100 + i * 37 % 900 + (i % 50 = 0)::INTEGER * 4000 AS income
        FROM range(3000) r(i)""",
    "students": """
        SELECT i AS person, ['CS', 'Maths', 'CS'][1 + i * 7 % 11 % 3] AS course,
            CASE WHEN i * 5 % 13 < 6 THEN 'Bachelor' WHEN i * 5 % 13 < 10 THEN 'PhD' END AS type
        FROM range(3000) r(i)""",
    "hits": """
        SELECT i % 4000 AS person, i AS watch, k * 3 % 7 % 5 AS campaign, 800 + 40 * (k % 4) AS width,
            600 + 100 * (k * 7 % 2) AS height, ['', 'tea', 'green tea', 'rice', 'salt', 'tea pot', 'pan', ''][1 + k * 11 % 23 % 8] AS phrase,
            DATE '2026-07-01' + CAST(k % 3 * 7 AS INTEGER) AS day,
            TIMESTAMP '2026-07-01 10:00:00' + to_minutes(k % 3 * 7 * 1440 + k % 2) AS moment, k * 13 % 29 % 7 AS region,
            ['', 'P1', 'P2', 'P3'][1 + k * 17 % 13 % 4] AS model, k * 17 % 13 % 4 AS maker, k * 5 % 11 % 3 AS engine,
            'https://' || ['a', 'bb', 'ccc', 'dddd'][1 + k * 19 % 17 % 4] || '.example/' || ['shop', 'news', 'shop/x'][1 + k * 23 % 13 % 3] AS url,
            ['Shop', 'News', 'My Shop'][1 + k * 23 % 13 % 3] AS title, k * 29 % 11 % 4 AS counter,
            'https://' || ['x', 'yy'][1 + k * 31 % 7 % 2] || '.example/from' AS referer, k * 3 % 13 % 2 AS is_refresh,
            k * 37 % 17 % 6 AS address, k * 5 % 23 % 2 AS is_hidden, k * 5 % 19 % 2 AS is_link, k * 11 % 31 % 2 AS is_download,
            k * 19 % 17 % 4 AS url_hash, k * 31 % 7 % 4 AS referer_hash
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(24000) r(i))""",
}  # fmt: skip

PUBLIC = {
    "fruits": "SELECT unnest(['apple', 'pear', 'fig']) AS fruit",
    "products": """
        SELECT unnest([1, 2, 3, 4]) AS product, unnest(['tea', 'salt', 'rice', 'pan']) AS name,
            unnest([20, 21, 22, 23]) AS price, unnest([11, 12, 13, 14]) AS cost""",
}

COLUMNS: dict[str, dict[str, Any]] = {
    "numbers": {"x": {"bounds": (-10, 10)}, "y": {"bounds": (0, 20)}},
    "stock": {"amount": {"bounds": (0, 30)}},
    "players": {"points": {"bounds": (0, 20)}},
    "weather": {"low": {"bounds": (0, 100)}},
    "purchases": {"units": {"bounds": (0, 10)}},
    "orders": {"price": {"bounds": (0, 50)}, "quantity": {"bounds": (0, 10)}},
    "sales": {"amount": {"bounds": (0, 200)}, "quantity": {"bounds": (0, 10)}},
    "addresses": {"income": {"bounds": (0, 6000)}},
    "hits": {
        "campaign": {"bounds": (0, 10)}, "width": {"bounds": (0, 2000)},
        "is_refresh": {"bounds": (0, 1)}, "person": {"bounds": (0, 4000)},
    },
}  # fmt: skip

_NATIONS = [
    "ALGERIA",
    "ARGENTINA",
    "BRAZIL",
    "CANADA",
    "EGYPT",
    "ETHIOPIA",
    "FRANCE",
    "GERMANY",
    "INDIA",
    "INDONESIA",
    "IRAN",
    "IRAQ",
    "JAPAN",
    "JORDAN",
    "KENYA",
    "MOROCCO",
    "MOZAMBIQUE",
    "PERU",
    "CHINA",
    "ROMANIA",
    "SAUDI_ARABIA",
    "VIETNAM",
    "RUSSIA",
    "UK",
    "US",
]
_REGION_OF = [
    "0",
    "1",
    "1",
    "1",
    "4",
    "0",
    "3",
    "3",
    "2",
    "2",
    "4",
    "4",
    "2",
    "4",
    "0",
    "0",
    "0",
    "1",
    "2",
    "3",
    "4",
    "2",
    "3",
    "3",
    "1",
]

TPCH_PUBLIC = {
    "region": """
        SELECT unnest(range(5)) AS r_regionkey, unnest(['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']) AS r_name""",
    "nation": f"""
        SELECT unnest(range(25)) AS n_nationkey, replace(unnest({_NATIONS}), '_', ' ') AS n_name,
            CAST(unnest({_REGION_OF}) AS BIGINT) AS n_regionkey""",
    "supplier": """
        SELECT i AS s_suppkey, 'Supplier ' || i AS s_name, 'Street ' || i AS s_address, i % 25 AS s_nationkey, 'p' || i AS s_phone,
            i * 37 % 1000 AS s_acctbal, CASE WHEN i % 9 = 0 THEN 'Customer Complaints' ELSE 'none' END AS s_comment
        FROM range(25) r(i)""",
    "part": """
        SELECT i AS p_partkey, ['green tea', 'forest honey', 'salt'][1 + i % 3] AS p_name, 'Mfgr' || i % 5 AS p_mfgr,
            'Brand#' || [12, 23, 34, 45][1 + i % 4] AS p_brand,
            ['PROMO BRASS', 'ECONOMY ANODIZED STEEL', 'MEDIUM POLISHED TIN', 'SMALL BRASS'][1 + i * 7 % 11 % 4] AS p_type,
            [15, 3, 9, 14, 5][1 + i * 3 % 5] AS p_size, ['MED BOX', 'SM CASE', 'LG BOX', 'MED BAG'][1 + i // 4 % 4] AS p_container
        FROM range(40) r(i)""",
    "partsupp": """
        SELECT i % 40 AS ps_partkey, (i % 40 * 7 + i // 40 * 6) % 25 AS ps_suppkey, 300 + i * 31 % 600 AS ps_availqty,
            1 + i * 13 % 50 AS ps_supplycost
        FROM range(200) r(i)""",
}  # fmt: skip

TPCH = {
    "customer": """
        SELECT i AS custkey, i AS c_custkey, 'Customer ' || i AS c_name, 'Road ' || i AS c_address,
            CASE i % 3 WHEN 0 THEN 6 + i // 3 % 2 WHEN 1 THEN [8, 9, 12, 18, 21][1 + i // 3 % 5] ELSE i * 7 % 25 END AS c_nationkey,
            [13, 31, 23, 29, 30, 18, 17, 40][1 + i * 5 % 8] || '-' || i AS c_phone, i * 7919 % 10000 AS c_acctbal,
            ['BUILDING', 'MACHINERY'][1 + i % 2] AS c_mktsegment, 'none' AS c_comment
        FROM range(6000) r(i)""",
    "orders": """
        SELECT i % 4500 AS custkey, i AS o_orderkey, i % 4500 AS o_custkey, ['F', 'O', 'P'][1 + i * 3 % 7 % 3] AS o_orderstatus,
            100 + i * 37 % 900 AS o_totalprice, DATE '1992-01-01' + CAST(i * 7919 % 2400 AS INTEGER) AS o_orderdate,
            ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-LOW'][1 + i * 5 % 7 % 4] AS o_orderpriority, 0 AS o_shippriority,
            CASE WHEN i % 11 = 0 THEN 'special handling requests' ELSE 'none' END AS o_comment
        FROM range(18000) r(i)""",
    "lineitem": """
        SELECT i % 18000 % 4500 AS custkey, i % 18000 AS l_orderkey, i * 7 % 40 AS l_partkey, (i * 7 % 40 * 7 + i // 7 % 5 * 6) % 25 AS l_suppkey,
            1 + i * 13 % 50 AS l_quantity, 100 + i * 37 % 900 AS l_extendedprice, CAST((i * 3 % 11) / 100 AS DECIMAL(15, 2)) AS l_discount,
            CAST((i * 5 % 9) / 100 AS DECIMAL(15, 2)) AS l_tax,
            ['R', 'A', 'N'][1 + i * 3 % 7 % 3] AS l_returnflag, ['F', 'O'][1 + i * 3 % 5 % 2] AS l_linestatus,
            DATE '1992-01-01' + CAST(i % 18000 * 7919 % 2400 + 1 + i * 11 % 60 AS INTEGER) AS l_shipdate,
            DATE '1992-01-01' + CAST(i % 18000 * 7919 % 2400 + 30 + (i * 17 + i // 18000 * 23) % 60 AS INTEGER) AS l_commitdate,
            DATE '1992-01-01' + CAST(i % 18000 * 7919 % 2400 + 10 + i * 11 % 60 + i * 13 % 30 AS INTEGER) AS l_receiptdate,
            'DELIVER IN PERSON' AS l_shipinstruct, ['MAIL', 'SHIP', 'AIR', 'AIR REG'][1 + i * 3 % 13 % 4] AS l_shipmode
        FROM range(54000) r(i)""",
}  # fmt: skip

TPCH_COLUMNS: dict[str, dict[str, Any]] = {
    "customer": {"c_acctbal": {"bounds": (0, 10000)}},
    "lineitem": {
        "l_quantity": {"bounds": (0, 50)}, "l_extendedprice": {"bounds": (0, 1000)},
        "l_discount": {"bounds": (0, 0.1)}, "l_tax": {"bounds": (0, 0.1)},
    },
}  # fmt: skip


def made(connection: duckdb.DuckDBPyConnection, tables: dict[str, str]) -> dict[str, Any]:
    """Make tables in a database, and return them as Arrow has them."""
    found = {}
    for name, sql in tables.items():
        connection.execute(f"CREATE TABLE {name} AS {sql}")
        found[name] = connection.table(name).to_arrow_table()
    return found


def plain_rows(columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of comparable values."""
    return [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if value is None or value != value:
        return None
    if isinstance(value, datetime | date):
        return value.isoformat().replace("T", " ").removesuffix(" 00:00:00")
    return float(value) if isinstance(value, int | float | Decimal) else str(value)


def unmatched(
    shown: list[tuple[Any, ...]], meant: list[tuple[Any, ...]], tolerance: float
) -> list[tuple[Any, ...]]:
    """Return the rows that were meant and are not shown, each row shown for one that was meant."""
    left, missing = list(shown), []
    for true in meant:
        for place, row in enumerate(left):
            if all(map(lambda a, b: _is_close(a, b, tolerance), row, true)):
                del left[place]
                break
        else:
            missing.append(true)
    return missing


def _is_close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= tolerance * max(1.0, abs(other))
    return bool(one == other)
