"""PostgreSQL's settings, as they are handed to ``protect`` and ``open_tables``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, final

from discreet.tables.engines.postgres import looking
from discreet.tables.engines.postgres.connection import PostgresConnection
from discreet.tables.sources.source import DataSource

__all__ = ["PostgresEngine"]


@final
@dataclass(frozen=True, slots=True)
class PostgresEngine:
    """Let questions run in a PostgreSQL server, where its tables lie.

    ``url`` is ``postgresql://user:password@host:port/database``, of a role that may only read;
    None takes the one in the environment's ``DISCREET_POSTGRES_URL``. A table is given by its name,
    ``"visits"`` of the schema ``public`` or ``"schema.visits"``, or by a pair of both. It is one of
    the database's own, partitioned or not. A view, a materialised view or a foreign table can be
    public but not protected, as its rows may depend on several people, or on other servers.

    A statement takes ``seconds`` at most, which the server keeps even where this process is gone.
    Every transaction sets what could give a statement another meaning, so that a user's defaults
    change nothing. Which data it is does not depend on how the URL is written; the version of the
    data are the server's counts of changed rows, which come seconds after the change, and start
    again after a crash: a question asked twice within these seconds may be answered as before.

    Which rows of a unit count, where there are too many, is the same as with
    ``DuckDBEngine(portable=True)``.

    >>> PostgresEngine("postgresql://ana:secret@db.example/hr", seconds=60)
    PostgresEngine(seconds=60)
    """

    name: ClassVar[str] = "postgres"
    url: str | None = field(default=None, repr=False)
    seconds: float | None = field(default=3600, kw_only=True)

    def look(
        self,
        name: str,
        given: object,
        /,
        *,
        is_public: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Look at a table of the database; its columns have types of their own."""
        return looking.look(self.url, name, given, is_public=is_public, types=types)

    def version(self, source: DataSource, /) -> str:
        """Return the version that the data has now: see above for what it can miss."""
        return looking.version(self.url, source)

    def open(self, sources: Mapping[str, DataSource], /) -> PostgresConnection:
        """Return a connection that can read these tables and nothing else."""
        return PostgresConnection(sources, url=self.url, seconds=self.seconds)
