"""One table as an engine found it, without its rows."""

from dataclasses import dataclass, field
from typing import final

__all__ = ["DataSource"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """One table that can be read again and again.

    ``columns`` are names and types; ``version`` changes when the data does; ``identities`` say
    which data it is, for the ledger: absolute paths, or a digest of a frame. ``location`` is what a
    declaration writes down, None for frames. ``places`` are further marks of the same data, by
    which a second name of it is noticed. ``reading`` is for the engine that found it.

    >>> from discreet.tables.engines import open_sources
    >>> import numpy as np
    >>> people = open_sources({"people": {"user_id": np.arange(3)}})["people"]
    >>> people.columns, people.kind, people.location
    ((('user_id', 'BIGINT'),), 'frame', None)
    """

    name: str
    kind: str  # such as "parquet", in the engine's words
    columns: tuple[tuple[str, str], ...]
    version: str
    identities: tuple[str, ...]
    location: str | tuple[str, ...] | None = None
    is_public: bool = False
    untyped: tuple[str, ...] = ()  # columns whose types a declaration has to write down
    places: tuple[str, ...] = field(default=(), repr=False)
    given: object = field(default=None, repr=False, compare=False)
    reading: object = field(default=None, repr=False, compare=False)
