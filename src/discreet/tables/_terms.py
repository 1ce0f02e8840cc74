"""Typed pieces of SQL: each is total, so whatever the data, evaluating it never raises."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, Protocol, final

from discreet.tables._intervals import ANY, Interval, hull, point
from discreet.tables.plan import KeyValue

if TYPE_CHECKING:
    from sqlglot import exp

    from discreet.tables._question import Question

__all__ = [
    "INTEGERS",
    "NULL",
    "Kind",
    "Scope",
    "Term",
    "as_double",
    "as_kind",
    "boolean",
    "kind_of",
    "name",
    "number",
    "number_literal",
    "text",
    "text_literal",
    "time_literal",
    "tidy",
    "tidy_double",
    "total_column",
    "unify",
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


def text_literal(value: str) -> Term:
    """Return a text that is written out.

    >>> text_literal("it's").sql
    "'it''s'"
    """
    sql = "'" + value.replace("'", "''") + "'"
    return Term(
        sql=sql, kind="text", type="VARCHAR", is_nullable=False, is_literal=True, values=(value,)
    )


def number_literal(value: Fraction) -> Term:
    """Return a number that is written out: an integer where it is one, else a DOUBLE.

    >>> number_literal(Fraction(3)).sql, number_literal(Fraction(1, 10)).sql
    ('3', '0.1e0')
    """
    is_integer = value.denominator == 1 and abs(value) < 2**63
    shown = str(value.numerator) if is_integer else _double(float(value))
    return Term(
        sql=f"({shown})" if value < 0 else shown,
        kind="number",
        type=("INTEGER" if abs(value) < 2**31 else "BIGINT") if is_integer else "DOUBLE",
        interval=point(value),
        is_whole=value.denominator == 1,
        is_nullable=False,
        is_literal=True,
        values=(value.numerator if is_integer else float(value),),
    )


def _double(value: float) -> str:
    shown = repr(value)
    return shown if "e" in shown else f"{shown}e0"


def time_literal(written: str, kind: Literal["date", "timestamp"]) -> Term | None:
    """Return a date or timestamp that is written out, or None where it is none.

    >>> time_literal("2026-01-31", "date").sql
    "DATE '2026-01-31'"
    >>> time_literal("2026-02-31", "date") is None
    True
    """
    try:
        moment = datetime.fromisoformat(written.strip())
    except ValueError:
        return None
    if moment.tzinfo is not None or (kind == "date" and moment.time() != time.min):
        return None
    shown = moment.date().isoformat() if kind == "date" else moment.isoformat(sep=" ")
    return Term(
        sql=f"{kind.upper()} '{shown}'",
        kind=kind,
        type=kind.upper(),
        is_nullable=False,
        is_literal=True,
        values=(shown if kind == "date" else moment.isoformat(),),
    )


def kind_of(declared: str) -> Kind | None:
    """Return the kind of a DuckDB type, or None where questions cannot use it.

    >>> kind_of("DECIMAL(18,3)"), kind_of("INTEGER[]")
    ('number', None)
    """
    plain = _plain(declared)
    if plain in INTEGERS or plain in _WIDE or plain in ("FLOAT", "DOUBLE"):
        return "number"
    if re.fullmatch(r"(DECIMAL|NUMERIC)(\(.*\))?", plain):
        return "number"
    if re.fullmatch(r"VARCHAR(\(\d+\))?|UUID|ENUM\(.*\)", plain, re.DOTALL):
        return "text"
    if plain in _TIMESTAMPS:
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(plain)  # type: ignore[return-value]


def _plain(declared: str) -> str:
    # Only the name is made upper case: the labels of an ENUM keep theirs.
    head, bracket, rest = declared.strip().partition("(")
    head = head.strip().upper()
    return _ALIASES.get(head, head) + bracket + rest


def total_column(sql: str, declared: str) -> Term | None:
    """Return a column of a table as a term that has no NaN and no date out of range.

    Years 1 to 9999 are kept, others (also infinite dates) become NULL: near the ends of what
    DuckDB can store, ordinary functions of dates raise errors. Decimals and very wide integers
    become DOUBLE, so that comparing them can never overflow.

    >>> total_column('"x"', "FLOAT").sql
    'CASE WHEN isnan("x") THEN NULL ELSE CAST("x" AS DOUBLE) END'
    """
    kind, plain = kind_of(declared), _plain(declared)
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
    if kind == "timestamp" and plain != "TIMESTAMP":
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

    >>> as_double(number_literal(Fraction(2)))
    '2e0'
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

    >>> tidy_double(number_literal(Fraction(2)))
    '2e0'
    """
    return tidy(term) if term.type == "DOUBLE" else as_double(term)


def as_kind(term: Term, kind: Kind) -> Term | None:
    """Return a term as another kind where SQL converts silently and safely, else None.

    >>> as_kind(text_literal("2026-01-31"), "date").kind
    'date'
    """
    if term.kind == kind:
        return term
    if term.kind == "null":
        return replace(term, kind=kind)
    if kind in ("date", "timestamp") and term.kind == "text" and term.is_literal:
        return time_literal(str(term.values[0] if term.values else ""), kind)
    if kind == "timestamp" and term.kind == "date":
        return replace(term, sql=f"CAST({term.sql} AS TIMESTAMP)", kind=kind, type="TIMESTAMP")
    return None


def unify(terms: Sequence[Term]) -> list[Term] | None:
    """Return terms converted to one type that all of them fit, or None.

    >>> [t.type for t in unify([number("x"), number_literal(Fraction(1))])]
    ['DOUBLE', 'DOUBLE']
    """
    kinds = {term.kind for term in terms} - {"null"}
    if not kinds:
        return list(terms)
    typed = [t.kind for t in terms if t.kind != "null" and not (t.kind == "text" and t.is_literal)]
    wanted: Kind = typed[0] if typed else "text"
    if kinds & {"timestamp"}:
        wanted = "timestamp"
    converted = [as_kind(term, wanted) for term in terms]
    if any(term is None for term in converted):
        return None
    same = [term for term in converted if term is not None]
    if wanted == "number":
        return _unify_numbers(same)
    return same


def _unify_numbers(terms: list[Term]) -> list[Term]:
    types = {term.type for term in terms if term.type != "NULL"}
    if len(types) == 1:
        common = types.pop()
        return [replace(term, type=common) for term in terms]
    if types <= INTEGERS - {"UBIGINT"}:
        return [replace(term, sql=f"CAST({term.sql} AS BIGINT)", type="BIGINT") for term in terms]
    return [replace(term, sql=as_double(term), type="DOUBLE") for term in terms]


def joined(terms: Sequence[Term], sql: str) -> Term:
    """Return a term that is always one of unified terms."""
    first = next((t for t in terms if t.kind != "null"), NULL)
    known = [t for t in terms if t.kind != "null"]
    lists = [t.values for t in terms]
    values = None
    if all(v is not None for v in lists):
        values = tuple(dict.fromkeys((type(v), v) for vs in lists if vs is not None for v in vs))
    return Term(
        sql=sql,
        kind=first.kind,
        type=first.type,
        interval=hull([t.interval for t in known]),
        is_whole=all(t.is_whole for t in known) and bool(known),
        is_nullable=any(t.is_nullable for t in terms),
        values=None if values is None else tuple(v for _, v in values),
        is_tidy=all(t.is_tidy or t.is_literal or t.type != "DOUBLE" for t in terms),
    )
