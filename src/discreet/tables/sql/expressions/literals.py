"""Literals as terms, and terms of different types brought to one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, time
from fractions import Fraction
from typing import Literal

from discreet.tables.sql.expressions.intervals import hull, point
from discreet.tables.sql.expressions.term import INTEGERS, NULL, Kind, Term, as_double

__all__ = ["as_kind", "joined", "number_literal", "text_literal", "time_literal", "unify"]


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

    >>> from discreet.tables.sql.expressions.term import number
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
    known = [t for t in terms if t.values != (None,)]  # a NULL widens no interval
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
