"""Literals as terms, and terms of different types brought to one."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, time
from fractions import Fraction
from typing import Literal

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Cast, Scalar
from discreet.tables.model.types import INTEGERS, Kind
from discreet.tables.sql.expressions.intervals import hull, point
from discreet.tables.sql.expressions.term import (
    MOST_DIGITS,
    NULL,
    Term,
    as_double,
    boolean,
    decimals,
)

__all__ = [
    "as_kind",
    "exact",
    "joined",
    "number_literal",
    "text_literal",
    "truth_literal",
    "time_literal",
    "unify",
]


def exact(written: str) -> Fraction | None:
    """Read a number exactly, unless no DOUBLE comes near it.

    >>> exact("2.5e1"), exact("1e999")
    (Fraction(25, 1), None)
    """
    match = re.fullmatch(r"(\d[\d_]*\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3}))?", written)
    if match is None or len(written) > 400:
        return None
    value = Fraction(written.replace("_", ""))
    return value if value < Fraction(10) ** 308 else None


def text_literal(value: str) -> Term:
    """Return a text that is written out.

    >>> text_literal("it's").values
    ("it's",)
    """
    return Term(
        node=scalar.Literal(value, "text"),
        kind="text",
        type="text",
        is_nullable=False,
        is_literal=True,
        values=(value,),
    )


def number_literal(value: Fraction) -> Term:
    """Return a number that is written out: an integer where it is one, else a double.

    >>> number_literal(Fraction(3)).node, number_literal(Fraction(1, 10)).type
    (Literal(value=3, type='int32'), 'double')
    """
    is_integer = value.denominator == 1 and abs(value) < 2**63
    shown = value.numerator if is_integer else float(value)
    node = scalar.Literal(
        shown, ("int32" if abs(value) < 2**31 else "int64") if is_integer else "double"
    )
    return Term(
        node=node,
        kind="number",
        type=node.type,
        interval=point(value),
        is_whole=value.denominator == 1,
        is_nullable=False,
        is_literal=True,
        values=(shown,),
        digits=_digits(value),
    )


def _digits(value: Fraction) -> int | None:
    """Return how many digits after the point are enough to write a number."""
    return next((n for n in range(MOST_DIGITS + 1) if 10**n % value.denominator == 0), None)


def time_literal(written: str, kind: Literal["date", "timestamp"]) -> Term | None:
    """Return a date or timestamp that is written out, or None where it is none.

    >>> time_literal("2026-01-31", "date").node
    Literal(value='2026-01-31', type='date')
    >>> time_literal("2026-02-31", "date") is None
    True
    """
    try:
        moment = datetime.fromisoformat(written.strip())
    except ValueError:
        return None
    if moment.tzinfo is not None or (kind == "date" and moment.time() != time.min):
        return None
    shown = moment.date().isoformat() if kind == "date" else moment.isoformat()
    return Term(
        node=scalar.Literal(shown, kind),
        kind=kind,
        type=kind,
        is_nullable=False,
        is_literal=True,
        values=(shown,),
    )


def as_kind(term: Term, kind: Kind) -> Term | None:
    """Return a term as another kind where SQL converts silently and safely, else None.

    >>> as_kind(text_literal("2026-01-31"), "date").kind
    'date'
    """
    if term.kind == kind:
        return term
    if term.kind == "null":
        # A number's type is that of the others; all other kinds have one type, of the same name.
        return replace(term, kind=kind, type=term.type if kind == "number" else kind)
    if term.kind in ("text", "date") and term.is_literal:
        written = str(term.values[0] if term.values else "").strip()
        if kind in ("date", "timestamp"):
            return time_literal(written, kind)
        if term.kind == "text":
            return _meant(written, kind)
    if kind == "number" and term.kind == "boolean":
        made = as_double(term)
        return replace(term, node=made, kind=kind, type="double", is_tidy=True, values=None)
    if kind == "timestamp" and term.kind == "date":
        return replace(
            term, node=Cast(term.node, "timestamp", widens=True), kind=kind, type="timestamp"
        )
    return None


def _meant(written: str, kind: Kind) -> Term | None:
    """Return the number or truth value that a written text stands for, or None."""
    if kind == "number":
        value = exact(written.removeprefix("-"))
        return None if value is None else number_literal(-value if written[:1] == "-" else value)
    truth = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    meant = truth.get(written.lower())
    return truth_literal(meant) if kind == "boolean" and meant is not None else None


def truth_literal(value: bool) -> Term:
    """Return a truth value that is written out.

    >>> truth_literal(True).values
    (True,)
    """
    literal = boolean(scalar.Literal(value, "boolean"), is_nullable=False)
    return replace(literal, is_literal=True, values=(value,))


def unify(terms: Sequence[Term]) -> list[Term] | None:
    """Return terms converted to one type that all of them fit, or None.

    >>> from discreet.tables.sql.expressions.term import number
    >>> x = number(scalar.ColumnRef("x"))
    >>> [t.type for t in unify([x, number_literal(Fraction(1))])]
    ['double', 'double']
    """
    kinds = {term.kind for term in terms} - {"null"}
    if not kinds:
        return list(terms)
    typed = [t.kind for t in terms if t.kind != "null" and not (t.kind == "text" and t.is_literal)]
    wanted: Kind = typed[0] if typed else "text"
    if kinds & {"timestamp"}:
        wanted = "timestamp"
    if {"number", "boolean"} <= kinds:
        wanted = "number"
    converted = [as_kind(term, wanted) for term in terms]
    if any(term is None for term in converted):
        return None
    same = [term for term in converted if term is not None]
    if wanted == "number":
        return _unify_numbers(same)
    return same


def _unify_numbers(terms: list[Term]) -> list[Term]:
    types = {term.type for term in terms if term.type != "null"}
    if len(types) == 1:
        common = types.pop()
        return [replace(term, type=common) for term in terms]
    if types <= INTEGERS - {"uint64"}:
        return [
            replace(term, node=Cast(term.node, "int64", widens=True), type="int64")
            for term in terms
        ]
    return [
        replace(term, node=as_double(term), type="double", digits=decimals(term)) for term in terms
    ]


def joined(terms: Sequence[Term], node: Scalar) -> Term:
    """Return a term that is always one of unified terms."""
    first = next((t for t in terms if t.kind != "null"), NULL)
    known = [t for t in terms if t.values != (None,)]  # a NULL widens no interval
    lists = [t.values for t in terms]
    values = None
    digits = [decimals(t) for t in known]
    most = None if None in digits else max((n for n in digits if n is not None), default=None)
    if all(v is not None for v in lists):
        values = tuple(dict.fromkeys((type(v), v) for vs in lists if vs is not None for v in vs))
    return Term(
        node=node,
        kind=first.kind,
        type=first.type,
        interval=hull([t.interval for t in known]),
        is_whole=all(t.is_whole for t in known) and bool(known),
        is_nullable=any(t.is_nullable for t in terms),
        values=None if values is None else tuple(v for _, v in values),
        is_tidy=all(t.is_tidy or t.is_literal or t.type != "double" for t in terms),
        digits=most,
        is_zoned=any(t.is_zoned for t in terms),
    )
