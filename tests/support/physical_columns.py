"""Columns of every physical type that a source can hold, good values beside the worst ones."""

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

PEOPLE = 40
LARGEST = 2**63 - 1
DAY = datetime.date(2026, 1, 31)
NOON = datetime.datetime.combine(DAY, datetime.time(12))


@dataclass(frozen=True)
class PhysicalColumn:
    """Good values of one physical type, bad ones by name, and how a column is made of them."""

    name: str
    good: Sequence[Any]
    bad: dict[str, Any]
    make: Callable[[list[Any]], Any]

    def values(self, bad: str, place: str) -> list[Any]:
        """Return a value for each person, and the bad one at a place of :data:`PLACES`."""
        good = [self.good[i % len(self.good)] for i in range(PEOPLE)]
        return _placed(good, self.bad[bad], place)


PLACES = ("last", "first", "swapped")
"""Where one more row is; the last of these is in the place of somebody's. Else it is left out."""


def _placed(values: list[Any], one: Any, place: str) -> list[Any]:
    if place not in PLACES:
        return values
    kept = values[1:] if place == "swapped" else values
    return [*kept, one] if place == "last" else [one, *kept]


@dataclass(frozen=True)
class People:
    """A table of people, with a bad row or without: columns x0, x1, ... beside the unit u."""

    columns: Sequence[tuple[PhysicalColumn, str]]  # each with the name of its bad value
    place: str = "without"

    @property
    def units(self) -> list[int]:
        return _placed(list(range(PEOPLE)), 99, self.place)

    @property
    def named(self) -> dict[str, PhysicalColumn]:
        return {f"x{i}": column for i, (column, _) in enumerate(self.columns)}

    @property
    def values(self) -> dict[str, list[Any]]:
        listed = [column.values(bad, self.place) for column, bad in self.columns]
        return dict(zip(self.named, listed, strict=True))


def _arrow(type_: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.array(values, type_)


def _raw(type_: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    """Make a column of the integers or bytes behind it; nothing checks what they stand for."""

    def make(values: list[Any]) -> pa.Array:
        if pa.types.is_large_string(type_):
            plain = pa.array(values, pa.large_binary())
        elif pa.types.is_string(type_):
            plain = pa.array(values, pa.binary())
        elif pa.types.is_string_view(type_):
            plain = pa.array(values, pa.binary_view())
        else:
            plain = pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64())
        return pa.Array.from_buffers(type_, len(plain), plain.buffers(), plain.null_count)

    return make


def _dictionary(inner: Callable[[list[Any]], pa.Array]) -> Callable[[list[Any]], pa.Array]:
    def make(values: list[Any]) -> pa.Array:
        known = list(dict.fromkeys(values))
        places = pa.array([known.index(value) for value in values], pa.int32())
        return pa.DictionaryArray.from_arrays(places, inner(known))

    return make


def _times(unit: str) -> tuple[list[int], dict[str, int | None]]:
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    good = [1_769_860_800 * second + i * 86_400 * second for i in range(4)]
    bad: dict[str, int | None] = {
        "far": 10**17,
        "largest": LARGEST,
        "nearly largest": LARGEST - 1,
        "lowest": -LARGEST - 1,
        "nearly lowest": -LARGEST,
        "none": None,
    }
    if unit != "ns":
        bad |= {"year 0": -62_198_755_200 * second, "year 294247": 9_223_372_036_800 * second}
    return good, bad


FLOATS = {"nan": float("nan"), "inf": float("inf"), "-0": -0.0, "none": None}
TEXTS: dict[str, Any] = {
    "no unicode": b"\xff\xfe", "empty": b"", "nul": b"a\0b", "cut off": b"caf\xc3",
    "surrogate": b"\xed\xa0\x80", "long": b"x" * 100_000, "quotes": b"it's \"so\"\n;--",
    "none": None,
}  # fmt: skip


def arrow_columns() -> Iterator[PhysicalColumn]:
    """Yield a column of each type of Arrow, which Parquet and frames have, too."""
    for bits in (8, 16, 32, 64):
        for sign in ("int", "uint"):
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            low, high = (low, high) if sign == "int" else (0, 2**bits - 1)
            type_ = pa.type_for_alias(f"{sign}{bits}")
            bad = {"low": low, "high": high, "none": None}
            yield PhysicalColumn(f"{sign}{bits}", [1, 2, 3], bad, _arrow(type_))
    for bits in (16, 32, 64):
        kind = np.dtype(f"float{bits}").type

        def floats(values: list[Any], kind: Any = kind, bits: int = bits) -> pa.Array:
            return pa.array([None if v is None else kind(v) for v in values], f"float{bits}")

        largest = {"largest": float(np.finfo(kind).max), "least": float(np.finfo(kind).tiny)}
        yield PhysicalColumn(f"float{bits}", [0.5, 1.5, 2.0], FLOATS | largest, floats)
    with decimal.localcontext(prec=100):
        for name, type_ in (
            ("decimal(10, 2)", pa.decimal128(10, 2)),
            ("decimal(38, 0)", pa.decimal128(38, 0)),
            ("decimal(38, 30)", pa.decimal128(38, 30)),
            ("decimal256(38, 2)", pa.decimal256(38, 2)),
            ("decimal256(76, 0)", pa.decimal256(76, 0)),
        ):
            most = (decimal.Decimal(10) ** type_.precision - 1).scaleb(-type_.scale)
            bad = {"high": most, "low": -most, "none": None}
            good = [decimal.Decimal(1), decimal.Decimal(2)]
            yield PhysicalColumn(name, good, bad, _arrow(type_))
    yield PhysicalColumn("boolean", [True, False], {"none": None}, _arrow(pa.bool_()))
    for name, type_ in (
        ("text", pa.string()), ("large text", pa.large_string()), ("text view", pa.string_view()),
    ):  # fmt: skip
        yield PhysicalColumn(name, [b"north", b"south", b"10"], TEXTS, _raw(type_))
    yield PhysicalColumn("categories", [b"north", b"south"], TEXTS, _dictionary(_raw(pa.string())))
    numbers = _dictionary(_arrow(pa.int64()))
    yield PhysicalColumn("categories of numbers", [1, 2], {"high": LARGEST}, numbers)
    for unit in ("s", "ms", "us", "ns"):
        good, bad = _times(unit)
        for zone in (None, "UTC", "Europe/Berlin"):
            make = _raw(pa.timestamp(unit, zone))
            yield PhysicalColumn(f"timestamp {unit} {zone or ''}".strip(), good, bad, make)
        yield PhysicalColumn(f"duration {unit}", [1, 2], bad, _raw(pa.duration(unit)))
    moments = _dictionary(_raw(pa.timestamp("s", "UTC")))
    yield PhysicalColumn("categories of moments", [0, 1], {"largest": LARGEST}, moments)
    ends = {"high": 2**31 - 1, "low": -(2**31), "none": None}
    yield PhysicalColumn("date32", [20_000, 20_001], ends, _raw(pa.date32()))
    day = 86_400_000
    bad = {"far": day * 2**31, "end": LARGEST // day * day, "no day": 1, "none": None}
    yield PhysicalColumn("date64", [20_000 * day, 20_001 * day], bad, _raw(pa.date64()))
    clocks = {"below": -1, "above": 2**31 - 1, "none": None}
    for unit, clock in (
        ("s", pa.time32("s")), ("ms", pa.time32("ms")),
        ("us", pa.time64("us")), ("ns", pa.time64("ns")),
    ):  # fmt: skip
        last = {} if unit in ("s", "ms") else {"largest": LARGEST}
        yield PhysicalColumn(f"time {unit}", [1, 2], clocks | last, _raw(clock))
    for name, type_, good in (
        ("binary", pa.binary(), [b"a", b"b"]),
        ("sixteen bytes", pa.binary(16), [b"a" * 16, b"b" * 16]),
        ("uuid", pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes]),
    ):
        worst = b"\xff" * 16
        yield PhysicalColumn(name, good, {"bytes": worst, "none": None}, _arrow(type_))
    yield PhysicalColumn(
        "list", [[1], [2]], {"empty": [], "none": None}, _arrow(pa.list_(pa.int64()))
    )

    def lists(values: list[Any]) -> pa.Array:
        return pa.ListArray.from_arrays(np.arange(len(values) + 1), _raw(pa.string())(values))

    yield PhysicalColumn("list of texts", [b"a", b"b"], {"no unicode": b"\xff"}, lists)

    def structs(values: list[Any]) -> pa.Array:
        return pa.StructArray.from_arrays([_raw(pa.string())(values)], ["inner"])

    yield PhysicalColumn("struct", [b"a", b"b"], {"no unicode": b"\xff"}, structs)
    type_ = pa.map_(pa.string(), pa.int64())
    yield PhysicalColumn(
        "map", [[("a", 1)], [("b", 2)]], {"none": None, "empty": []}, _arrow(type_)
    )
    yield PhysicalColumn("nothing", [None], {"none": None}, _arrow(pa.null()))


def _as_arrow(people: People, folder: Path) -> pa.Table:
    made = {name: people.named[name].make(values) for name, values in people.values.items()}
    return pa.table({"u": pa.array(people.units, pa.int64()), **made})


def _as_parquet(people: People, folder: Path) -> Path:
    path = folder / "t.parquet"
    pq.write_table(_as_arrow(people, folder), path, store_schema=False)
    return path


def _as_polars(people: People, folder: Path) -> Any:
    return pl.from_arrow(_as_arrow(people, folder))


def _as_pandas(people: People, folder: Path) -> pd.DataFrame:
    table = _as_arrow(people, folder)
    frame = table.to_pandas()
    # Integers of numpy cannot be missing: pandas makes doubles of them, before anybody protects
    # them. That is another type, which whoever makes the frame gives it (see the pitfalls).
    if any(pa.types.is_integer(f.type) and frame[f.name].dtype.kind == "f" for f in table.schema):
        raise TypeError("integers became doubles")
    return frame


def _as_typed_pandas(people: People, folder: Path) -> pd.DataFrame:
    return _as_arrow(people, folder).to_pandas(types_mapper=pd.ArrowDtype)


class _Odd:
    """An object that no library knows, and that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("secret")

    __str__ = __eq__ = __hash__ = __repr__  # type: ignore[assignment]


_OBJECTS: dict[str, Any] = {
    "odd": _Odd(), "none": None, "nan": float("nan"), "NA": pd.NA, "NaT": pd.NaT, "text": "north",
    "number": "7",
    "surrogate": "\ud800", "nul": "a\0b", "bytes": b"\xff", "int": 3, "huge": 10**400, "true": True,
    "float": 0.25, "inf": float("inf"), "decimal": decimal.Decimal("1e30"), "day": DAY,
    "decimal nan": decimal.Decimal("sNaN"), "list": [1], "dict": {"a": 1}, "complex": 1j,
    "moment": NOON, "zoned": NOON.replace(tzinfo=datetime.UTC), "first year": datetime.date.min,
    "clock": datetime.time(1), "numpy": np.float32(0.1),
    "numpy moment": np.datetime64("2026-01-31"),
    "timestamp": pd.Timestamp(2026, 1, 31), "uuid": uuid.UUID(int=1),
    "array": np.zeros(2), "bare moment": np.datetime64("NaT"), "frame": pd.DataFrame({"a": [1]}),
}  # fmt: skip


def object_columns() -> Iterator[PhysicalColumn]:
    """Yield columns of Python objects, most of which are of one type."""
    for name, good in (
        ("texts", ["north", "south"]), ("ints", [1, 2]), ("floats", [0.5, 1.5]),
        ("truths", [True, False]), ("days", [DAY]), ("moments", [NOON]),
        ("decimals", [decimal.Decimal("1.50")]), ("zoned", [NOON.replace(tzinfo=datetime.UTC)]),
        ("texts and none", ["a", None]), ("two kinds", [1, "a"]), ("bytes", [b"a"]),
        ("lists", [[1]]), ("huge", [2**80]),
    ):  # fmt: skip
        yield PhysicalColumn(f"{name} as objects", good, _OBJECTS, lambda values: values)


def _objects(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def _as_object_arrays(people: People, folder: Path) -> dict[str, Any]:
    made = {name: _objects(values) for name, values in people.values.items()}
    return {"u": np.array(people.units), **made}


def _as_object_frame(people: People, folder: Path) -> pd.DataFrame:
    made = _as_object_arrays(people, folder)
    return pd.DataFrame({name: pd.Series(made[name], dtype=made[name].dtype) for name in made})


_SQL: dict[str, tuple[list[str], dict[str, str]]] = {
    "HUGEINT": (["1", "2"], {"high": str(2**127 - 1), "low": str(-(2**127))}),
    "UHUGEINT": (["1", "2"], {"high": str(2**128 - 1)}),
    "BIGNUM": (["1", "2"], {"high": f"'{'9' * 400}'", "low": f"'-{'9' * 5000}'"}),
    "UBIGINT": (["1", "2"], {"high": str(2**64 - 1)}),
    "FLOAT": (["1.5"], {"nan": "'nan'", "inf": "'-inf'"}),
    "DOUBLE": (["1.5"], {"nan": "'nan'", "inf": "'inf'", "-0": "'-0.0'", "high": "1.8e308"}),
    "DECIMAL(38, 10)": (["1.5", "2"], {"high": "9" * 28}),
    "VARCHAR": (["'a'", "'b'"], {"nul": "'a' || chr(0) || 'b'", "long": "repeat('é', 100000)"}),
    "UUID": ([f"'{uuid.UUID(int=1)}'"], {"high": f"'{uuid.UUID(int=2**128 - 1)}'"}),
    "ENUM('a', 'b', 'rare')": (["'a'", "'b'"], {"rare": "'rare'"}),
    "BIT": (["'101'"], {"long": f"'{'01' * 500}'"}),
    "BLOB": (["'a'"], {"bytes": r"'\xFF'"}),
    "DATE": (["'2026-01-31'"], {"inf": "'infinity'", "low": "'5877642-06-25 (BC)'",
        "high": "'5881580-07-10'"}),
    "TIMESTAMP": (["'2026-01-31 12:00:00'"], {"inf": "'-infinity'",
        "low": "'290309-12-22 (BC) 00:00:00'", "high": "'294247-01-10 04:00:54.775806'"}),
    "TIMESTAMP_S": (["'2026-01-31 12:00:00'"], {"inf": "'infinity'",
        "high": "'294247-01-10 04:00:54'", "low": "'290309-12-22 (BC) 00:00:00'"}),
    "TIMESTAMP_MS": (["'2026-01-31 12:00:00'"], {"inf": "'infinity'",
        "high": "'294247-01-10 04:00:54'", "low": "'290309-12-22 (BC) 00:00:00'"}),
    "TIMESTAMP_NS": (["'2026-01-31 12:00:00'"], {"inf": "'infinity'",
        "high": "'2262-04-11 23:47:16'", "low": "'1677-09-22 00:00:00'"}),
    "TIMESTAMPTZ": (["'2026-01-31 12:00:00+00'"], {"inf": "'infinity'",
        "high": "'294247-01-10 04:00:54.775806+00'", "low": "'290309-12-22 (BC) 00:00:00+00'"}),
    "TIME": (["'12:00:00'"], {"last": "'24:00:00'"}),
    "TIMETZ": (["'12:00:00+00'"], {"last": "'24:00:00-15:59'"}),
    "INTERVAL": (["INTERVAL 1 DAY"], {"long": "INTERVAL 2147483647 MONTH"}),
    "INTEGER[]": (["[1]"], {"empty": "[]"}),
    "STRUCT(a INTEGER)": (["{'a': 1}"], {"null": "{'a': NULL}"}),
    "JSON": (["'{\"a\": 1}'"], {"null": "'null'"}),
    "BOOLEAN": (["true", "false"], {}),
}  # fmt: skip


def database_columns() -> Iterator[PhysicalColumn]:
    """Yield a column of each type of DuckDB's own tables; values are written in SQL."""
    for type_, (good, bad) in _SQL.items():
        yield PhysicalColumn(type_, good, bad | {"none": "NULL"}, lambda values: values)


def _as_database(people: People, folder: Path) -> str:
    path = folder / "t.duckdb"
    path.unlink(missing_ok=True)
    types = ", ".join(f"{name} {column.name}" for name, column in people.named.items())
    rows = zip(people.units, *people.values.values(), strict=True)
    lines = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (u BIGINT, {types})")
        connection.execute(f"INSERT INTO t VALUES {lines}")
    return f"{path}::t"


_LINES: dict[str, Any] = {
    "open quote": b'"a', "empty": b"", "no unicode": b"\xff\xfe", "nul": b"a\0b",
    "quotes": b'"a ""b"""', "two lines": b'"a\nb"', "returns": b"a\rb", "few fields": None,
    "many fields": b"1,2,3,4",
    "long": b"9" * 3_000_000, "huge": b"9" * 400, "text": b"north", "number": b"7.25", "int": b"-3",
    "nan": b"nan", "inf": b"-inf", "infinity": b"infinity", "true": b"true", "day": b"2026-01-31",
    "far day": b"5881580-07-10", "moment": b"2026-01-31 12:00:00.000001",
    "far moment": b"294247-01-10 04:00:54.775807", "year 0": b"0000-01-01", "epoch": b"epoch",
    "before": b"290309-12-22 (BC) 00:00:00", "zoned": b"2026-01-31 12:00:00+15:59", "tab": b"\t",
}  # fmt: skip


_TEXTS = ("open quote", "empty", "no unicode", "nul", "quotes", "two lines", "few fields", "text")


def text_columns() -> Iterator[PhysicalColumn]:
    """Yield columns of CSV files by what most of their fields look like."""
    for name, good in (
        ("texts", [b"north", b"south"]), ("ints", [b"1", b"2"]), ("floats", [b"0.5", b"1.5"]),
        ("truths", [b"true", b"false"]), ("days", [b"2026-01-31", b"2026-02-01"]),
        ("moments", [b"2026-01-31 12:00:00"]), ("two kinds", [b"1", b"a"]), ("nothing", [b""]),
    ):  # fmt: skip
        # A column that is empty but for one line has the type that this line is guessed to have,
        # once: it is kept then.
        bad = {k: v for k, v in _LINES.items() if name != "nothing" or k in _TEXTS}
        yield PhysicalColumn(f"{name} in lines", good, bad, lambda values: values)


def _as_csv(people: People, folder: Path) -> Path:
    lines = [
        b",".join([b"%d" % unit, *(value for value in values if value is not None)])
        for unit, *values in zip(people.units, *people.values.values(), strict=True)
    ]
    path = folder / "t.csv"
    path.write_bytes(b"\n".join([",".join(["u", *people.named]).encode(), *lines]) + b"\n")
    return path


Maker = Callable[[People, Path], Any]
SOURCES: dict[str, tuple[Callable[[], Iterator[PhysicalColumn]], Maker]] = {
    "parquet": (arrow_columns, _as_parquet),
    "arrow": (arrow_columns, _as_arrow),
    "polars": (arrow_columns, _as_polars),
    "pandas": (arrow_columns, _as_pandas),
    "pandas of arrow": (arrow_columns, _as_typed_pandas),
    "pandas objects": (object_columns, _as_object_frame),
    "arrays of objects": (object_columns, _as_object_arrays),
    "duckdb": (database_columns, _as_database),
    "csv": (text_columns, _as_csv),
}
"""Each kind of source: which columns it can hold, and how a table of people is made of one."""
