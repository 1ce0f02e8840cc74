"""Typed pieces of SQL: each is total, so whatever the data, evaluating it never raises."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, Protocol, final

from discreet.tables.model.query import KeyValue
from discreet.tables.sql.expressions.intervals import ANY, Interval

if TYPE_CHECKING:
    from sqlglot import exp

    from discreet.tables.sql.question.context import Question

__all__ = [
    "INTEGERS",
    "NULL",
    "Kind",
    "Scope",
    "Term",
    "as_double",
    "boolean",
    "in_range",
    "kind_of",
    "name",
    "number",
    "plain_type",
    "text",
    "tidy",
    "tidy_double",
    "total_column",
    "without_labels",
]

Kind = Literal["number", "text", "boolean", "date", "timestamp", "null"]

INTEGERS: Final = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
_WIDE: Final = frozenset({"HUGEINT", "UHUGEINT", "BIGNUM"})
_ALIASES: Final = {
    "INT": "INTEGER", "INT1": "TINYINT", "INT2": "SMALLINT", "INT4": "INTEGER", "INT8": "BIGINT",
    "LONG": "BIGINT", "SHORT": "SMALLINT", "REAL": "FLOAT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
    "TEXT": "VARCHAR", "STRING": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR",
    "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN", "DATETIME": "TIMESTAMP",
}  # fmt: skip
_ZONED: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"})
_TIMESTAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One expression: its SQL, its type, and what is publicly known of its values.

    ``type`` is the type that DuckDB gives it. ``values`` are all values it can have, where they
    are known; a literal has exactly one. ``column`` names the column it is, where it is one, and
    ``is_unit`` says that this column is the unit of privacy of the row.

    >>> number("(1 + x)", interval=ANY).type
    'DOUBLE'
    """

    sql: str
    kind: Kind
    type: str
    interval: Interval = ANY
    is_whole: bool = False
    is_nullable: bool = True
    is_literal: bool = False
    values: tuple[KeyValue, ...] | None = None
    column: str | None = None
    is_unit: bool = False
    is_tidy: bool = False  # has no NaN already


NULL: Final = Term(sql="NULL", kind="null", type="NULL", is_literal=True, values=(None,))


class Scope(Protocol):
    """What an expression can refer to."""

    @property
    def question(self) -> "Question":
        """The question that the expression is part of."""

    def term(self, node: "exp.Expression", /) -> Term:
        """Translate an expression, or refuse it."""


def name(identifier: str) -> str:
    """Quote an identifier.

    >>> name('a "b" c')
    '"a ""b"" c"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def number(
    sql: str,
    *,
    interval: Interval = ANY,
    is_whole: bool = False,
    is_nullable: bool = True,
    is_tidy: bool = False,
) -> Term:
    """Return a number that is computed as a DOUBLE.

    >>> number("x").kind
    'number'
    """
    return Term(
        sql=sql,
        kind="number",
        type="DOUBLE",
        interval=interval,
        is_whole=is_whole,
        is_nullable=is_nullable,
        is_tidy=is_tidy,
    )


def text(sql: str, *, is_nullable: bool = True) -> Term:
    """Return a text.

    >>> text("lower(x)").type
    'VARCHAR'
    """
    return Term(sql=sql, kind="text", type="VARCHAR", is_nullable=is_nullable)


def boolean(sql: str, *, is_nullable: bool = True) -> Term:
    """Return a truth value; as a number it is 0 or 1.

    >>> boolean("(x IS NULL)", is_nullable=False).values
    (False, True)
    """
    return Term(
        sql=sql,
        kind="boolean",
        type="BOOLEAN",
        interval=(Fraction(0), Fraction(1)),
        is_whole=True,
        is_nullable=is_nullable,
        values=(False, True, None) if is_nullable else (False, True),
    )


def kind_of(declared: str) -> Kind | None:
    """Return the kind of a DuckDB type, or None where questions cannot use it.

    >>> kind_of("DECIMAL(18,3)"), kind_of("INTEGER[]")
    ('number', None)
    """
    plain = plain_type(declared)
    if plain in INTEGERS or plain in _WIDE or plain in ("FLOAT", "DOUBLE"):
        return "number"
    if re.fullmatch(r"(DECIMAL|NUMERIC)(\(.*\))?", plain):
        return "number"
    if re.fullmatch(r"VARCHAR(\(\d+\))?|UUID|ENUM(\(.*\))?", plain, re.DOTALL):
        return "text"
    if plain in _TIMESTAMPS or plain in _ZONED:
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(plain)  # type: ignore[return-value]


def plain_type(declared: str) -> str:
    """Return the one name that a type has here.

    >>> plain_type("int8"), plain_type("decimal(18,3)")
    ('BIGINT', 'DECIMAL(18,3)')
    """
    # Only the name is made upper case: the labels of an ENUM keep theirs.
    head, bracket, rest = declared.strip().partition("(")
    head = head.strip().upper()
    return _ALIASES.get(head, head) + bracket + rest


def without_labels(declared: str) -> str:
    """Return a type without the labels of an ENUM, which are data and not public.

    >>> without_labels("ENUM('spy', 'it''s')[]")
    'ENUM[]'
    """
    label = r"'(?:[^']|'')*'"
    return re.sub(rf"\bENUM\({label}(?:, ?{label})*\)", "ENUM", declared, flags=re.IGNORECASE)


def total_column(sql: str, declared: str) -> Term | None:
    """Return a column of a table as a term that has no NaN and no date out of range.

    Years 1 to 9999 are kept, others (also infinite dates) become NULL: near the ends of what
    DuckDB can store, ordinary functions of dates raise errors. Decimals and very wide integers
    become DOUBLE, so that comparing them can never overflow. Moments with a time zone are taken
    in UTC, whatever the zone of the session.

    >>> total_column('"x"', "FLOAT").sql
    'CASE WHEN isnan("x") THEN NULL ELSE CAST("x" AS DOUBLE) END'
    """
    kind, plain = kind_of(declared), plain_type(declared)
    if kind is None:
        return None
    if kind == "number":
        if plain in INTEGERS:
            return Term(sql=sql, kind=kind, type=plain, is_whole=True)
        if plain in ("FLOAT", "DOUBLE"):
            cast = sql if plain == "DOUBLE" else f"CAST({sql} AS DOUBLE)"
            return number(f"CASE WHEN isnan({sql}) THEN NULL ELSE {cast} END")
        return number(f"TRY_CAST({sql} AS DOUBLE)", is_whole=plain in _WIDE)
    if kind == "boolean":
        return boolean(sql)
    if kind == "text":
        return text(sql if plain.startswith("VARCHAR") else f"TRY_CAST({sql} AS VARCHAR)")
    if plain in _ZONED:
        sql = f"make_timestamp(epoch_us({sql}))"
    elif kind == "timestamp" and plain != "TIMESTAMP":
        sql = f"TRY_CAST({sql} AS TIMESTAMP)"
    return in_range(sql, kind)


def in_range(sql: str, kind: Kind) -> Term:
    """Return a date or timestamp with whatever lies outside the years 1 to 9999 made NULL."""
    last = "9999-12-31" if kind == "date" else "9999-12-31 23:59:59.999999"
    first = "0001-01-01" if kind == "date" else "0001-01-01 00:00:00"
    word = kind.upper()
    guarded = f"CASE WHEN {sql} BETWEEN {word} '{first}' AND {word} '{last}' THEN {sql} END"
    return Term(sql=guarded, kind=kind, type=word)


def tidy(term: Term) -> str:
    """Return the SQL of a number without NaN, which arithmetic on infinities can create.

    >>> tidy(number("x"))
    'CASE WHEN isnan(x) THEN NULL ELSE x END'
    """
    if term.kind != "number" or term.type != "DOUBLE" or term.is_literal or term.is_tidy:
        return term.sql
    return f"CASE WHEN isnan({term.sql}) THEN NULL ELSE {term.sql} END"


def as_double(term: Term) -> str:
    """Return the SQL of a number or truth value as a DOUBLE.

    >>> as_double(boolean("ok"))
    'CAST(ok AS DOUBLE)'
    """
    if term.type == "DOUBLE":
        return term.sql
    if term.is_literal and term.kind == "number" and term.interval[0] is not None:
        value = term.interval[0]
        if abs(value) < 2**53:
            return f"({value}e0)" if value < 0 else f"{value}e0"
    return f"CAST({term.sql} AS DOUBLE)"


def tidy_double(term: Term) -> str:
    """Return the SQL of a number or truth value as a DOUBLE without NaN.

    >>> tidy_double(boolean("ok"))
    'CAST(ok AS DOUBLE)'
    """
    return tidy(term) if term.type == "DOUBLE" else as_double(term)
