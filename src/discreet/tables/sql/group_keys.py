"""The keys of groups, and which of them are public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from discreet.tables.model.key_values import key_type, key_value
from discreet.tables.model.query import Key, KeyValue
from discreet.tables.model.scalar import Call, Cast, Literal, ReleasedKey, Scalar
from discreet.tables.model.types import SQL_NAMES, Type
from discreet.tables.sql.expressions.literals import unify
from discreet.tables.sql.expressions.term import Term, tidy
from discreet.tables.sql.question.context import ReadingContext
from discreet.tables.sql.relations.scopes import RowScope

__all__ = ["GroupKey", "group_key", "listed_values"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """A key: its node over rows as written, that of its column of the rows, and the plan's key."""

    written: Scalar
    node: Scalar
    key: Key
    term: Term

    def released(self, position: int) -> Term:
        """Return the key as a column of the released table."""
        return Term(
            node=ReleasedKey(position),
            kind=self.term.kind if self.term.kind != "null" else "text",
            type=self.key.type,
            is_whole=self.term.is_whole,
            interval=self.term.interval,
        )


def group_key(
    question: ReadingContext,
    node: exp.Expression,
    term: Term,
    *,
    name: str,
    listed: tuple[KeyValue, ...] | None,
) -> GroupKey:
    """Return a key of groups; ``listed`` are the only values that WHERE lets through.

    Whole numbers become integers, and minus zero becomes zero, so that a key is always shown the
    same way. Text that is NULL or unknown stays as it is.
    """
    column, type_ = tidy(term), key_type(term.type, is_whole=term.is_whole)
    if term.kind == "null":
        column = Literal(None, "text")
    elif term.type == "double" and term.is_whole:
        column = Cast(column, "int64")
    elif term.type == "double":
        column = Call("plus_zero", (column,))
    values = term.values
    if listed is not None:
        values = tuple(_listed(question, node, value, name, type_) for value in listed)
    elif values is not None:
        values = tuple(v for value in values for v in _fitting(value, type_))
    if values is not None:
        values = tuple(v for _, v in dict.fromkeys((type(v), v) for v in values))
        if not values:
            raise question.refuse("no_keys", node, word=name)
    return GroupKey(
        written=term.node, node=column, key=Key(name=name, type=type_, values=values), term=term
    )


def _listed(
    question: ReadingContext, node: exp.Expression, value: KeyValue, name: str, type_: Type
) -> KeyValue:
    # Every listed key is shown, so one that no row can ever have is a mistake: told in time.
    found = _fitting(value, type_)
    if not found:
        raise question.refuse(
            "key_value", node, value=repr(value), word=name, type=SQL_NAMES[type_]
        )
    return found[0]


def _fitting(value: KeyValue, type_: Type) -> tuple[KeyValue, ...]:
    """Return a value as a key of this type is written, or nothing where it cannot be one."""
    try:
        return (key_value(value, type_),)
    except ValueError:
        return ()


def listed_values(
    question: ReadingContext, conditions: Sequence[exp.Expression], scope: RowScope
) -> dict[Scalar, tuple[KeyValue, ...]]:
    """Return, by node, the values that conjuncts like key IN (...) or key = ... let through."""
    found: dict[Scalar, tuple[KeyValue, ...]] = {}
    for part in conditions:
        if isinstance(part, exp.In) and part.args.get("query") is None:
            subject, literals = part.this, list(part.expressions)
        elif isinstance(part, exp.EQ):
            subject, literals = part.this, [part.expression]
            if not scope.term(literals[0]).is_literal:
                subject, literals = part.expression, [part.this]
        else:
            continue
        term = scope.term(subject)
        others = [scope.term(literal) for literal in literals]
        if term.is_literal or not all(other.is_literal for other in others):
            continue
        same = unify([term, *others])
        if same is None:
            continue
        others = [o if o.kind == "number" else s for o, s in zip(others, same[1:], strict=True)]
        values = tuple(v for o in others for v in (o.values or ()) if v is not None)
        if term.node in found:
            values = tuple(v for v in found[term.node] if v in values)
        found[term.node] = values
    return found
