"""Declarations read strictly: what is not understood is refused, with its place."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from discreet._exact import Number
from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.declarations.column import DeclaredColumn
from discreet.tables.declarations.declaration import Declaration, DeclaredTable
from discreet.tables.declarations.writing import bare
from discreet.tables.engines.named import DEFAULT_ENGINE
from discreet.tables.model.catalog import ForeignKey
from discreet.tables.model.resources import Resources

__all__ = ["load", "read_declaration"]

T = TypeVar("T")

_TOP: Final = (
    "name",
    "account",
    "ledger",
    "engine",
    "unit",
    "neighbours",
    "policy",
    "rows",
    "groups",
    "joined_rows",
    "size",
    "guarantee",
    "resources",
    "tables",
    "public",
)


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
    except RecursionError:
        told = f"{place.name} is no declaration: it is nested too deeply."
        raise ParameterError(told, parameter="path") from None
    return read_declaration(document, file=place.name)


class _Place:
    """Where one is in a file: takes values out of a table and names their place if they are bad."""

    def __init__(self, file: str, path: str, data: object) -> None:
        self.file, self.path = file, path
        if not isinstance(data, dict):
            raise self.refuse("", "must be a table of keys and values.")
        self.data: dict[str, Any] = data

    def at(self, key: str) -> str:
        return ".".join(part for part in (self.path, bare(key) if key else "") if part)

    def refuse(self, key: str, why: str) -> ParameterError:
        where = self.at(key)
        told = f"{self.file}: {where} {why}" if where else f"{self.file}: {why}"
        return ParameterError(told, parameter=where or self.file)

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody knows: a misspelt bound must not pass for none at all."""
        for key in self.data:
            if key not in known:
                near = difflib.get_close_matches(key, list(known), n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(known)}."
                raise ParameterError(
                    f"{self.file}: there is no key {self.at(key)} here. {hint}",
                    parameter=self.at(key),
                )

    def take(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        value = self.data.get(key, default)
        if value is default:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            words = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}
            raise self.refuse(key, f"must be {words[kind]}.")
        return value

    def need(self, key: str, kind: type[T]) -> T:
        value = self.take(key, kind)
        if value is None:
            raise self.refuse(key, "is missing.")
        return value

    def inner(self, key: str) -> "_Place":
        return _Place(self.file, self.at(key), self.data.get(key, {}))

    def checked(self, key: str, make: Callable[[], T]) -> T:
        """Make something of the values, and tell where they are if it refuses them."""
        try:
            return make()
        except ParameterError as error:
            where = self.at(key)
            raise ParameterError(f"{self.file}: {where}: {error}", parameter=where) from None


def read_declaration(document: Mapping[str, Any], *, file: str) -> Declaration:
    """Check everything in a file and make a declaration of it."""
    top = _Place(file, "", dict(document))
    top.only(_TOP)
    promised = top.inner("guarantee")
    promised.only(("epsilon", "delta"))
    epsilon, delta = _number(promised, "epsilon"), _number(promised, "delta", 0)
    guarantee = top.checked("guarantee", lambda: Guarantee(epsilon=epsilon, delta=delta))
    facts: dict[str, Any] = {
        "name": top.need("name", str),
        "account": top.take("account", str),
        "ledger": top.take("ledger", str),
        "engine": top.take("engine", str, DEFAULT_ENGINE.name),
        "unit": _read_unit(top),
        "neighbours": _read_neighbours(top),
        "policy": top.take("policy", str),
        "guarantee": guarantee,
        "resources": _read_resources(top),
        "tables": _read_tables(top.inner("tables")),
        "public": _read_tables(top.inner("public")),
    }
    for name in ("rows", "groups", "joined_rows", "size"):
        facts[name] = top.take(name, int)
        if facts[name] is not None and facts[name] < 1:
            raise top.refuse(name, "must be at least 1.")
    try:
        return Declaration(**facts)
    except ParameterError as error:
        raise ParameterError(f"{file}: {error}", parameter=error.parameter) from None


def _read_unit(top: _Place) -> Unit:
    value = top.data.get("unit")
    if value is None:
        raise top.refuse(
            "unit", 'is missing: whose rows belong together? unit = "user_id" names a column.'
        )
    if isinstance(value, str):
        return top.checked("unit", lambda: Unit.column(value))
    place = top.inner("unit")
    place.only(("kind", "name", "period", "time", "size"))
    for key in place.data:
        place.take(key, int if key == "size" else str)
    return top.checked("unit", lambda: Unit.from_dict(place.data))


def _read_resources(top: _Place) -> Resources:
    place = top.inner("resources")
    place.only(("memory", "disk", "seconds"))
    facts: dict[str, Any] = {name: place.take(name, str) for name in ("memory", "disk")}
    if "seconds" in place.data:  # 0 is no limit
        facts["seconds"] = _number(place, "seconds") or None
    return top.checked("resources", lambda: Resources(**facts))


def _read_neighbours(top: _Place) -> Neighbours:
    value = top.take("neighbours", str)
    try:
        return Neighbours.add_remove if value is None else Neighbours(value)
    except ValueError:
        raise top.refuse("neighbours", f"must be one of {', '.join(Neighbours)}.") from None


def _number(place: _Place, key: str, default: Number | None = None) -> Number:
    value = place.data.get(key, default)
    if value is None:
        raise place.refuse(key, "is missing.")
    return _as_number(value, place, key)


def _as_number(value: object, place: _Place, key: str) -> Number:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,4000}/\d{1,4000}", value):
        parts = value.split("/")
        if int(parts[1]):
            return Fraction(int(parts[0]), int(parts[1]))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.refuse(key, 'must be a number, or a fraction such as "1/3".')
    return value


def _read_tables(place: _Place) -> dict[str, DeclaredTable]:
    tables = {}
    for name in place.data:
        own = place.inner(name)
        own.only(("source", "unit", "columns"))
        columns = own.inner("columns")
        read_all = {column: _read_column(columns.inner(column)) for column in columns.data}
        make = partial(
            DeclaredTable,
            source=own.take("source", str),
            columns=read_all,
            unit=_read_owner(own),
        )
        tables[name] = own.checked("columns", make)
    return tables


def _read_owner(place: _Place) -> str | ForeignKey | None:
    if not isinstance(place.data.get("unit"), dict):
        return place.take("unit", str)
    own = place.inner("unit")
    own.only(("column", "table", "key"))
    return ForeignKey(**{word: own.need(word, str) for word in ("column", "table", "key")})


def _read_column(place: _Place) -> DeclaredColumn:
    place.only(("type", "bounds", "total", "keys", "null"))
    bounds, keys = place.data.get("bounds", "infer"), place.data.get("keys", "select")
    has_null = place.take("null", bool, default=False)
    if bounds != "infer" and not (isinstance(bounds, list) and len(bounds) == 2):
        raise place.refuse("bounds", 'must be two numbers such as [0, 100], or "infer".')
    if keys != "select" and not isinstance(keys, list):
        raise place.refuse("keys", 'must be a list such as ["a", "b"], or "select".')
    if has_null and keys == "select":
        raise place.refuse("null", "is for a list of keys: it says that NULL is one, too.")
    facts: dict[str, Any] = {}
    if "type" in place.data:
        facts["type"] = place.need("type", str)
        place.checked("type", lambda: DeclaredColumn(type=facts["type"]))
    if bounds != "infer":
        facts["bounds"] = tuple(_as_number(bound, place, "bounds") for bound in bounds)
        place.checked("bounds", lambda: DeclaredColumn(bounds=facts["bounds"]))
    if "total" in place.data:
        facts["total"] = _as_number(place.data["total"], place, "total")
        place.checked("total", lambda: DeclaredColumn(total=facts["total"]))
    if keys != "select":
        facts["keys"] = (*keys, None) if has_null else tuple(keys)
        place.checked("keys", lambda: DeclaredColumn(keys=facts["keys"]))
    return DeclaredColumn(**facts)
