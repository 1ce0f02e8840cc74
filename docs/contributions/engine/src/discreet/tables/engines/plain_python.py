"""An engine of plain Python: slow, exact, and short enough to be read in one go."""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, final
from zoneinfo import ZoneInfo

import pyarrow as pa

from discreet.errors import DataError
from discreet.privacy import Sensitive
from discreet.tables.engines import (
    WEIGHT_STEPS,
    Call,
    Case,
    Cast,
    Cells,
    ColumnRef,
    DataSource,
    Distinct,
    Fold,
    GroupedRows,
    Groups,
    Joined,
    Literal,
    Profile,
    Rows,
    Scalar,
    Scan,
    Select,
    Statement,
    Sums,
    UnionRows,
    ValueGrid,
    partner_keys,
)  # fmt: skip

__all__ = ["PlainPythonEngine", "PlainPythonConnection"]

Row = dict[str, Any]
Group = tuple[Any, ...]
_HAIR = 1 - Fraction(1, 1 << 40)  # so that a unit that is weighed down stays below its limit
_LONGEST = 10_000
_TYPES = {
    "boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(),
    "int64": pa.int64(), "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(),
    "uint64": pa.uint64(), "double": pa.float64(), "text": pa.string(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip
_SQL = {
    pa.bool_(): "BOOLEAN", pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR", pa.date32(): "DATE", pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip


@final
@dataclass(frozen=True)
class PlainPythonEngine:
    """Tables are Arrow tables, or dicts of arrays, in this process."""

    name: ClassVar[str] = "python"

    def look(
        self,
        name: str,
        given: object,
        /,
        *,
        is_public: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Return its columns; the data is told by a digest of its rows."""
        table = given if isinstance(given, pa.Table) else pa.table(given)
        unknown = [one.name for one in table.schema if one.type not in _SQL]
        if unknown:
            raise DataError(f"column {unknown[0]!r} of table {name!r} has a type unknown here.")
        digest = hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()
        return DataSource(
            name=name,
            kind="frame",
            columns=tuple((one.name, _SQL[one.type]) for one in table.schema),
            version=digest,
            identities=(f"python:{digest}",),
            is_public=is_public,
            given=given,
            reading=table,
        )

    def version(self, source: DataSource, /) -> str:
        """Return the version that it had: frames do not change."""
        return source.version

    def open(self, sources: Mapping[str, DataSource], /) -> "PlainPythonConnection":
        """Return an engine over these tables."""
        return PlainPythonConnection({name: one.reading for name, one in sources.items()})


@final
class PlainPythonConnection:
    """Runs statements row by row."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = {name: table.to_pylist() for name, table in tables.items()}
        # Statements about the same rows come together.
        self._known: dict[tuple[Rows, str], list[Row]] = {}

    def sql(self, statement: Statement, /) -> str:
        """Return what :meth:`aggregate` would do; there is no text."""
        return str({**_fields(statement), "salt": ""})

    def rows(self, select: Select, /) -> Sensitive[pa.Table]:
        """Return rows as they are."""
        found = self._rows(select, "")
        return Sensitive(pa.table({name: [row[name] for row in found] for name in select.names}))

    def aggregate(self, statement: Statement, /) -> Sensitive[pa.Table]:
        """Run one statement."""
        units: dict[Any, list[Row]] = defaultdict(list)
        for i, row in enumerate(self._rows(statement.query.rows, statement.salt)):
            unit = i if statement.query.unit_is_row else row["unit"]
            if unit is not None:
                units[unit].append(row)
        if isinstance(statement, Sums):
            return Sensitive(_sums(statement, units))
        if isinstance(statement, Distinct):
            return Sensitive(_distinct(statement, units))
        return Sensitive(_profile(statement, units))

    def holding(self) -> AbstractContextManager[None]:
        """Return at once: the tables are in memory."""
        return nullcontext()

    def close(self) -> None:
        """Let go of the tables."""
        self._tables = {}

    def _rows(self, rows: Rows, salt: str) -> list[Row]:
        if (rows, salt) not in self._known:
            self._known = {(rows, salt): self._made(rows, salt)}
        return self._known[rows, salt]

    def _made(self, rows: Rows, salt: str) -> list[Row]:
        if isinstance(rows, UnionRows):
            return [row for part in rows.parts for row in self._made(part, salt)]
        if isinstance(rows, GroupedRows):
            groups: dict[Group, list[Row]] = defaultdict(list)
            for row in self._rows(rows.rows, salt):
                groups[tuple(row[name] for name in rows.by)].append(row)
            kept = [
                {**own[0], "": own}
                for own in groups.values()
                if rows.having is None or _value(rows.having, {**own[0], "": own}) is True
            ]
        elif isinstance(rows.source, Scan):
            kept = self._tables[rows.source.table]
        else:
            kept, nothing = [{}], Row()
            parts = {one.alias: self._rows(one.rows, salt) for one in rows.source}
            if rows.most is not None:
                parts = _uncrowded(rows.source, parts, rows.most, salt)
            for one in rows.source:
                kept = self._joined(kept, one, parts[one.alias], nothing)
                nothing |= {f"{one.alias}.{name}": None for name in one.rows.names}
        where = rows.where if isinstance(rows, Select) else ()
        kept = [row for row in kept if all(_value(node, row) is True for node in where)]
        return [{name: _value(node, row) for name, node in rows.columns} for row in kept]

    def _joined(self, before: list[Row], one: Joined, found: list[Row], nothing: Row) -> list[Row]:
        others = [{f"{one.alias}.{name}": row[name] for name in row} for row in found]
        nobody = {f"{one.alias}.{name}": None for name in one.rows.names}
        made, met = [], set()
        for row in before:
            partners = []
            for i, other in enumerate(others):
                pair = {**row, **other}
                if all(_value(node, pair) is True for node in one.on):
                    partners.append(pair)
                    met.add(i)
            keeps = one.kind in ("left", "full")
            made += partners or ([{**row, **nobody}] if keeps else [])
        if one.kind in ("right", "full"):
            made += [{**nothing, **other} for i, other in enumerate(others) if i not in met]
        return made


def _uncrowded(
    parts: Sequence[Joined], rows: Mapping[str, list[Row]], most: int, salt: str
) -> dict[str, list[Row]]:
    """Return the rows of each part without those of crowded units that are not joined."""
    units = [part.alias for part in parts if "unit" in part.rows.names]
    most = max(1, most >> sum(part.kind == "full" for part in parts))
    partners = 1
    for index, part in enumerate(parts):
        if part.alias not in units:
            own = [{f"{part.alias}.{name}": row[name] for name in row} for row in rows[part.alias]]
            keys = partner_keys(tuple(parts), index)
            alike = Counter(tuple(_value(node, row) for node in keys) for row in own)
            partners *= max(alike.values(), default=1)
    counts = {alias: Counter(row["unit"] for row in rows[alias]) for alias in units}
    root = max(1, math.floor((most // partners) ** (1 / len(units)) * (1 + 1e-12)))
    kept: dict[str, list[Row]] = {**rows, **{alias: [] for alias in units}}
    for alias in units:
        for unit, count in counts[alias].items():
            others = [counts[other][unit] or 1 for other in units if other != alias]
            crowd = partners * math.prod(others)
            own = [row for row in rows[alias] if row["unit"] == unit]
            if crowd * count > most:
                own.sort(key=lambda row: _rank(salt, row))
                own = own[: max(root, most // crowd)]
            kept[alias] += own
    return kept


# Statements.


def _fields(statement: Statement) -> Row:
    return {name: getattr(statement, name) for name in statement.__slots__}


def _table(
    statement: Sums | Distinct, found: Mapping[Group, Sequence[int]], cells: int
) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for i, key in enumerate(statement.query.keys):
        columns[f"key_{i}"] = pa.array([group[i] for group in found], _TYPES[key.type])
    if isinstance(statement, Sums) and statement.grid is not None:
        columns["place"] = pa.array([group[-1] for group in found], pa.int64())
    for i in range(cells):
        clamped = [max(-(2**62), min(own[i], 2**62)) for own in found.values()]
        columns[f"cell_{i}"] = pa.array(clamped, pa.int64())
    return pa.table(columns)


def _by_group(statement: Statement, rows: Sequence[Row]) -> dict[Group, list[Row]]:
    groups: dict[Group, list[Row]] = defaultdict(list)
    wanted = None if statement.groups is None else {tuple(group) for group in statement.groups}
    grid: ValueGrid | None = getattr(statement, "grid", None)
    needed = [f"value_{i}" for i in statement.needed] if isinstance(statement, Sums) else []
    for row in rows:
        group = tuple(row[f"key_{i}"] for i in range(len(statement.query.keys)))
        if wanted is not None and group not in wanted:
            continue
        if any(row[name] is None for name in needed):
            continue
        if grid is not None:
            share = _share(row[f"value_{grid.value}"], (grid.low, grid.high))
            group = (*group, math.floor(share * (grid.points - 1) + Fraction(1, 2)))
        groups[group].append(row)
    return groups


def _rank(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def _sums(statement: Sums, units: Mapping[Any, list[Row]]) -> pa.Table:
    size = sum(family.count for family in statement.cells)
    total: dict[Group, list[int]] = {}
    if not statement.query.keys and statement.grid is None:
        total[()] = [0] * size
    for unit, rows in units.items():
        groups = _by_group(statement, rows)
        if isinstance(statement.bounding, Groups):
            ranked = sorted(groups, key=lambda group: _rank(statement.salt, unit, group))
            groups = {group: groups[group] for group in ranked[: statement.bounding.groups]}
        for group, cells in _contribution(statement, groups).items():
            before = total.get(group, [0] * size)
            total[group] = [a + b for a, b in zip(before, cells, strict=True)]
    if statement.least is not None and statement.query.keys:
        total = {group: cells for group, cells in total.items() if cells[0]}
    return _table(statement, total, size)


def _contribution(statement: Sums, groups: Mapping[Group, list[Row]]) -> dict[Group, list[int]]:
    counts = {group: len(own) for group, own in groups.items()}
    found: dict[Group, list[int]] = {group: [] for group in groups}
    for family in statement.cells:
        each = {group: _cells(family, own) for group, own in groups.items()}
        sizes, one = counts, 1
        if family.own is not None:
            sizes, one = {group: abs(cells[0]) for group, cells in each.items()}, WEIGHT_STEPS
        for group, cells in each.items():
            weight = _weight(family.own or statement.bounding, sizes, group, one)
            found[group] += [math.trunc(cell * weight) for cell in cells]
    if statement.least is None:
        return found
    least = statement.least * WEIGHT_STEPS
    if statement.cells[0].kind == "units":
        return {g: [cells[0] * (cells[0] >= least), *cells[1:]] for g, cells in found.items()}
    rows = {
        g: n * WEIGHT_STEPS * _weight(statement.bounding, counts, g, 1) for g, n in counts.items()
    }
    return {g: cells for g, cells in found.items() if math.trunc(rows[g]) >= least}


def _weight(bounding: Any, sizes: Mapping[Group, int], group: Group, one: int) -> Fraction:
    if bounding is None:
        return Fraction(1)
    if isinstance(bounding, Groups):
        limit, square = Fraction(bounding.rows), sizes[group] ** 2
    else:
        limit, each = Fraction(bounding.limit) * one, sizes.values()
        square = sum(each) ** 2 if bounding.order == 1 else sum(n * n for n in each)
    if square <= limit**2:
        return Fraction(1)
    return limit / Fraction(math.isqrt(square << 120), 1 << 60) * _HAIR


def _cells(family: Cells, rows: list[Row]) -> list[int]:
    if family.kind == "units":
        return [WEIGHT_STEPS]
    each = [_row_cells(family, *(row[f"value_{i}"] for i in family.values)) for row in rows]
    return [sum(column) for column in zip(*each, strict=True)]


@lru_cache(maxsize=10_000)
def _row_cells(family: Cells, *values: Any) -> list[int]:
    steps, own = WEIGHT_STEPS, family.count - family.with_absent
    if any(value is None for value in values):
        return [0] * own + [steps] * family.with_absent
    if family.kind in ("rows", "present"):
        cells = [steps]
    elif family.kind in ("sum", "total"):
        share = _signed_share(values[0], family.bounds[0]) * steps
        is_sum = family.kind == "sum"
        cells = [math.trunc(share) if is_sum else math.floor(share + Fraction(1, 2))]
    else:
        shares = [_share(x, bounds) for x, bounds in zip(values, family.bounds, strict=True)]
        halves = [math.floor(share * steps) for share in shares]
        if family.kind == "linear":
            return [steps - halves[0], halves[0]] + [0] * family.with_absent
        sides = []
        for t, m in zip(shares, halves, strict=True):
            c = max(math.floor(t * t * steps), 2 * m - steps)
            sides.append((steps - 2 * m + c, 2 * (m - c), c))
        moments = [a * b // steps for a, b in product(*sides)] if len(sides) > 1 else []
        cells = list(sides[0]) if family.kind == "quadratic" else moments
    return cells + [0] * family.with_absent


def _signed_share(value: float, bounds: tuple[Fraction, Fraction]) -> Fraction:
    low, high = (Fraction(float(bound)) for bound in bounds)
    largest = max(-low, high, Fraction(0))
    return _clamped(value, low, high) / largest if largest else Fraction(0)


def _share(value: float, bounds: tuple[Fraction, Fraction]) -> Fraction:
    low, high = (Fraction(float(bound)) for bound in bounds)
    return (_clamped(value, low, high) - low) / (high - low) if high > low else Fraction(0)


def _clamped(value: float, low: Fraction, high: Fraction) -> Fraction:
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(Fraction(value), low), high)


def _distinct(statement: Distinct, units: Mapping[Any, list[Row]]) -> pa.Table:
    kept: dict[Group, set[Any]] = defaultdict(set)
    for unit, rows in units.items():
        pairs = sorted(_pairs(statement, rows), key=lambda pair: _rank(statement.salt, unit, pair))
        for group, value in pairs[: statement.most]:
            kept[group].add(value)
    bounds = statement.bounds
    if bounds is None:
        return _table(statement, {group: [len(values)] for group, values in kept.items()}, 1)
    cells = Cells(kind="sum", values=(statement.value,), bounds=(bounds,))
    sums = {
        group: [sum(_row_cells(cells, value)[0] for value in values)]
        for group, values in kept.items()
    }
    return _table(statement, sums, 1)


def _pairs(statement: Distinct | Profile, rows: list[Row]) -> set[tuple[Group, Any]]:
    named = f"value_{statement.value}"
    return {
        (group, row[named])
        for group, own in _by_group(statement, rows).items()
        for row in own
        if row[named] is not None
    }


def _profile(statement: Profile, units: Mapping[Any, list[Row]]) -> pa.Table:
    bins: dict[int, int] = defaultdict(int)
    for rows in units.values():
        square = _signed_square(statement, rows)
        if square is not None:
            bins[sum(edge * abs(edge) < square for edge in statement.edges)] += 1
    counts = pa.array(list(bins.values()), pa.int64())
    return pa.table({"bin": pa.array(list(bins), pa.int64()), "units": counts})


def _signed_square(statement: Profile, rows: list[Row]) -> Fraction | float | None:
    groups = _by_group(statement, rows)
    if statement.of == "total":
        return _squared_total(statement, groups)
    if statement.value is not None:
        pairs = _pairs(statement, rows)
        if not pairs or statement.of == "pairs":
            return Fraction(len(pairs)) ** 2 if pairs else None
        values = [value for _, value in pairs]
        x = max(values) if statement.of == "largest" else min(values)
        return float(x) if math.isinf(x) else Fraction(x) * abs(Fraction(x))
    counts = [1 if statement.once else len(own) for own in groups.values()]
    if not counts:
        return None
    return Fraction(sum(n * n for n in counts) if statement.of == "norm" else sum(counts) ** 2)


def _squared_total(statement: Profile, groups: Mapping[Group, list[Row]]) -> Fraction | None:
    assert statement.value is not None
    assert statement.bounds is not None
    cells = Cells(kind="total", values=(statement.value,), bounds=(statement.bounds,))
    named = f"value_{statement.value}"
    if all(row[named] is None for own in groups.values() for row in own):
        return None
    totals = [abs(_cells(cells, own)[0]) for own in groups.values()]
    square = sum(totals) ** 2 if statement.order == 1 else sum(n * n for n in totals)
    return Fraction(square, WEIGHT_STEPS**2)


# Expressions.


def _value(node: Scalar, row: Row) -> Any:
    match node:
        case ColumnRef():
            return row[f"{node.source}.{node.name}" if node.source else node.name]
        case Literal():
            return node.value if node.value is None else _cast(node.value, node.type)
        case Case():
            taken = (then for when, then in node.branches if _value(when, row) is True)
            return _value(next(taken, node.otherwise), row)
        case Cast():
            return _total(lambda value: _cast(value, node.type), [_value(node.value, row)])
        case Fold():
            return _fold(node, row[""])
        case Call():
            arguments = [_value(one, row) for one in node.arguments]
            if node.function in _OF_NULLS:
                return _OF_NULLS[node.function](*arguments)
            return _total(_FUNCTIONS[node.function], arguments)
    raise NotImplementedError


def _total(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Return a result, NULL where an argument is or where there is none."""
    try:
        return None if None in arguments else function(*arguments)
    except (ValueError, OverflowError):
        return None


def _fold(node: Fold, rows: list[Row]) -> Any:
    if node.value is None:
        return len(rows)
    values = [one for one in (_value(node.value, row) for row in rows) if one is not None]
    if node.function in ("count", "count_distinct"):
        return len(values if node.function == "count" else set(values))
    folds: dict[str, Callable[..., Any]] = {"minimum": min, "maximum": max, "sum": sum}
    return folds[node.function](values) if values else None


def _cast(value: Any, type_: str) -> Any:
    if type_ == "text":
        if isinstance(value, bool):
            return str(value).lower()
        return value.isoformat(" ") if isinstance(value, datetime) else str(value)
    if type_ == "double":
        return _spelled(value) if isinstance(value, str) else float(value)
    if type_ == "boolean":
        spelled = {"true": True, "false": False}
        return spelled.get(value.lower()) if isinstance(value, str) else bool(value)
    if type_ == "date":
        if isinstance(value, datetime):
            return value.date()
        return date.fromisoformat(value) if isinstance(value, str) else value
    if type_ == "timestamp":
        return datetime.fromisoformat(value) if isinstance(value, str) else _moment(value)
    number = _spelled(value) if isinstance(value, str) else value
    whole = number if isinstance(number, int) else round(number)
    bits = int(type_.lstrip("uint"))
    low, high = (0, 2**bits) if type_.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return int(whole) if low <= whole < high else None


def _spelled(text: str) -> float:
    found = float(text) if "_" not in text else math.nan
    if math.isnan(found):
        raise ValueError
    return found


def _whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


def _rounded(x: float, digits: int) -> float:
    if not math.isfinite(x):
        return x
    scale = Fraction(10) ** digits
    size = math.floor(abs(Fraction(x)) * scale + Fraction(1, 2)) / scale
    return math.copysign(float(size), x)


def _power(x: float, y: float) -> float:
    try:
        found = x**y
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    return math.nan if isinstance(found, complex) else found


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _some(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a choice among the arguments that are not NULL."""

    def chosen(*values: Any) -> Any:
        present = [value for value in values if value is not None]
        return choose(present) if present else None

    return chosen


def _and(*values: Any) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: Any) -> bool | None:
    return True if True in values else None if None in values else False


def _concat(*texts: str | None) -> str | None:
    made = "".join(text for text in texts if text is not None)
    return made if len(made) <= _LONGEST else None


def _replace(text: str, old: str, new: str) -> str | None:
    if 0 < len(old) < len(new) and len(text) * len(new) > _LONGEST * len(old):
        return None
    return text.replace(old, new) if old else text


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(first, 0) : None if length is None else max(first + length, 0)]


def _like(flags: int) -> Callable[[str, str], bool]:
    signs = {"%": ".*", "_": "."}

    def matches(text: str, pattern: str, before: str = "") -> bool:
        parts = re.findall(f"{re.escape(before)}(?s:.)|(?s:.)" if before else "(?s:.)", pattern)
        written = "".join(signs.get(part, re.escape(part[-1])) for part in parts)
        return re.fullmatch(written, text, flags | re.DOTALL) is not None

    return matches


def _split(text: str, between: str, number: int) -> str:
    parts = text.split(between)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _filling(text: str, width: int, fill: str) -> str:
    return (fill * width)[: max(width - len(text), 0)]


# Python looks at a text more than once, perhaps for long: an engine for real data needs RE2.


def _matches(text: str, pattern: str, flags: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE if flags else re.NOFLAG) is not None


def _matches_whole(text: str, pattern: str, flags: str) -> bool:
    return re.fullmatch(pattern, text, re.IGNORECASE if flags else re.NOFLAG) is not None


def _match(text: str, pattern: str, group: int) -> str:
    found = re.search(pattern, text)
    return (found[group] or "") if found else ""


def _replace_matches(text: str, pattern: str, new: str, flags: str) -> str | None:
    times = len(text) + 1 if "g" in flags else 1
    if len(text) * (1 + new.count("\\")) + times * len(new) > _LONGEST:
        return None
    case = re.IGNORECASE if "i" in flags else re.NOFLAG
    return re.sub(pattern, new, text, count=0 if "g" in flags else 1, flags=case)


def _moment(day: datetime | date) -> datetime:
    return day if isinstance(day, datetime) else datetime.combine(day, time.min)


def _zoned(moment: datetime | date) -> datetime:
    found = _moment(moment)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _months(moment: datetime | date) -> int:
    return 12 * moment.year + moment.month - 1


_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 5)  # noqa: DTZ001 - a Monday
_SPANS = {
    "week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1), "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1), "microsecond": timedelta(microseconds=1),
}  # fmt: skip
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _number_of(step: str, moment: datetime | date) -> int:
    """Count the steps since some beginning."""
    if step in _MONTHS:
        return _months(moment) // _MONTHS[step]
    return (_moment(moment) - _EPOCH) // _SPANS[step]


def _truncated(step: str, moment: datetime | date) -> datetime:
    if step in _SPANS:
        return _EPOCH + _number_of(step, moment) * _SPANS[step]
    month = _number_of(step, moment) * _MONTHS[step]
    return datetime(month // 12, month % 12 + 1, 1)  # noqa: DTZ001


def _shifted(moment: datetime | date, steps: int, unit: str) -> datetime:
    start = _moment(moment)
    if unit in _SPANS:
        return start + steps * _SPANS[unit]
    month = _months(start) + steps * _MONTHS[unit]
    first = start.replace(year=month // 12, month=month % 12 + 1, day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return first.replace(day=min(start.day, last.day))


def _part(name: str, moment: datetime | date) -> int:
    week = moment.isocalendar()
    parts = {
        "quarter": (moment.month + 2) // 3, "week": week.week, "isoyear": week.year,
        "isodow": week.weekday, "dayofweek": week.weekday % 7, "dow": week.weekday % 7,
        "dayofyear": moment.timetuple().tm_yday, "doy": moment.timetuple().tm_yday,
    }  # fmt: skip
    return int(parts[name] if name in parts else getattr(_moment(moment), name))


def _label(moment: datetime | date, period: str) -> str:
    week = moment.isocalendar()
    return {
        "day": f"{moment:%Y-%m-%d}", "month": f"{moment:%Y-%m}", "year": f"{moment:%Y}",
        "week": f"{week.year}-W{week.week:02}",
    }[period]  # fmt: skip


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


_OF_NULLS: dict[str, Callable[..., Any]] = {
    "least": _some(min), "greatest": _some(max), "coalesce": _some(lambda values: values[0]),
    "same": lambda x, y: x == y, "different": lambda x, y: x != y, "is_null": lambda x: x is None,
    "and": _and, "or": _or, "concat_present": _concat, "tagged": lambda x, y: f"{x}|{y or ''}",
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "negate": lambda x: -x, "abs": abs, "add": lambda x, y: x + y, "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y, "divide": lambda x, y: x / y if y else None,
    "remainder": lambda x, y: math.fmod(x, y) if y else None,
    "floor": _whole(math.floor), "ceil": _whole(math.ceil), "trunc": _whole(math.trunc),
    "round": _rounded, "sign": lambda x: float((x > 0) - (x < 0)),
    "sqrt": math.sqrt, "exp": _exp, "ln": math.log, "log2": math.log2, "log10": math.log10,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "atan2": math.atan2,
    "power": _power, "clamp": lambda x, low, high: min(max(x, low), high),
    "not_nan": lambda x: None if math.isnan(x) else x, "plus_zero": lambda x: x + 0.0,
    "parse_double": _spelled,
    "equal": lambda x, y: x == y, "not_equal": lambda x, y: x != y, "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y, "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y, "in": lambda x, *listed: x in listed,
    "not": lambda x: not x,
    "initcap": lambda x: "".join(w.capitalize() for w in re.split(r"([\W_]+)", x)),
    "lower": str.lower, "upper": str.upper, "trim": lambda x, signs=" ": x.strip(signs),
    "ltrim": lambda x, signs=" ": x.lstrip(signs), "rtrim": lambda x, signs=" ": x.rstrip(signs),
    "length": len, "substring": _substring, "left": lambda x, n: x[:n],
    "right": lambda x, n: x[-n:] if n else "", "concat": _concat, "replace": _replace,
    "starts_with": str.startswith, "ends_with": str.endswith, "contains": lambda x, y: y in x,
    "matches": _matches, "matches_whole": _matches_whole, "match": _match,
    "replace_matches": _replace_matches, "split_part": _split,
    "pad_left": lambda x, n, fill: _filling(x, n, fill) + x[:n],
    "pad_right": lambda x, n, fill: (x + _filling(x, n, fill))[:n],
    "reverse": lambda x: x[::-1], "position": lambda x, y: x.find(y) + 1,
    "byte_length": lambda x: len(x.encode()),
    "like": _like(re.NOFLAG), "ilike": _like(re.IGNORECASE),
    "date_in_range": lambda x: x, "timestamp_in_range": lambda x: x,
    "from_utc": _in_utc,
    "epoch_microseconds": lambda x: (_zoned(x) - _FIRST) // timedelta(microseconds=1),
    "from_epoch": lambda x: (_FIRST + timedelta(microseconds=round(x))).replace(tzinfo=None),
    "format_time": lambda x, form: _moment(x).strftime(form), "parse_time": datetime.strptime,
    "date_part": _part, "date_trunc": _truncated,
    "date_diff": lambda step, x, y: _number_of(step, y) - _number_of(step, x),
    "to_zone": lambda x, zone: _zoned(x).astimezone(ZoneInfo(zone)).replace(tzinfo=None),
    "from_zone": lambda x, zone: _in_utc(x.replace(tzinfo=ZoneInfo(zone))),
    "shift": _shifted, "period_label": _label,
}  # fmt: skip
