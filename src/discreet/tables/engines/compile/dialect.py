"""The words of SQL that engines do not agree on: an engine that speaks SQL brings its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from discreet.tables.model.scalar import Function, Scalar
from discreet.tables.model.types import Type

__all__ = ["SALT", "Dialect", "Template"]

SALT: Final = "$salt"

Template = str | Callable[[Sequence[Scalar], Sequence[str]], str]
"""The text of a call: with {0}, {1}, ... for its arguments, or made of their nodes and texts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How an engine writes types, functions and two aggregates.

    ``functions`` has the whole vocabulary of :mod:`discreet.tables.model.scalar`; ``wide`` is the
    type that holds the square of any count. ``hash`` writes a number that depends on the salt and
    on the columns, NULLs included, and ``lowest`` the aggregate that is the n-th lowest value, NULL
    if there are fewer. Whatever else differs is left to rewriting the finished text.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> DUCKDB.lowest("x", 3), DUCKDB.types["text"]
    ('MIN(x, 3)[3]', 'VARCHAR')
    """

    types: Mapping[Type, str]
    functions: Mapping[Function, Template]
    wide: str
    hash: Callable[[Sequence[str]], str]
    lowest: Callable[[str, int], str]
