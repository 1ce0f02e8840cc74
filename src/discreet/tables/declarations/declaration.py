"""What a custodian declares about tables, kept as a small TOML file.

Everything in such a file is public: whoever asks questions may read it. Nothing in it is taken from
the data.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from discreet._exact import Number, exact, plain, refusal, whole
from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.declarations.toml import read, write
from discreet.tables.engines.named import DEFAULT_ENGINE
from discreet.tables.model.bounds import MOST
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.key_values import key_type, key_value
from discreet.tables.model.query import KeyValue
from discreet.tables.model.unit_forms import common_form, exact_form
from discreet.tables.sql.expressions.term import total_column, without_labels

__all__ = ["Declaration", "DeclaredColumn", "DeclaredTable", "load"]

_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]*(\(\d+(, ?\d+)?\))?")
_PASSWORD = re.compile(r"://[^/@]*:[^/]*@|[?&]password=|\bpassword\s*=", re.IGNORECASE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn:
    """Say what is public about a column: ``bounds`` of its numbers, ``keys`` it may have.

    ``type`` is DuckDB's name of its type, for files that have no types: CSV.

    Bounds that are None are inferred privately where they are needed, keys that are None are
    selected privately. Dates are ISO texts. A None among the keys stands for NULL and comes last.

    >>> DeclaredColumn(keys=(None, "north", "south")).keys
    ('north', 'south', None)
    >>> DeclaredColumn(bounds=(5, 1))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: bounds must be two finite numbers, the lower one first,
    got [5, 1].
    """

    bounds: tuple[Number, Number] | None = None
    keys: tuple[KeyValue, ...] | None = None
    type: str | None = None

    def __post_init__(self) -> None:
        if self.type is not None and not _TYPE.fullmatch(self.type):
            raise ParameterError(
                "type must be the name of a type, such as BIGINT or DECIMAL(10, 2).",
                parameter="type",
            )
        if self.bounds is not None:
            _check_bounds(self.bounds)
            ends = tuple(plain(bound, name="bounds") for bound in self.bounds)
            object.__setattr__(self, "bounds", ends)
        if self.keys is not None:
            keys = tuple(_plain(key) for key in self.keys)
            _check_keys(keys)
            present = [key for key in keys if key is not None]
            object.__setattr__(self, "keys", (*present, None) if None in keys else tuple(present))


def _plain(key: Any) -> Any:
    """Turn numpy's values into Python's, and dates into ISO texts."""
    if isinstance(key, date | time):
        return key.isoformat()
    return key.item() if hasattr(key, "item") else key


def _check_bounds(bounds: tuple[Number, Number]) -> None:
    told = ", ".join(str(bound) for bound in bounds)
    wrong = ParameterError(
        f"bounds must be two finite numbers, the lower one first, got [{told}].",
        parameter="bounds",
    )
    try:
        low, high = (exact(bound, name="bounds") for bound in bounds)
    except (TypeError, ValueError):
        raise wrong from None
    if not low < high:
        raise wrong


def _check_keys(keys: tuple[KeyValue, ...]) -> None:
    present = [key for key in keys if key is not None]
    kinds = {_kind(key) for key in present}
    if len(kinds) > 1 or not kinds <= {"text", "number", "boolean"}:
        raise ParameterError(
            "keys must be all texts (dates in ISO form), all finite numbers, or all booleans.",
            parameter="keys",
        )
    if not keys or len(set(keys)) != len(keys):
        raise ParameterError("keys must be at least one, each listed once.", parameter="keys")


def _kind(key: object) -> str:
    if isinstance(key, bool):
        return "boolean"
    if isinstance(key, int):
        return "number"
    if isinstance(key, float):
        return "number" if math.isfinite(key) else "other"
    return "text" if isinstance(key, str) else "other"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTable:
    """Say where a table lies, and what is public about its columns; all others are private.

    >>> DeclaredTable(source="people.parquet").columns
    {}
    """

    source: str | None = None
    columns: Mapping[str, DeclaredColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_names(self.columns, "column")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Say once, and in public, what is protected and what may be assumed.

    ``tables`` are protected and ``public`` ones are not. ``rows`` and ``groups`` limit how many
    rows and groups of one unit count, ``size`` is the number of units where that is public. A
    ``ledger`` is where its budget is kept, an ``engine`` opens the tables and runs questions.

    >>> people = Declaration(
    ...     name="people", unit=Unit.column("user_id"), ledger="budget.db",
    ...     guarantee=Guarantee(epsilon=3, delta=1e-6),
    ...     tables={"people": DeclaredTable(source="people.parquet", columns={
    ...         "region": DeclaredColumn(keys=("north", "south"))})})
    >>> print(people.to_toml())
    # Who is protected and what may be assumed. All of it is public: it may not come from the data.
    name = "people"
    ledger = "budget.db"
    unit = "user_id"
    neighbours = "add_remove"
    <BLANKLINE>
    [guarantee]
    epsilon = 3
    delta = 1e-06
    <BLANKLINE>
    [tables.people]
    source = "people.parquet"
    <BLANKLINE>
    [tables.people.columns]
    region = { keys = ["north", "south"] }
    <BLANKLINE>
    """

    name: str
    unit: Unit
    guarantee: Guarantee
    ledger: str | None = None
    engine: str = DEFAULT_ENGINE.name
    neighbours: Neighbours = Neighbours.add_remove
    tables: Mapping[str, DeclaredTable] = field(default_factory=dict)
    public: Mapping[str, DeclaredTable] = field(default_factory=dict)
    rows: int | None = None
    groups: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ParameterError("name must be a text that is not empty.", parameter="name")
        for name in ("rows", "groups", "size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), name=name))
                if name != "size" and getattr(self, name) > MOST:
                    raise refusal(name, f"at most {MOST:,}", getattr(self, name))
        if not self.tables:
            raise ParameterError("tables must hold at least one table.", parameter="tables")
        _check_names((*self.tables, *self.public), "table")
        for table, declared in self.tables.items():
            for column, facts in declared.columns.items():
                if facts.keys is not None and _same(column, self.unit.name):
                    raise ParameterError(
                        f"keys of {column!r} cannot be public: the column says whose rows "
                        "they are.",
                        parameter=f"tables.{table}.columns.{column}.keys",
                    )

    def to_toml(self, types: Mapping[str, Mapping[str, str]] | None = None) -> str:
        """Write the declaration; ``types`` of columns add comments that help to go on with it.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> print(small.to_toml({"p": {"age": "INTEGER"}}).splitlines()[-1])
        # age = { bounds = [0, 100] }  # INTEGER
        """
        return write(self, types or {})

    def save(self, path: str | Path, types: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Write the declaration to a file, from which :func:`load` reads it back.

        >>> import os, tempfile
        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small.save(os.path.join(folder, "p.toml"))
        ...     load(os.path.join(folder, "p.toml")) == small
        True
        """
        if self.ledger is not None and _PASSWORD.search(self.ledger):
            raise ParameterError(
                "the address of the ledger has a password in it, and the file is public. Keep "
                "passwords in ~/.pgpass or in PGPASSWORD.",
                parameter="ledger",
            )
        try:
            Path(path).write_text(self.to_toml(types), encoding="utf-8", newline="\n")
        except OSError as error:
            told = f"{Path(path).name} could not be written ({error.strerror})."
            raise ParameterError(told, parameter="path") from None

    def catalog(self, columns: Mapping[str, Mapping[str, str]]) -> Catalog:
        """Join what is declared with the types that the sources have, by table and column.

        A declared column that is gone is an error, since a question might have relied on it. A
        column that nobody declared is private: it has neither public bounds nor public keys. The
        units of all protected tables must have one type, or be integers: others could not be
        compared exactly.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> small.catalog({"p": {"age": "INTEGER"}}).tables[0].columns[0].bounds is None
        True
        """
        needed = [name for name in (self.unit.name, self.unit.time) if name is not None]
        made = []
        for is_public, group in ((False, self.tables), (True, self.public)):
            for name, declared in group.items():
                if name not in columns:
                    raise DataError(f"table {name!r} is declared, but there is no source for it.")
                _check_columns(name, declared, columns[name], () if is_public else needed)
                facts = {_fold(own): facts for own, facts in declared.columns.items()}
                merged = [
                    _column(name, own, without_labels(type_), facts.get(_fold(own)))
                    for own, type_ in columns[name].items()
                ]
                made.append(Table(name=name, columns=tuple(merged), is_public=is_public))
        if self.unit.name is not None:
            _check_units(self.unit.name, [table for table in made if not table.is_public])
        return Catalog(
            unit=self.unit,
            neighbours=self.neighbours,
            tables=tuple(made),
            rows=self.rows,
            groups=self.groups,
            size=self.size,
        )


def _check_columns(
    table: str, declared: DeclaredTable, found: Mapping[str, str], needed: "list[str] | tuple[()]"
) -> None:
    there = {_fold(name) for name in found}
    for name in needed:
        if _fold(name) not in there:
            raise DataError(
                f"table {table!r} has no column {name!r}, which says whose rows they are. Every "
                "protected table needs it; a table about nobody may be declared public."
            )
    for name in declared.columns:
        if _fold(name) not in there:
            raise DataError(
                f"column {name!r} of table {table!r} is declared, but the source no longer has "
                "it. Rename or remove it in the declaration."
            )


def _check_units(name: str, tables: "list[Table]") -> None:
    """Refuse units that cannot be told apart exactly, or not in the same way in all tables."""
    types = [next(c.type for c in table.columns if _same(c.name, name)) for table in tables]
    for table, type_ in zip(tables, types, strict=True):
        if exact_form(type_) is None:
            raise DataError(
                f"column {name!r} of table {table.name!r} has the type {type_}, which cannot say "
                "whose rows they are. Use a column of numbers, texts, dates or timestamps."
            )
        if common_form([types[0], type_]) is None:
            raise DataError(
                f"column {name!r} has the type {types[0]} in table {tables[0].name!r} and {type_} "
                f"in table {table.name!r}, so it could not be compared exactly. Give both the same "
                "type; only integers may differ in size."
            )


def _column(table: str, name: str, type_: str, facts: DeclaredColumn | None) -> Column:
    declared = facts or DeclaredColumn()
    path = f"tables.{table}.columns.{name}"
    kind = kind_of(type_)
    if declared.bounds is not None and kind != "number":
        raise ParameterError(
            f"{path}.bounds: bounds are for numbers, and the column has the type {type_}.",
            parameter=f"{path}.bounds",
        )
    present = [key for key in declared.keys or () if key is not None]
    if present and _kind(present[0]) != {"time": "text"}.get(kind, kind):
        raise ParameterError(
            f"{path}.keys: these keys do not fit the type {type_} of the column.",
            parameter=f"{path}.keys",
        )
    if kind == "time" and not all(_is_time(str(key), type_) for key in present):
        raise ParameterError(
            f"{path}.keys: keys of a column of the type {type_} must be texts in ISO form, such "
            "as 2026-01-31.",
            parameter=f"{path}.keys",
        )
    bounds = declared.bounds
    exactly = None if bounds is None else (Fraction(bounds[0]), Fraction(bounds[1]))
    return Column(name=name, type=type_, bounds=exactly, keys=_keys(path, type_, declared.keys))


def _keys(path: str, type_: str, keys: tuple[KeyValue, ...] | None) -> tuple[KeyValue, ...] | None:
    """Return keys in the one way in which their type writes them."""
    term = total_column("x", type_)
    if keys is None or term is None:  # questions cannot use such a column
        return keys
    try:
        found = tuple(key_value(key, key_type(term)) for key in keys)
    except ValueError:
        found = ()
    if not found:
        raise ParameterError(
            f"{path}.keys: not all of these keys are values of the type {type_} of the column.",
            parameter=f"{path}.keys",
        )
    if len(set(found)) != len(found):
        raise ParameterError(
            f"{path}.keys: two of these keys are the same value of the type {type_}.",
            parameter=f"{path}.keys",
        )
    return found


def _is_time(text: str, type_: str) -> bool:
    base = type_.upper()
    kind = date if base == "DATE" else datetime if base.startswith("TIMESTAMP") else time
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def kind_of(type_: str) -> str:
    """Sort a type of DuckDB's into number, boolean, text, time or other.

    >>> [kind_of(t) for t in ("DECIMAL(18,3)", "BOOLEAN", "ENUM('a')", "TIMESTAMP_NS", "BLOB")]
    ['number', 'boolean', 'text', 'time', 'other']
    """
    base = type_.upper().split("(")[0].strip()
    if base.endswith("[]") or type_.rstrip().endswith("]"):
        return "other"
    if base in _NUMBERS:
        return "number"
    if base in ("BOOLEAN", "BOOL", "LOGICAL"):
        return "boolean"
    if base in ("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR", "ENUM", "UUID"):
        return "text"
    return "time" if base.startswith(("DATE", "TIME")) else "other"


_NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM"),
    *("FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC"),
}


def _check_names(names: "Mapping[str, Any] | tuple[str, ...]", what: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not name:
            raise ParameterError(f"a {what} must have a name.", parameter=what)
        if _fold(name) in seen:
            raise ParameterError(
                f"{seen[_fold(name)]!r} and {name!r} would be the same {what}: upper and lower "
                "case make no difference.",
                parameter=what,
            )
        seen[_fold(name)] = name


def _fold(name: str) -> str:
    """Forget upper and lower case as DuckDB does, which knows those of ASCII only."""
    return "".join(char.lower() if char.isascii() else char for char in name)


def _same(one: str, other: str | None) -> bool:
    return other is not None and _fold(one) == _fold(other)


def load(path: str | Path) -> Declaration:
    r"""Read a declaration; refuse whatever is not understood, and say where it stands.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.toml"
    ...     _ = path.write_text('name = "people"\nunits = "user_id"\n')
    ...     load(path)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: people.toml: there is no key units here. Did you mean unit?
    """
    place = Path(path)
    try:
        document = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{place.name}: there is no such file.", parameter="path") from None
    except OSError as error:
        told = f"{place.name} could not be read ({error.strerror})."
        raise ParameterError(told, parameter="path") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise ParameterError(f"{place.name} is no TOML: {error}", parameter="path") from None
    return read(document, file=place.name)
