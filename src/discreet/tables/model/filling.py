"""Values that one part of a question releases, put into the parts after it as literals."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, final

from discreet.tables.model.scalar import Call, Literal, ReleasedValue
from discreet.tables.model.types import Type

__all__ = ["ReleasedLookup", "filled", "lookups_in"]

T = TypeVar("T")
Values = Mapping[int, tuple[Literal, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedLookup:
    """What is looked up in released answers and public tables, for a later part to compare with.

    ``sql`` is one SELECT of one column, over the same tables as the ``outer`` query of a
    composite. Its first value counts, or all of them where it ``is_list``.

    >>> ReleasedLookup(sql="SELECT mean FROM released_0", type="double").is_list
    False
    """

    sql: str
    type: Type
    is_list: bool = False


def filled(plan: T, values: Values) -> T:
    """Return a plan, or a part of one, with literals in the place of released values.

    A list that is empty has nothing in it; one with NULL among its values says NULL of what is not
    in it, as IN does in SQL.

    >>> from discreet.tables.model.scalar import ColumnRef
    >>> filled(Call("less", (ColumnRef("x"), ReleasedValue(0))), {0: (Literal(2.0, "double"),)})
    Call(function='less', arguments=(ColumnRef(name='x', source=''), Literal(value=2.0,\
 type='double')))
    """
    found: Any = plan
    if isinstance(plan, ReleasedValue):
        found = values[plan.index][0]
    elif isinstance(plan, Call) and plan.function == "in" and _is_released(plan):
        found = _listed(plan, values)
    elif isinstance(plan, tuple):
        found = tuple(filled(one, values) for one in plan)
    elif is_dataclass(plan) and not isinstance(plan, type):
        parts = {one.name: getattr(plan, one.name) for one in fields(plan) if one.init}
        found = replace(plan, **{name: filled(part, values) for name, part in parts.items()})
    return found  # type: ignore[no-any-return]


def lookups_in(plan: object) -> set[int]:
    """Return which released values a plan needs.

    >>> lookups_in((ReleasedValue(3), Literal(1, "int32")))
    {3}
    """
    if isinstance(plan, ReleasedValue):
        return {plan.index}
    parts: list[Any] = list(plan) if isinstance(plan, tuple) else []
    if is_dataclass(plan):
        parts = [getattr(plan, one.name) for one in fields(plan) if one.init]
    return set().union(*(lookups_in(part) for part in parts))


def _is_released(plan: Call) -> bool:
    return len(plan.arguments) == 2 and isinstance(plan.arguments[1], ReleasedValue)


def _listed(plan: Call, values: Values) -> Any:
    value, placeholder = plan.arguments
    assert isinstance(placeholder, ReleasedValue)
    listed = values[placeholder.index]
    known = tuple(one for one in listed if one.value is not None)
    subject = filled(value, values)
    found: Any = Call("in", (subject, *known)) if known else Literal(False, "boolean")
    return found if len(known) == len(listed) else Call("or", (found, Literal(None, "boolean")))
