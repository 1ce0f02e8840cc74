"""Declarations as TOML that people read: with comments, and everything visible."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from discreet._exact import Number
from discreet.privacy import Unit
from discreet.tables.engines.named import DEFAULT_ENGINE
from discreet.tables.model.catalog import ForeignKey, column_kind
from discreet.tables.model.resources import Resources

if TYPE_CHECKING:
    from discreet.tables.declarations.column import DeclaredColumn
    from discreet.tables.declarations.declaration import Declaration, DeclaredTable
    from discreet.tables.model.query import KeyValue

__all__ = ["bare", "number", "text", "write"]

_PREFACE: Final = (
    "# Who is protected and what may be assumed. "
    "All of it is public: it may not come from the data."
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_QUOTES: Final = str.maketrans(_ESCAPES)


def write(declaration: "Declaration", types: Mapping[str, Mapping[str, str]]) -> str:
    """Write a declaration; columns of a known type that are not declared become comments."""
    lines = [_PREFACE, f"name = {text(declaration.name)}"]
    if declaration.account is not None:
        lines.append(f"account = {text(declaration.account)}")
    if declaration.ledger is not None:
        lines.append(f"ledger = {text(declaration.ledger)}")
    if declaration.engine != DEFAULT_ENGINE.name:
        lines.append(f"engine = {text(declaration.engine)}")
    lines.append(f"unit = {_unit(declaration.unit)}")
    lines.append(f"neighbours = {text(str(declaration.neighbours))}")
    if declaration.policy is not None:
        lines.append(f"policy = {text(declaration.policy)}  # when the budget is exhausted")
    for name, why in (
        ("rows", "of one unit count, at most"),
        ("groups", "of one unit count, at most"),
        ("joined_rows", "of one unit made by a join, at most"),
        ("size", "the number of units"),
    ):
        if getattr(declaration, name) is not None:
            lines.append(f"{name} = {getattr(declaration, name)}  # {why}")
    guarantee = declaration.guarantee
    lines += ["", "[guarantee]", f"epsilon = {number(guarantee.epsilon)}"]
    if guarantee.delta != 0:
        lines.append(f"delta = {number(guarantee.delta)}")
    if declaration.resources != Resources():
        lines += ["", "[resources]", *_resources(declaration.resources)]
    for group, tables in (("tables", declaration.tables), ("public", declaration.public)):
        for name, table in tables.items():
            # The unit's own columns have nothing to declare.
            own = set()
            if group == "tables":
                own = {declaration.unit_column(name), declaration.unit.time}
            asked = {c: type_ for c, type_ in types.get(name, {}).items() if c not in own}
            lines += _table(f"{group}.{bare(name)}", table, asked)
    return "\n".join(lines) + "\n"


def _resources(resources: Resources) -> list[str]:
    """Write limits; no limit in time is 0, as TOML knows no nothing."""
    sizes = [(name, getattr(resources, name)) for name in ("memory", "disk")]
    lines = [f"{name} = {text(size)}" for name, size in sizes if size is not None]
    return [*lines, f"seconds = {number(resources.seconds or 0)}"]


def _table(path: str, table: "DeclaredTable", types: Mapping[str, str]) -> list[str]:
    lines = ["", f"[{path}]"]
    if table.source is not None:
        lines.append(f"source = {text(table.source)}")
    if isinstance(table.unit, ForeignKey):
        means = (
            ("column", table.unit.column),
            ("table", table.unit.table),
            ("key", table.unit.key),
        )
        lines.append(f"unit = {{ {', '.join(f'{word} = {text(said)}' for word, said in means)} }}")
    elif table.unit is not None:
        lines.append(f"unit = {text(table.unit)}")
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
    return {
        "number": "{ bounds = [0, 100] }",
        "text": '{ keys = ["this", "that"] }',
        "boolean": "{ keys = [false, true] }",
        "time": '{ keys = ["2026-01-01", "2026-01-02"] }',
    }.get(column_kind(type_), "{}")


def _comment(type_: str) -> str:
    # The categories of an ENUM are data; and a comment ends with its line.
    return re.sub(r"[^ -~]", "?", type_.split("(")[0] if type_.startswith("ENUM") else type_)


def _column(column: "DeclaredColumn", type_: str) -> str:
    parts = [] if column.type is None else [f"type = {text(column.type)}"]
    if column.bounds is None and column_kind(type_) == "number":
        parts.append('bounds = "infer"')  # the same as nothing, but a reader sees what happens
    if column.bounds is not None:
        parts.append(f"bounds = [{', '.join(number(bound) for bound in column.bounds)}]")
    if column.total is not None:
        parts.append(f"total = {number(column.total)}")
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
    if value.isprintable():  # nearly always, and there may be a million of them
        return f'"{value.translate(_QUOTES)}"'
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
