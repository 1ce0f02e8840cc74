"""Keywords that a function hands on as a whole: the wrong ones are told by name, with a guess."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["check_keywords", "options_of"]

_Asked = TypeVar("_Asked", bound="DataclassInstance")


def check_keywords(
    function: Callable[..., object], kind: "type[DataclassInstance]", given: Mapping[str, object]
) -> None:
    """Refuse keywords that are no fields of ``kind``, as Python does, and say what was meant.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Asked:
    ...     epsilon: float = 1
    >>> def sql(question, **fields): ...
    >>> check_keywords(sql, Asked, {"epsilonn": 1})
    Traceback (most recent call last):
        ...
    TypeError: sql() got an unexpected keyword argument 'epsilonn'. Did you mean 'epsilon'?
    """
    known = [field.name for field in fields(kind)]
    own = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, [*own, *known], n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join([*own, *known])}."
            told = f"{function.__name__}() got an unexpected keyword argument {name!r}. {hint}"
            raise TypeError(told)


def options_of(
    function: Callable[..., object], kind: type[_Asked], given: Mapping[str, Any]
) -> _Asked:
    """Return the keywords that a function was called with, or say which are wrong or missing.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Asked:
    ...     delta: float
    >>> def prepare(*, clip, **options): ...
    >>> options_of(prepare, Asked, {})
    Traceback (most recent call last):
        ...
    TypeError: prepare() needs the keyword argument 'delta'.
    """
    check_keywords(function, kind, given)
    for field in fields(kind):
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if field.name not in given and not has_default:
            raise TypeError(f"{function.__name__}() needs the keyword argument {field.name!r}.")
    return kind(**given)
