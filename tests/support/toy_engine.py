"""An engine in plain Python, straight from the nodes of a plan: slow, small, and an oracle.

Nothing here knows SQL. What a function means is written down in discreet.tables.model.scalar.
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa

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
    Key,
    Literal,
    Profile,
    Rows,
    Scalar,
    Scan,
    Select,
    Statement,
    Sums,
)
from discreet.tables.model.scalar import LONGEST_TEXT

Row = dict[str, Any]
Env = Mapping[Any, Any]  # by source and name; and the rows of a group, for folds
GROUP = "rows of the group"
S = WEIGHT_STEPS
ARROW = {
    "boolean": pa.bool_(), "double": pa.float64(), "text": pa.string(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "null": pa.null(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u")
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


# Engines.


@dataclass(frozen=True)
class Toy:
    """Opens dicts of lists, or Arrow's tables."""

    name: str = "toy"

    def look(self, name, given, /, *, is_public=False, types=None):
        table = given if isinstance(given, pa.Table) else pa.table(given)
        names = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
        columns = tuple((f.name, names[str(f.type)]) for f in table.schema)
        digest = hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()
        return DataSource(
            name=name, kind="lists", columns=columns, version=digest, identities=(digest,),
            is_public=is_public, given=given, reading=table,
        )  # fmt: skip

    def version(self, source, /):
        return source.version

    def open(self, sources, /):
        return ToyEngine({name: source.reading for name, source in sources.items()})


class ToyEngine:
    """Runs statements over tables in memory."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = {name: table.to_pylist() for name, table in tables.items()}

    def aggregate(self, statement: Statement, /) -> Sensitive[pa.Table]:
        run = {Sums: _sums, Distinct: _distinct, Profile: _profile}[type(statement)]
        return Sensitive(run(statement, rows_of(statement.query.rows, self.tables)))

    def rows(self, select: Select, /) -> Sensitive[pa.Table]:
        found = rows_of(select, self.tables)
        return Sensitive(pa.table({name: [row[name] for row in found] for name in select.names}))

    def sql(self, statement: Statement, /) -> str:
        return repr(statement if isinstance(statement, Profile) else replace(statement, salt=""))

    def close(self) -> None:
        pass


# Rows.


def rows_of(rows: Rows, tables: Mapping[str, list[Row]]) -> list[Row]:
    columns = [(name, compiled(node)) for name, node in rows.columns]
    if isinstance(rows, GroupedRows):
        envs: Iterable[Env] = _groups(rows, tables)
        conditions = [] if rows.having is None else [compiled(rows.having)]
    else:
        envs = _sources(rows.source, tables)
        conditions = [compiled(node) for node in rows.where]
    return [
        {name: value(env) for name, value in columns}
        for env in envs
        if all(is_met(env) is True for is_met in conditions)
    ]


def _sources(source: Scan | tuple[Joined, ...], tables: Mapping[str, list[Row]]) -> list[Env]:
    if isinstance(source, Scan):
        return [{("", name): value for name, value in row.items()} for row in tables[source.table]]
    found: list[Env] = [{}]
    for one in source:
        own = [
            {(one.alias, name): value for name, value in row.items()}
            for row in rows_of(one.rows, tables)
        ]
        absent = {(one.alias, name): None for name in one.rows.names}
        on = [compiled(node) for node in one.on]
        joined: list[Env] = []
        for env in found:
            partners = [{**env, **row} for row in own]
            met = [both for both in partners if all(is_met(both) is True for is_met in on)]
            joined += met or ([{**env, **absent}] if one.kind == "left" else [])
        found = joined
    return found


def _groups(rows: GroupedRows, tables: Mapping[str, list[Row]]) -> Iterable[Env]:
    groups: dict[tuple[Any, ...], list[Env]] = defaultdict(list)
    if not rows.by:
        groups[()] = []
    for row in rows_of(rows.rows, tables):
        groups[tuple(row[name] for name in rows.by)].append({("", n): v for n, v in row.items()})
    for key, own in groups.items():
        yield {GROUP: own, **{("", name): value for name, value in zip(rows.by, key, strict=True)}}


# Scalars.


def compiled(node: Scalar) -> Callable[[Env], Any]:
    match node:
        case ColumnRef():
            place = (node.source, node.name)
            return lambda env: env[place]
        case Literal():
            is_moment = node.type in ("date", "timestamp") and node.value is not None
            value = cast(node.value, node.type) if is_moment else node.value
            return lambda env: value
        case Call():
            function, arguments = FUNCTIONS[node.function], [compiled(a) for a in node.arguments]
            if node.function in LENIENT:
                return lambda env: function(*[argument(env) for argument in arguments])
            return lambda env: _strict(function, [argument(env) for argument in arguments])
        case Case():
            branches = [(compiled(when), compiled(then)) for when, then in node.branches]
            last = compiled(node.otherwise)
            return lambda env: next((t for w, t in branches if w(env) is True), last)(env)
        case Cast():
            inner, type_ = compiled(node.value), node.type
            return lambda env: _strict(lambda value: cast(value, type_), [inner(env)])
        case Fold():
            return _fold(node)
    raise TypeError(f"{node} has no value in rows")


def _strict(function: Callable[..., Any], values: list[Any]) -> Any:
    return None if any(value is None for value in values) else function(*values)


def _fold(node: Fold) -> Callable[[Env], Any]:
    if node.value is None:
        return lambda env: len(env[GROUP])
    inner = compiled(node.value)
    made = {
        "count": len, "count_distinct": lambda values: len(set(values)),
        "minimum": lambda values: min(values, default=None),
        "maximum": lambda values: max(values, default=None),
        "sum": lambda values: sum(values) if values else None,
    }[node.function]  # fmt: skip
    return lambda env: made([v for v in map(inner, env[GROUP]) if v is not None])


def cast(value: Any, type_: str) -> Any:
    try:
        return _CASTS[type_](value) if type_ in _CASTS else _whole(value, type_)
    except (ValueError, OverflowError, InvalidOperation):
        return None


def _whole(value: Any, type_: str) -> int | None:
    number = round(Decimal(value) if isinstance(value, str) else value)
    sign, _, bits = type_.partition("int")
    low, high = (0, 2 ** int(bits)) if sign else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1))
    return number if low <= number < high else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _double(value: Any) -> float | None:
    if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[\d.]\S*|\s*[+-]?inf\w*", value, re.I):
        return None
    return float(value)


def _truth(value: Any) -> bool:
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if isinstance(value, str) and value.lower() not in words:
        raise ValueError
    return words[value.lower()] if isinstance(value, str) else bool(value)


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip())
    return value if isinstance(value, datetime) else datetime.combine(value, time.min)


_CASTS: dict[str, Callable[[Any], Any]] = {
    "text": _text, "double": _double, "boolean": _truth, "timestamp": _moment,
    "date": lambda value: _moment(value).date(),
}  # fmt: skip


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return math.inf if x == 0 else math.nan


def _rounded(x: float, digits: int) -> float:
    scaled = x * 10.0**digits
    if not math.isfinite(scaled) or abs(scaled) >= 2**52:
        return x
    return math.copysign(math.floor(abs(scaled) + 0.5) / 10.0**digits, x)


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.7 else math.inf if x > 709.79 else _power(math.e, x)


def _or_itself(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _in(value: Any, *listed: Any) -> bool | None:
    if value is None or value in listed:
        return None if value is None else True
    return None if None in listed else False


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else -1
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def _short(text: str) -> str | None:
    return text if len(text) <= LONGEST_TEXT else None


def _replace(text: str, old: str, new: str) -> str | None:
    if 0 < len(old) < len(new) and len(text) * len(new) > LONGEST_TEXT * len(old):
        return None
    return text.replace(old, new) if old else text


def _like(flags: int) -> Callable[[str, str], bool]:
    def is_like(text: str, pattern: str) -> bool:
        signs = {"%": ".*", "_": "."}
        made = "".join(signs.get(sign) or re.escape(sign) for sign in pattern)
        return re.fullmatch(made, text, re.DOTALL | flags) is not None

    return is_like


_PARTS: dict[str, Callable[[datetime], int]] = {
    "isoyear": lambda m: m.isocalendar().year, "quarter": lambda m: (m.month + 2) // 3,
    "week": lambda m: m.isocalendar().week, "dayofyear": lambda m: m.timetuple().tm_yday,
    "dow": lambda m: m.isoweekday() % 7, "isodow": lambda m: m.isoweekday(),
}  # fmt: skip


def _part(name: str, moment: Any) -> int:
    whole = _moment(moment)
    return _PARTS[name](whole) if name in _PARTS else getattr(whole, name)


def _cut(step: str, moment: Any) -> datetime:
    whole = _moment(moment)
    day = datetime.combine(whole.date(), time.min)
    match step:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(whole.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=whole.weekday())
        case "day":
            return day
    kept = ("hour", "minute", "second")[: ("hour", "minute", "second").index(step) + 1]
    return day.replace(**{part: getattr(whole, part) for part in kept})


def _ends_between(step: str, one: Any, other: Any) -> int:
    first, second = _cut(step, one), _cut(step, other)
    months = {"year": 12, "quarter": 3, "month": 1}
    if step in months:
        apart = (second.year - first.year) * 12 + second.month - first.month
        return apart // months[step]
    return (second - first) // timedelta(**{f"{step}s": 1})


def _shifted(moment: Any, steps: int, unit: str) -> datetime | None:
    whole, months = _moment(moment), {"year": 12, "quarter": 3, "month": 1}
    try:
        if unit not in months:
            return whole + timedelta(**{f"{unit}s": steps})
        year, month = divmod(whole.year * 12 + whole.month - 1 + steps * months[unit], 12)
        last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        return whole.replace(year=year, month=month + 1, day=min(whole.day, last))
    except (ValueError, OverflowError):  # beyond the years that there are here
        return None


def _label(moment: Any, period: str) -> str:
    whole = _moment(moment)
    year, week, _ = whole.isocalendar()
    return f"{year:04}-W{week:02}" if period == "week" else whole.date().isoformat()[
        : {"day": 10, "month": 7, "year": 4}[period]
    ]  # fmt: skip


def _epoch(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _same(x: Any, y: Any) -> bool:
    return x is y if x is None or y is None else bool(x == y)


# Those that have an opinion on NULL themselves; all others are NULL where an argument is.
LENIENT = {
    "least", "greatest", "coalesce", "same", "different", "in", "is_null", "and", "or",
    "concat_present", "tagged",
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "negate": lambda x: -x, "abs": abs,
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y if y else None,
    "remainder": lambda x, y: None if not y else math.fmod(x, y) if math.isfinite(x) else math.nan,
    "floor": _or_itself(math.floor), "ceil": _or_itself(math.ceil), "trunc": _or_itself(math.trunc),
    "round": _rounded, "sign": lambda x: float((x > 0) - (x < 0)),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None, "exp": _exp,
    "ln": lambda x: math.log(x) if x > 0 else None,
    "log2": lambda x: math.log2(x) if x > 0 else None,
    "log10": lambda x: math.log10(x) if x > 0 else None,
    "power": _power, "clamp": lambda x, low, high: min(max(x, low), high),
    "least": lambda *xs: min((x for x in xs if x is not None), default=None),
    "greatest": lambda *xs: max((x for x in xs if x is not None), default=None),
    "coalesce": lambda *xs: next((x for x in xs if x is not None), None),
    "not_nan": lambda x: None if math.isnan(x) else x, "plus_zero": lambda x: x or 0.0,
    "parse_double": lambda text: cast(text, "double"),
    "equal": lambda x, y: x == y, "not_equal": lambda x, y: x != y, "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y, "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "same": _same, "different": lambda x, y: not _same(x, y), "in": _in,
    "is_null": lambda x: x is None, "not": _not, "and": _and,
    "or": lambda *xs: _not(_and(*map(_not, xs))),
    "lower": str.lower, "upper": str.upper, "trim": lambda text, what=" ": text.strip(what),
    "ltrim": lambda text, what=" ": text.lstrip(what),
    "rtrim": lambda text, what=" ": text.rstrip(what),
    "length": len, "substring": _substring, "left": lambda text, n: text[:n],
    "right": lambda text, n: text[max(len(text) - n, 0) if n >= 0 else -n :],
    "concat": lambda *texts: _short("".join(texts)),
    "concat_present": lambda *texts: _short("".join(t for t in texts if t is not None)),
    "replace": _replace, "starts_with": str.startswith, "ends_with": str.endswith,
    "contains": lambda text, part: part in text, "like": _like(0), "ilike": _like(re.IGNORECASE),
    "date_in_range": lambda x: x, "timestamp_in_range": lambda x: x,  # Python has no other years
    "from_utc": lambda x: x.astimezone(UTC).replace(tzinfo=None), "epoch_microseconds": _epoch,
    "date_part": _part, "date_trunc": _cut, "date_diff": _ends_between, "shift": _shifted,
    "period_label": _label, "tagged": lambda label, text: f"{label}|{text or ''}",
}  # fmt: skip


# Statements.


def _key(value: Any, key: Key) -> Any:
    """Return a key in the form in which equal keys are equal."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return cast(value, key.type) if isinstance(value, str) and key.type != "text" else value


def _counted(statement: Statement, rows: list[Row]) -> Iterable[tuple[Any, tuple[Any, ...], Row]]:
    """Return unit, group and row of all that count."""
    query, grid = statement.query, getattr(statement, "grid", None)
    listed = None
    if statement.groups is not None:
        listed = {
            tuple(_key(value, key) for value, key in zip(group, query.keys, strict=True))
            for group in statement.groups
        }
    for number, row in enumerate(rows):
        group = tuple(_key(row[f"key_{i}"], key) for i, key in enumerate(query.keys))
        unit = number if query.unit_is_row else row["unit"]
        if unit is None or (listed is not None and group not in listed):
            continue
        if grid is not None:
            x = row[f"value_{grid.value}"]
            if x is None:
                continue
            group += (math.floor(_share(x, (grid.low, grid.high)) * (grid.points - 1) + 0.5),)
        yield unit, group, row


def _sums(statement: Sums, rows: list[Row]) -> pa.Table:
    units: dict[Any, dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for unit, group, row in _counted(statement, rows):
        units[unit][group].append(row)
    size = sum(family.count for family in statement.cells)
    totals: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * size)
    if not statement.query.keys and statement.grid is None:
        totals[()] = [0] * size
    for unit, groups in units.items():
        for group, weight in _weights(statement, unit, groups):
            own = groups[group]
            count = 1 if statement.once else len(own)
            is_small = statement.least is not None and (
                math.trunc(S * count * weight) < math.ceil(statement.least * S)
            )
            if not is_small:
                cells = [c for family in statement.cells for c in _cells(family, own, statement)]
                for i, cell in enumerate(cells):
                    totals[group][i] += math.trunc(cell * weight)
    names = ["place"] * (statement.grid is not None)
    return _table(statement.query.keys, names, totals, size)


def _weights(
    statement: Sums, unit: Any, groups: Mapping[tuple[Any, ...], list[Row]]
) -> list[tuple[tuple[Any, ...], float]]:
    counts = {group: 1 if statement.once else len(own) for group, own in groups.items()}
    bounding = statement.bounding
    if bounding is None:
        return [(group, 1.0) for group in counts]
    if isinstance(bounding, Groups):
        kept = _lowest(statement.salt, unit, list(counts), bounding.groups)
        limit = Fraction(bounding.rows)
        return [(group, _weight(counts[group] ** 2, limit)) for group in kept]
    squares = sum(counts.values()) ** 2 if bounding.order == 1 else sum(
        n * n for n in counts.values()
    )  # fmt: skip
    return [(group, _weight(squares, Fraction(bounding.limit))) for group in counts]


def _weight(square: int, limit: Fraction) -> float:
    return 1.0 if square <= limit**2 else float(limit) * (1 - 2.0**-40) / math.sqrt(square)


def _lowest(salt: str, unit: Any, choices: list[Any], most: int) -> list[Any]:
    """Return those of lowest hash: at random, but the same whenever the salt is."""
    if len(choices) <= most:
        return choices
    hashes = {c: hashlib.blake2b(repr((salt, unit, c)).encode()).digest() for c in choices}
    return sorted(choices, key=hashes.__getitem__)[:most]


def _cells(family: Cells, rows: list[Row], statement: Sums) -> list[int]:
    names = [f"value_{i}" for i in family.values]
    if statement.once:
        some = all(any(row[name] is not None for row in rows) for name in names)
        return [S * some] + [S * (not some)] * family.with_absent
    made = [_row_cells(family, [row[name] for name in names]) for row in rows]
    return [sum(cells) for cells in zip(*made, strict=True)]


def _row_cells(family: Cells, values: list[Any]) -> list[int]:
    own = family.count - family.with_absent
    if any(value is None for value in values):
        return [0] * own + [S] * family.with_absent
    absent = [0] * family.with_absent
    if family.kind in ("rows", "present"):
        return [S, *absent]
    if family.kind == "sum":
        low, high = map(_near, family.bounds[0])
        largest = max(-low, high, 0.0)
        x = min(max(values[0], low), high)
        return [math.trunc(x / largest * S) if largest else 0, *absent]
    shares = [_share(x, bounds) for x, bounds in zip(values, family.bounds, strict=True)]
    if family.kind == "linear":
        return [S - math.floor(shares[0] * S), math.floor(shares[0] * S), *absent]
    sides = []
    for t in shares:
        one = math.floor(t * S)
        two = max(math.floor(t * t * S), 2 * one - S)
        sides.append((S - 2 * one + two, 2 * (one - two), two))
    if family.kind == "quadratic":
        return [*sides[0], *absent]
    return [*(x * y // S for x, y in product(*sides)), *absent]


@cache
def _near(bound: Fraction) -> float:
    """Return the nearest double, of those that are finite."""
    top = Fraction(math.nextafter(math.inf, 0))
    return float(min(max(bound, -top), top))


def _share(x: float, bounds: tuple[Fraction, Fraction]) -> float:
    low, high = map(_near, bounds)
    x = min(max(x, low), high)
    if math.isinf(high - low):
        x, low, high = x / 2, low / 2, high / 2
    return (x - low) / (high - low) if high > low else 0.0


def _distinct(statement: Distinct, rows: list[Row]) -> pa.Table:
    units: dict[Any, dict[Any, None]] = defaultdict(dict)
    for unit, group, row in _counted(statement, rows):
        if row[f"value_{statement.value}"] is not None:
            units[unit][group, row[f"value_{statement.value}"]] = None
    most = math.inf if statement.query.unit_is_row else statement.most
    found = {
        pair for unit, own in units.items() for pair in _lowest(statement.salt, unit, [*own], most)
    }
    totals: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0])
    for group, _ in found:
        totals[group][0] += 1
    return _table(statement.query.keys, [], totals, 1)


def _profile(statement: Profile, rows: list[Row]) -> pa.Table:
    units: dict[Any, list[tuple[tuple[Any, ...], Any]]] = defaultdict(list)
    for unit, group, row in _counted(statement, rows):
        value = None if statement.value is None else row[f"value_{statement.value}"]
        if statement.value is None or value is not None:
            units[unit].append((group, value))
    bins: dict[int, int] = defaultdict(int)
    for own in units.values():
        square = _squared_size(statement, own)
        bins[sum(edge * abs(edge) < square for edge in statement.edges)] += 1
    columns = {"bin": list(bins), "units": list(bins.values())}
    return pa.table({name: pa.array(found, pa.int64()) for name, found in columns.items()})


def _squared_size(statement: Profile, own: list[tuple[tuple[Any, ...], Any]]) -> Any:
    """Return the square of a unit's size, with its sign: norms are exact in this way."""
    if statement.of in ("largest", "smallest"):
        x = (max if statement.of == "largest" else min)(value for _, value in own)
        return x if math.isinf(x) else Fraction(x) * abs(Fraction(x))
    if statement.of == "pairs":
        return len(set(own)) ** 2
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    for group, _ in own:
        counts[group] = 1 if statement.once else counts[group] + 1
    if statement.of == "norm":
        return sum(count * count for count in counts.values())
    return sum(counts.values()) ** 2


def _table(
    keys: tuple[Key, ...],
    more: list[str],
    totals: Mapping[tuple[Any, ...], list[int]],
    size: int,
) -> pa.Table:
    names = [*(f"key_{i}" for i in range(len(keys))), *more]
    kinds = [*(ARROW[key.type] for key in keys), *(pa.int64() for _ in more)]
    columns = {
        name: pa.array([group[i] for group in totals], kind)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    for i in range(size):
        clamped = [max(min(cells[i], 1 << 62), -(1 << 62)) for cells in totals.values()]
        columns[f"cell_{i}"] = pa.array(clamped, pa.int64())
    return pa.table(columns)
