"""Typed expressions: each is total, so whatever the data, evaluating it never raises."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol, final

from discreet.tables.model import scalar
from discreet.tables.model.query import KeyValue
from discreet.tables.model.scalar import Call, Cast, Literal, Scalar
from discreet.tables.model.types import (
    INTEGERS,
    WIDE,
    ZONED,
    Kind,
    Type,
    column_type,
    kind_of,
    plain_type,
)
from discreet.tables.sql.expressions.intervals import ANY, Interval

if TYPE_CHECKING:
    from sqlglot import exp

    from discreet.tables.sql.question.context import ReadingContext

__all__ = [
    "MOST_DIGITS",
    "NULL",
    "Scope",
    "Term",
    "as_double",
    "boolean",
    "decimals",
    "exactly",
    "in_range",
    "kept_digits",
    "number",
    "rounded",
    "text",
    "tidy",
    "tidy_double",
    "together",
    "total_column",
]

MOST_DIGITS: Final = 15  # of a decimal after the point; doubles hardly have more


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One expression: its node, its type, and what is publicly known of its values.

    ``values`` are all values it can have, where they
    are known; a literal has exactly one. ``column`` names the column it is, where it is one, and
    ``is_unit`` says that this column is the unit of privacy of the row. Rows in which two columns
    are equal that have a label of ``owner`` in common belong to one unit. A number with ``digits``
    is a decimal, as SQL has it: computed as a double, and rounded to these digits where it is used.

    >>> number(scalar.ColumnRef("x")).type
    'double'
    """

    node: Scalar
    kind: Kind
    type: Type
    interval: Interval = ANY
    is_whole: bool = False
    is_nullable: bool = True
    is_literal: bool = False
    values: tuple[KeyValue, ...] | None = None
    column: str | None = None
    is_unit: bool = False
    owner: frozenset[str] = frozenset()
    is_tidy: bool = False  # has no NaN already
    total: Fraction | None = None  # of a plain column: how much of a unit's sum of it counts
    digits: int | None = None  # after the point, where it is a decimal and no mere double
    is_rounded: bool = False  # the double nearest to that decimal already
    is_zoned: bool = False  # a moment with a time zone, as the clocks in UTC show it


NULL: Final = Term(node=scalar.NULL, kind="null", type="null", is_literal=True, values=(None,))


class Scope(Protocol):
    """What an expression can refer to."""

    @property
    def question(self) -> "ReadingContext":
        """The question that the expression is part of."""

    def term(self, node: "exp.Expression", /) -> Term:
        """Translate an expression, or refuse it."""


def number(
    node: Scalar,
    *,
    interval: Interval = ANY,
    is_whole: bool = False,
    is_nullable: bool = True,
    is_tidy: bool = False,
    digits: int | None = None,
) -> Term:
    """Return a number that is computed as a double.

    >>> number(scalar.ColumnRef("x")).kind
    'number'
    """
    return Term(
        node=node,
        kind="number",
        type="double",
        interval=interval,
        is_whole=is_whole,
        is_nullable=is_nullable,
        is_tidy=is_tidy,
        digits=digits,
    )


def text(node: Scalar, *, is_nullable: bool = True) -> Term:
    """Return a text.

    >>> text(Call("lower", (scalar.ColumnRef("x"),))).type
    'text'
    """
    return Term(node=node, kind="text", type="text", is_nullable=is_nullable)


def boolean(node: Scalar, *, is_nullable: bool = True) -> Term:
    """Return a truth value; as a number it is 0 or 1.

    >>> boolean(Call("is_null", (scalar.ColumnRef("x"),)), is_nullable=False).values
    (False, True)
    """
    return Term(
        node=node,
        kind="boolean",
        type="boolean",
        interval=(Fraction(0), Fraction(1)),
        is_whole=True,
        is_nullable=is_nullable,
        values=(False, True, None) if is_nullable else (False, True),
    )


def total_column(column: Scalar, declared: str) -> Term | None:
    """Return a column of a table as a term that has no NaN and no date out of range.

    Years 1 to 9999 are kept, others (also infinite dates) become NULL: near the ends of what
    engines can store, ordinary functions of dates raise errors. Decimals and very wide integers
    become doubles, so that comparing them can never overflow. Moments with a time zone are taken
    in UTC, whatever the zone of the session.

    >>> total_column(scalar.ColumnRef("x"), "DOUBLE").node
    Call(function='not_nan', arguments=(ColumnRef(name='x', source=''),))
    """
    kind, type_, plain = kind_of(declared), column_type(declared), plain_type(declared)
    if kind is None or type_ is None:
        return None
    if type_ == "double":
        if plain == "DOUBLE":
            return number(Call("not_nan", (column,)))
        if plain == "FLOAT":
            return number(Call("not_nan", (Cast(column, "double", widens=True),)))
        scale = re.fullmatch(r"(?:DECIMAL|NUMERIC)\(\d+, ?(\d+)\)", plain)
        found = number(Cast(column, "double"), is_whole=plain in WIDE)
        digits = int(scale[1]) if scale is not None else None
        return replace(found, digits=kept_digits(digits), is_rounded=True)
    if kind == "number":
        return Term(node=column, kind=kind, type=type_, is_whole=True)
    if kind == "boolean":
        return boolean(column)
    if kind == "text":
        return text(column if plain.startswith("VARCHAR") else Cast(column, "text"))
    if plain in ZONED:
        return replace(in_range(Call("from_utc", (column,)), type_), is_zoned=True)
    if kind == "timestamp" and plain != "TIMESTAMP":
        column = Cast(column, "timestamp")
    return in_range(column, type_)


def in_range(node: Scalar, type_: Type) -> Term:
    """Return a date or timestamp with whatever lies outside the years 1 to 9999 made NULL."""
    if type_ == "date":
        return Term(node=Call("date_in_range", (node,)), kind="date", type="date")
    return Term(node=Call("timestamp_in_range", (node,)), kind="timestamp", type="timestamp")


def kept_digits(digits: int | None) -> int | None:
    """Return digits after the point that doubles can keep, None where there are more.

    >>> kept_digits(2), kept_digits(30)
    (2, None)
    """
    return digits if digits is not None and digits <= MOST_DIGITS else None


def decimals(term: Term) -> int | None:
    """Return how many digits after the point a number has at most, None where it is a double.

    >>> decimals(Term(node=scalar.ColumnRef("n"), kind="number", type="int32"))
    0
    """
    return 0 if term.type in INTEGERS else term.digits


def rounded(term: Term) -> Scalar:
    """Return a decimal as the double nearest to it, which sums and products of doubles may miss.

    >>> rounded(replace(number(scalar.ColumnRef("x")), digits=2)).function
    'round'
    """
    if term.digits is None or term.type != "double" or term.is_rounded or term.is_literal:
        return term.node
    return Call("round", (term.node, Literal(term.digits, "int32")))


def exactly(term: Term) -> Scalar:
    """Return a number as a double, the nearest one where it is a decimal.

    >>> exactly(Term(node=scalar.ColumnRef("n"), kind="number", type="int32")).type
    'double'
    """
    return rounded(term) if term.type == "double" else as_double(term)


def tidy(term: Term) -> Scalar:
    """Return a number without NaN, which arithmetic on infinities can create; decimals exactly.

    >>> tidy(number(scalar.ColumnRef("x"))).function
    'not_nan'
    """
    if term.kind != "number" or term.type != "double" or term.is_literal:
        return term.node
    return rounded(term) if term.is_tidy else Call("not_nan", (rounded(term),))


def together(terms: Sequence[Term]) -> Term:
    """Return one text for several values, another one for other values; NULL where one of them is.

    The length of each stands before it, so that none can be taken for a part of the next.

    >>> together([text(scalar.ColumnRef("a")), text(scalar.ColumnRef("b"))]).type
    'text'
    """
    parts: list[Scalar] = []
    for term in terms:
        plain = Call("plus_zero", (tidy(term),)) if term.type == "double" else tidy(term)
        written = plain if term.kind == "text" else Cast(plain, "text", widens=True)
        size = Cast(Call("length", (written,)), "text", widens=True)
        parts += [size, Literal(":", "text"), written]
    return text(Call("concat", tuple(parts)))


def as_double(term: Term) -> Scalar:
    """Return a number or truth value as a double.

    >>> as_double(boolean(scalar.ColumnRef("ok"))).type
    'double'
    """
    if term.type == "double":
        return term.node
    if term.is_literal and isinstance(term.node, Literal) and term.kind == "number":
        value = term.node.value
        if isinstance(value, int) and abs(value) < 2**53:
            return scalar.double(value)
    return Cast(term.node, "double", widens=True)


def tidy_double(term: Term) -> Scalar:
    """Return a number or truth value as a double without NaN.

    >>> tidy_double(boolean(scalar.ColumnRef("ok"))).widens
    True
    """
    return tidy(term) if term.type == "double" else as_double(term)
