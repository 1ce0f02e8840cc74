"""Declarations as TOML: written by hand to be read by people, read strictly."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from discreet._exact import Number
from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.engines.named import DEFAULT_ENGINE

if TYPE_CHECKING:
    from discreet.tables.declarations.declaration import Declaration, DeclaredColumn, DeclaredTable
    from discreet.tables.model.query import KeyValue

T = TypeVar("T")

_PREFACE: Final = (
    "# Who is protected and what may be assumed. "
    "All of it is public: it may not come from the data."
)
_TOP: Final = (
    "name",
    "ledger",
    "engine",
    "unit",
    "neighbours",
    "rows",
    "groups",
    "size",
    "guarantee",
    "tables",
    "public",
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def write(declaration: "Declaration", types: Mapping[str, Mapping[str, str]]) -> str:
    """Write a declaration; columns of a known type that are not declared become comments."""
    lines = [_PREFACE, f"name = {text(declaration.name)}"]
    if declaration.ledger is not None:
        lines.append(f"ledger = {text(declaration.ledger)}")
    if declaration.engine != DEFAULT_ENGINE.name:
        lines.append(f"engine = {text(declaration.engine)}")
    lines.append(f"unit = {_unit(declaration.unit)}")
    lines.append(f"neighbours = {text(str(declaration.neighbours))}")
    for name, why in (
        ("rows", "of one unit count, at most"),
        ("groups", "of one unit count, at most"),
        ("size", "the number of units"),
    ):
        if getattr(declaration, name) is not None:
            lines.append(f"{name} = {getattr(declaration, name)}  # {why}")
    guarantee = declaration.guarantee
    lines += ["", "[guarantee]", f"epsilon = {number(guarantee.epsilon)}"]
    if guarantee.delta != 0:
        lines.append(f"delta = {number(guarantee.delta)}")
    for group, tables in (("tables", declaration.tables), ("public", declaration.public)):
        for name, table in tables.items():
            # The unit's own columns have nothing to declare.
            own = {declaration.unit.name, declaration.unit.time} if group == "tables" else set()
            asked = {c: type_ for c, type_ in types.get(name, {}).items() if c not in own}
            lines += _table(f"{group}.{bare(name)}", table, asked)
    return "\n".join(lines) + "\n"


def _table(path: str, table: "DeclaredTable", types: Mapping[str, str]) -> list[str]:
    lines = ["", f"[{path}]"]
    if table.source is not None:
        lines.append(f"source = {text(table.source)}")
    if table.columns or types:
        lines += ["", f"[{path}.columns]"]
    for name, column in table.columns.items():
        type_ = types.get(name, "")
        hint = f"  # {_comment(type_)}" if type_ else ""
        lines.append(f"{bare(name)} = {_column(column, type_)}{hint}")
    for name, type_ in types.items():
        if name not in table.columns:
            lines.append(f"# {bare(name)} = {_example(type_)}  # {_comment(type_)}")
    return lines


def _example(type_: str) -> str:
    from discreet.tables.declarations.declaration import kind_of

    return {
        "number": "{ bounds = [0, 100] }",
        "text": '{ keys = ["this", "that"] }',
        "boolean": "{ keys = [false, true] }",
        "time": '{ keys = ["2026-01-01", "2026-01-02"] }',
    }.get(kind_of(type_), "{}")


def _comment(type_: str) -> str:
    # The categories of an ENUM are data; and a comment ends with its line.
    return re.sub(r"[^ -~]", "?", type_.split("(")[0] if type_.startswith("ENUM") else type_)


def _column(column: "DeclaredColumn", type_: str) -> str:
    from discreet.tables.declarations.declaration import kind_of

    parts = [] if column.type is None else [f"type = {text(column.type)}"]
    if column.bounds is None and kind_of(type_) == "number":
        parts.append('bounds = "infer"')  # the same as nothing, but a reader sees what happens
    if column.bounds is not None:
        parts.append(f"bounds = [{', '.join(number(bound) for bound in column.bounds)}]")
    if column.keys is not None:
        present = [_key(key) for key in column.keys if key is not None]
        parts.append(f"keys = [{', '.join(present)}]")
        if None in column.keys:
            parts.append("null = true")
    return f"{{ {', '.join(parts)} }}" if parts else "{}"


def _key(key: "KeyValue") -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return text(key) if isinstance(key, str) else number(key or 0)


def _unit(unit: Unit) -> str:
    if unit.to_dict() == {"kind": "column", "name": unit.name}:
        return text(str(unit.name))
    parts = [
        f"{key} = {text(value) if isinstance(value, str) else value}"
        for key, value in unit.to_dict().items()
    ]
    return f"{{ {', '.join(parts)} }}"


def bare(name: str) -> str:
    """Write a key of TOML, quoted where it must be.

    >>> bare("region"), bare("the region")
    ('region', '"the region"')
    """
    return name if _BARE.fullmatch(name) else text(name)


def text(value: str) -> str:
    r"""Write a basic string of TOML.

    >>> print(text('a "b"\n\x1b'))
    "a \"b\"\n\u001B"
    """
    return '"' + "".join(_ESCAPES.get(c) or _visible(c) for c in value) + '"'


def _visible(char: str) -> str:
    code = ord(char)
    # Also those that some editors take for the end of a line, or that reverse the writing.
    unseen = not char.isprintable() and char != " "
    return (f"\\u{code:04X}" if code < 1 << 16 else f"\\U{code:08X}") if unseen else char


def number(value: Number) -> str:
    """Write a number so that it is read back exactly; fractions are texts.

    >>> number(3), number(0.1), number(1e300), number(Fraction(1, 3))
    ('3', '0.1', '1e+300', '"1/3"')
    """
    if isinstance(value, Fraction):
        return str(value) if value.denominator == 1 else f'"{value}"'
    return repr(value)


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


def read(document: Mapping[str, Any], *, file: str) -> "Declaration":
    """Check everything in a file and make a declaration of it."""
    from discreet.tables.declarations.declaration import Declaration

    top = _Place(file, "", dict(document))
    top.only(_TOP)
    promised = top.inner("guarantee")
    promised.only(("epsilon", "delta"))
    epsilon, delta = _number(promised, "epsilon"), _number(promised, "delta", 0)
    guarantee = top.checked("guarantee", lambda: Guarantee(epsilon=epsilon, delta=delta))
    facts: dict[str, Any] = {
        "name": top.need("name", str),
        "ledger": top.take("ledger", str),
        "engine": top.take("engine", str, DEFAULT_ENGINE.name),
        "unit": _read_unit(top),
        "neighbours": _read_neighbours(top),
        "guarantee": guarantee,
        "tables": _read_tables(top.inner("tables")),
        "public": _read_tables(top.inner("public")),
    }
    for name in ("rows", "groups", "size"):
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


def _read_tables(place: _Place) -> dict[str, "DeclaredTable"]:
    from discreet.tables.declarations.declaration import DeclaredTable

    tables = {}
    for name in place.data:
        own = place.inner(name)
        own.only(("source", "columns"))
        columns = own.inner("columns")
        read_all = {column: _read_column(columns.inner(column)) for column in columns.data}
        make = partial(DeclaredTable, source=own.take("source", str), columns=read_all)
        tables[name] = own.checked("columns", make)
    return tables


def _read_column(place: _Place) -> "DeclaredColumn":
    from discreet.tables.declarations.declaration import DeclaredColumn

    place.only(("type", "bounds", "keys", "null"))
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
    if keys != "select":
        facts["keys"] = (*keys, None) if has_null else tuple(keys)
        place.checked("keys", lambda: DeclaredColumn(keys=facts["keys"]))
    return DeclaredColumn(**facts)
