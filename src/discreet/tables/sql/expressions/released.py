"""Values that other parts of a question release first, as rows are compared with them."""

from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import ReleasedValue
from discreet.tables.model.types import Type
from discreet.tables.sql.expressions.arguments import Rule
from discreet.tables.sql.expressions.term import Scope, Term, boolean, number, text

__all__ = ["ANONYMOUS", "is_released_list", "released_value"]

_NAME: Final = "released"


def released_value(place: int, type_: Type, *, is_list: bool = False) -> exp.Expression:
    """Return what stands for a released value in a question; nobody can type it.

    >>> released_value(0, "double").sql()
    'RELEASED(0)'
    """
    made = exp.Anonymous(this=_NAME, expressions=[exp.Literal.number(place)])
    made.meta[_NAME] = (place, type_, is_list)
    return made


def is_released_list(node: exp.Expression) -> bool:
    """Whether a node stands for all values of a released column.

    >>> is_released_list(released_value(0, "double"))
    False
    """
    return isinstance(node, exp.Anonymous) and bool(node.meta.get(_NAME, (0, "", False))[2])


def _released(node: exp.Expression, scope: Scope) -> Term:
    if _NAME not in node.meta:  # typed as a function, which it is not
        raise scope.question.refuse(
            "function", node, word=_NAME.upper(), near="Write the value that you mean."
        )
    place, type_, _ = node.meta[_NAME]
    value = ReleasedValue(place)
    if type_ == "double":
        return number(value, is_tidy=True)
    if type_ in ("text", "boolean"):
        return text(value) if type_ == "text" else boolean(value)
    return Term(node=value, kind=type_, type=type_)


ANONYMOUS: Final[dict[str, Rule]] = {_NAME: _released}
