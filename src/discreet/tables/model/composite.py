"""A question that asks something of released answers: several private parts, and SQL over them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from discreet.tables.model.filling import ReleasedLookup
from discreet.tables.model.query import Query

__all__ = ["PART", "ROW", "Composite", "released_name"]

PART: Final = "released_part"
ROW: Final = "released_row"
"""Columns that say of which part, and of which of its rows, a row of the answer is."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """Private questions, and one query over what they release and over public tables.

    Claim: the answer is as private as its parts together.

    Why: ``outer`` reads the released answers of the ``parts`` and public tables alone, so it is
    post-processing [DR14, Proposition 2.1]. A part may compare rows with ``lookups`` in the answers
    of parts before it, and with nothing else that is not fixed beforehand: each part has the same
    loss whatever these were, so the parts compose as if all were fixed [ZDW22, Theorem 10].

    ``outer`` is one SELECT in DuckDB's dialect over tables :func:`released_name` and the ``public``
    ones. Where ``is_traced``, each of its rows is a row of one part, which its last two columns
    name, and ``origins`` has, by part, which columns of the answer are columns of that part.

    >>> Composite(parts=(), outer="SELECT 1 AS one").is_public
    True
    """

    parts: tuple[Query, ...]
    outer: str
    public: tuple[str, ...] = ()
    lookups: tuple[ReleasedLookup, ...] = ()
    is_traced: bool = False
    origins: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_public(self) -> bool:
        """Whether no protected table is read, so that the answer is exact and free."""
        return not self.parts


def released_name(part: int) -> str:
    """Return the table that holds the released answer of a part.

    >>> released_name(0)
    'released_0'
    """
    return f"released_{part}"
