"""The keys of groups, and which of them are public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from discreet.tables._conversions import unify
from discreet.tables._question import Question
from discreet.tables._scopes import RowScope
from discreet.tables._terms import INTEGERS, Term, tidy
from discreet.tables.plan import Key, KeyValue

__all__ = ["GroupKey", "group_key", "listed_values"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """A key: its SQL over rows as written, its SQL as a column of the rows, and the plan's key."""

    written: str
    sql: str
    key: Key
    term: Term

    def released(self, position: int) -> Term:
        """Return the key as a column of the released table."""
        return Term(
            sql=f"key_{position}",
            kind=self.term.kind if self.term.kind != "null" else "text",
            type=self.key.type,
            is_whole=self.term.is_whole,
            interval=self.term.interval,
        )


def group_key(term: Term, *, name: str, listed: tuple[KeyValue, ...] | None) -> GroupKey:
    """Return a key of groups; ``listed`` are the only values that WHERE lets through.

    Whole numbers become integers, and minus zero becomes zero, so that a key is always shown the
    same way. Text that is NULL or unknown stays as it is.
    """
    sql, type_ = tidy(term), term.type
    if term.kind == "null":
        sql, type_ = "CAST(NULL AS VARCHAR)", "VARCHAR"
    elif term.type == "DOUBLE" and term.is_whole:
        sql, type_ = f"TRY_CAST({sql} AS BIGINT)", "BIGINT"
    elif term.type == "DOUBLE":
        sql = f"CASE WHEN {sql} = 0e0 THEN 0e0 ELSE {sql} END"
    values = listed if listed is not None else term.values
    if values is not None:
        values = tuple(_shown(v, type_) for v in values if _fits(v, type_))
        values = tuple(v for _, v in dict.fromkeys((type(v), v) for v in values))
    return GroupKey(
        written=term.sql, sql=sql, key=Key(name=name, type=type_, values=values), term=term
    )


def _fits(value: KeyValue, type_: str) -> bool:
    """Whether a number can be a key of this type at all."""
    if type_ in INTEGERS and isinstance(value, float):
        return value.is_integer()
    return True


def _shown(value: KeyValue, type_: str) -> KeyValue:
    if isinstance(value, bool) or value is None:
        return value
    if type_ in INTEGERS and isinstance(value, float):
        return int(value)
    if type_ == "DOUBLE" and isinstance(value, int):
        return float(value) + 0.0
    return value


def listed_values(
    question: Question, conditions: Sequence[exp.Expression], scope: RowScope
) -> dict[str, tuple[KeyValue, ...]]:
    """Return, by SQL, the values that conjuncts like key IN (...) or key = ... let through."""
    found: dict[str, tuple[KeyValue, ...]] = {}
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
        if term.sql in found:
            values = tuple(v for v in found[term.sql] if v in values)
        found[term.sql] = values
    return found
