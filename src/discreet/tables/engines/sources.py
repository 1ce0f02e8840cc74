"""Tables by name, opened with an engine, without looking at their rows."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from discreet.errors import DataError, ParameterError
from discreet.tables.engines.named import DEFAULT_ENGINE
from discreet.tables.engines.protocol import Connection, Engine
from discreet.tables.sources.names import tables_checked
from discreet.tables.sources.source import DataSource

__all__ = ["Sources", "check_public", "open_sources"]


@final
@dataclass(frozen=True, slots=True)
class Sources(Mapping[str, DataSource]):
    """All tables of one population by name; see :func:`open_sources`.

    >>> import numpy as np
    >>> list(open_sources({"people": {"user_id": np.arange(3)}}))
    ['people']
    """

    tables: Mapping[str, DataSource]
    engine: Engine = DEFAULT_ENGINE

    def __getitem__(self, name: str, /) -> DataSource:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """The types of all columns, by table."""
        return {name: dict(table.columns) for name, table in self.tables.items()}

    @property
    def version(self) -> str:
        """A digest of all versions."""
        lines = sorted(f"{name}\0{table.version}" for name, table in self.tables.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def connected(self) -> Connection:
        """Return a connection that can read these tables."""
        return self.engine.open(self.tables)

    def has_changed(self) -> bool:
        """Say whether any table differs from when it was opened; one that is gone does."""
        try:
            return any(self.engine.version(one) != one.version for one in self.tables.values())
        except (DataError, OSError):
            return True

    def reopened(self) -> "Sources":
        """Look at the same places again: new versions where data changed.

        A column that is gone or has another type is a DataError that names it; new columns are
        welcome.
        """
        now = {name: self._looked(one) for name, one in self.tables.items()}
        for name, one in self.tables.items():
            _check_columns(one, now[name])
        check_public(now.values())
        return Sources(now, self.engine)

    def retyped(self, types: Mapping[str, Mapping[str, str]]) -> "Sources":
        """Give other types to columns that have none of their own, by table and column.

        >>> people = open_sources({"people": {"age": ["1", "2", "unknown"]}})
        >>> people.columns, people.retyped({"people": {"age": "BIGINT"}}).columns
        ({'people': {'age': 'VARCHAR'}}, {'people': {'age': 'BIGINT'}})
        """
        now = {
            name: self._looked(one, types[name])
            if not dict(types.get(name, {})).items() <= dict(one.columns).items()
            else one
            for name, one in self.tables.items()
        }
        return Sources(now, self.engine)

    def _looked(self, one: DataSource, types: Mapping[str, str] | None = None) -> DataSource:
        """Look at a table again, with the types that it had or with others."""
        known = {column: type_ for column, type_ in one.columns if column in one.untyped}
        types = {**known, **(types or {})}
        return self.engine.look(one.name, one.given, is_public=one.is_public, types=types)


def open_sources(
    tables: Mapping[str, object],
    *,
    public: Mapping[str, object] | None = None,
    types: Mapping[str, Mapping[str, str]] | None = None,
    engine: Engine = DEFAULT_ENGINE,
) -> Sources:
    """Open tables by name, reading their columns' names and types.

    What a table is given as, the ``engine`` decides; see :class:`discreet.tables.DuckDBEngine`.
    ``public`` are tables that nobody's privacy depends on; the same data cannot be protected, too.
    ``types`` declares those of columns that have none, by table and column.

    >>> import pyarrow as pa
    >>> tables = open_sources({"people": pa.table({"user_id": [1, 2], "region": ["a", "b"]})})
    >>> tables["people"].columns
    (('user_id', 'BIGINT'), ('region', 'VARCHAR'))
    """
    tables_checked((*tables, *(public or {})))
    found = {
        name: engine.look(name, given, is_public=is_public, types=(types or {}).get(name))
        for is_public, group in ((False, tables), (True, public or {}))
        for name, given in group.items()
    }
    check_public(found.values())
    return Sources(found, engine)


def _check_columns(before: DataSource, now: DataSource) -> None:
    """Refuse a table that lost a column, or whose column has another type."""
    found = dict(now.columns)
    for column, kind in before.columns:
        if column not in found:
            raise DataError(
                f"table {before.name!r} no longer has the column {column!r}. Restore it, or "
                "protect the table anew."
            )
        if found[column] != kind:
            raise DataError(
                f"column {column!r} of table {before.name!r} was of type {kind} and now is of "
                f"type {found[column]}. Restore it, or protect the table anew."
            )


def check_public(tables: Iterable[DataSource]) -> None:
    """Refuse data that is protected and public at once."""
    seen: dict[str, str] = {}
    for table in sorted(tables, key=lambda one: one.is_public):
        for identity in (*table.identities, *table.places):
            if table.is_public and identity in seen:
                raise ParameterError(
                    f"the public table {table.name!r} reads the same data as the protected table "
                    f"{seen[identity]!r}. Public tables are shown without noise: leave it out, or "
                    "write what really is public into a file of its own.",
                    parameter="public",
                )
            if not table.is_public:
                seen[identity] = table.name
