"""The rows that count, and a chain of named SELECTs that ends in an answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from discreet.tables.engines.compile.column_types import types_of
from discreet.tables.engines.compile.dialect import Dialect, Hashed
from discreet.tables.engines.compile.keys import KeyTable, clean_key, listed
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.text import column_list, quoted
from discreet.tables.model.query import Query

__all__ = ["Chain", "Compiled", "start"]


class Compiled(NamedTuple):
    """One SELECT, and the public keys that it reads besides the tables."""

    text: str
    keys: tuple[KeyTable, ...] = ()


@final
@dataclass(slots=True)
class Chain:
    """Named SELECTs, each reading from those before it."""

    steps: list[str] = field(default_factory=list)
    last: str = ""
    by: list[str] = field(default_factory=list)  # the columns that tell groups apart
    keys: list[str] = field(default_factory=list)  # the keys, in terms of the lists below
    lists: dict[str, str] = field(default_factory=dict)  # public lists of keys, and their codes
    tables: list[KeyTable] = field(default_factory=list)  # what these lists are read from
    types: dict[str, str] = field(default_factory=dict)  # of unit, keys and values

    def hashed(self, columns: Sequence[str], source: str = "") -> list[Hashed]:
        """Return columns, of a step if it is named, with their types; codes are whole numbers."""
        before = f"{source}." if source else ""
        return [Hashed(f"{before}{name}", self.types.get(name, "int64")) for name in columns]

    def add(self, name: str, text: str, *, keep: bool = False) -> None:
        """Add one SELECT. ``keep`` computes it once although it is read twice."""
        self.steps.append(f"{name} AS {'MATERIALIZED ' if keep else ''}(\n{text}\n)")
        self.last = name

    def ending(self, text: str) -> Compiled:
        """Return the whole statement."""
        steps = ",\n".join(self.steps)
        return Compiled(f"WITH {steps}\n{text}", tuple(self.tables))

    def answer(
        self, cells: Sequence[str], rest: str, *, is_grouped: bool = True, having: str = ""
    ) -> Compiled:
        """Return the whole statement: cells by group, of what ``rest`` reads from."""
        named = [f"{cell} AS cell_{index}" for index, cell in enumerate(cells)]
        grouped = f"\nGROUP BY {column_list(self.by)}" if self.by and is_grouped else ""
        if having:
            grouped += f"\nHAVING {having}"
        text = f"SELECT {column_list([*self.by, *named])}\nFROM {rest}{grouped}"
        if not self.lists:
            return self.ending(text)
        self.add("totals", text)
        others = [column for column in self.by if column not in self.lists.values()]
        names = [f"cell_{index}" for index in range(len(cells))]
        joins = "".join(f"\nJOIN {n} ON totals.{c} = {n}.{c}" for n, c in self.lists.items())
        return self.ending(
            f"SELECT {column_list([*self.keys, *others, *names])}\nFROM totals{joins}"
        )


def start(
    query: Query,
    groups: Sequence[Sequence[object]] | None,
    dialect: Dialect,
    *,
    conditions: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
) -> Chain:
    """Begin a chain with the rows of a query that belong to a unit and to one of the groups.

    ``extra`` are expressions and names of further columns; ``conditions`` must hold too.
    """
    chain = Chain(types=types_of(query.rows, dialect.tables))
    chain.add("source", rows_sql(query.rows, dialect))
    units = () if query.unit_is_row else ("unit",)
    values = tuple(f"value_{i}" for i in range(len(query.values)))
    keys = tuple(f"key_{i}" for i in range(len(query.keys)))
    cleaned = tuple(clean_key(i, key, dialect) for i, key in enumerate(query.keys))
    if cleaned != keys:
        text = f"SELECT {column_list((*units, *cleaned, *values))}\nFROM source"
        chain.add("cleaned", text)
    # A unit that is NULL would be nobody's, and joins would lose it after it was counted.
    tests = [f"{unit} IS NOT NULL" for unit in units] + list(conditions)
    rows, joins = chain.last, ""
    chain.by = list(keys)
    if keys and groups:
        joins = _list_groups(chain, query, groups, rows, dialect)
    elif groups is not None and not groups:
        tests.append("FALSE")
    named = [f"{expression} AS {name}" for expression, name in (extra or {}).items()]
    columns = [*units, *chain.by, *values, *named] or ["1 AS one"]
    where = f"\nWHERE {' AND '.join(tests)}" if tests else ""
    where += dialect.gathered.format("unit") if units else ""
    chain.add("counted", f"SELECT {column_list(columns)}\nFROM {rows}{joins}{where}")
    return chain


def _list_groups(
    chain: Chain, query: Query, groups: Sequence[Sequence[object]], rows: str, dialect: Dialect
) -> str:
    """Number the listed groups, and return the joins that keep their rows.

    A number in the place of texts makes everything after it faster.
    """
    keys: dict[int, str] = {}
    chain.by, joins = [], ""
    for number, (positions, columns) in enumerate(listed(query.keys, groups)):
        name, code = f"list_{number}", f"code_{number}"
        names = [f"key_{i}" for i in positions]
        table = KeyTable(
            f'keys"{number}',
            ((code, range(len(columns[0]))), *zip(names, columns, strict=True)),
        )
        chain.tables.append(table)
        types = [dialect.types[query.keys[i].type] for i in positions]
        casts = [f"CAST({n} AS {type_}) AS {n}" for n, type_ in zip(names, types, strict=True)]
        typed = f"SELECT {column_list([code, *casts])} FROM {quoted(table.name)}"  # noqa: S608
        # Equal keys may be written in two ways; a row must not be counted for both.
        grouped = f"SELECT MIN({code}) AS {code}, {column_list(names)}\nFROM ({typed}) AS typed"
        chain.add(name, f"{grouped}\nGROUP BY {column_list(names)}", keep=True)
        same = " AND ".join(
            (dialect.same if None in column else dialect.same_present).format(
                f"{rows}.{n}", f"{name}.{n}"
            )
            for n, column in zip(names, columns, strict=True)
        )
        joins += f"\nJOIN {name} ON {same}"
        keys |= {i: f"{name}.key_{i}" for i in positions}
        chain.lists[name] = code
        chain.by.append(code)
    chain.keys = [f"{keys[i]} AS key_{i}" for i in sorted(keys)]
    return joins
