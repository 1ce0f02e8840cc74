"""The words of SQL that engines do not agree on: an engine that speaks SQL brings its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from discreet.tables.engines.compile.column_types import Tables
from discreet.tables.engines.compile.text import number
from discreet.tables.model.scalar import Function, Scalar
from discreet.tables.model.types import Type

__all__ = ["SALT", "Dialect", "Hashed", "Lacking", "Template"]

SALT: Final = "$salt"

Template = str | Callable[[Sequence[Scalar], Sequence[str]], str]
"""The text of a call: with {0}, {1}, ... for its arguments, or made of their nodes and texts."""


class Lacking(Exception):
    """An engine has no words for a call: templates raise it, whatever the data.

    What it says goes on from "this engine cannot do".

    >>> str(Lacking("the time zone Europe/Berlin"))
    'the time zone Europe/Berlin'
    """


class Hashed(NamedTuple):
    """An expression that a hash depends on, and its type; see ``column_types``."""

    text: str
    type: str


def _ratio(value: str, by: float) -> str:
    return f"{value} / {number(by)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How an engine writes types, functions, casts and two aggregates.

    ``functions`` has the whole vocabulary of :mod:`discreet.tables.model.scalar`; ``wide`` is the
    type that holds the square of any count. ``hash`` writes a double from 0 to 2**64 that depends
    on the salt and on the columns, NULLs included, and ``lowest`` the aggregate that is the n-th
    lowest value, NULL if there are fewer. ``cast`` writes an expression of a type (as ``types_of``
    names it) in another one, NULL where it does not fit, which cannot be if it widens.
    ``long`` is the type of weighted cells that an INTEGER cannot hold, of which any number can be
    added up. With ``windows`` a unit's weight is computed by window functions, so that the source
    is read once, instead of by a join; ``qualifies`` says that these can be conditions, by QUALIFY.
    A template in ``gathered`` ends the SELECT of the rows that count, so that those of a unit,
    whose column it is given, come together. ``tables`` are those that are written about. Whatever
    else differs is left to rewriting the finished text.

    ``is_nan`` is the template of a test, and ``same`` that of a comparison for which NULL is NULL:
    joins on it must not compare all with all. ``ratio`` writes a value divided by a positive
    number, where quotients below 2**-400 in size may be 0, and ``half`` is the template of a half,
    which may be 0 for values below 1. ``same_present`` does for ``same`` where the second argument
    is not NULL.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> DUCKDB.lowest("x", 3), DUCKDB.types["text"]
    ('MIN(x, 3)[3]', 'VARCHAR')
    """

    types: Mapping[Type, str]
    functions: Mapping[Function, Template]
    wide: str
    hash: Callable[[Sequence[Hashed]], str]
    lowest: Callable[[str, int], str]
    cast: Callable[[str, str, Type, bool], str]
    is_nan: str = "ISNAN({0})"
    same: str = "{0} IS NOT DISTINCT FROM {1}"
    ratio: Callable[[str, float], str] = _ratio
    half: str = "{0} * 0.5e0"
    same_present: str = "{0} IS NOT DISTINCT FROM {1}"
    long: str = "BIGINT"
    windows: bool = False
    qualifies: bool = True
    gathered: str = ""
    tables: Tables = field(default_factory=dict)
