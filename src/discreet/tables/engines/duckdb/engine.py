"""DuckDB's settings, as they are handed to ``protect`` and ``open_tables``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import ClassVar, final

from discreet.tables.engines.duckdb import looking
from discreet.tables.engines.duckdb.connection import DuckDBConnection
from discreet.tables.model.resources import Resources
from discreet.tables.sources.source import DataSource

__all__ = ["DuckDBEngine"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBEngine:
    """Let questions run in DuckDB, in this process: the engine unless another one is chosen.

    A table is a path, glob, folder or list of paths of Parquet or CSV files (``.gz`` too), a
    DuckDB database's table (``"file.duckdb::table"`` or a pair), an Arrow, pandas or Polars frame,
    or a dict of one-dimensional NumPy arrays. Files are scanned when they are asked about, never
    copied. On Linux they are held open, up to a hundred of a table: one that is replaced or
    removed is still read by the questions under way, and the next one sees the new version. So
    write a new version beside the old one and move it there; one that is overwritten in its place
    may be found half-written.

    A CSV file has no types. Those that are not declared are guessed from the file once, when it is
    first opened: the guess depends on the rows, so look at it before it is written into a
    declaration, which is public. Fields that do not fit their type are NULL. Every line is a row,
    also one that ends within quotes: were a field allowed to go on in the next lines, one row
    could swallow others. So write texts with line breaks to Parquet instead.

    A database is open for reading while a question runs, so that others can write to it in
    between; where one does, a question waits a second and then is refused, before it is charged.

    No value makes a table unreadable: what does not fit its type is NULL, in frames, too; columns
    of Python objects get the type that nearly all of them have. In Parquet files bytes that are no
    UTF-8 are read as ``?``, so texts that differ in nothing else are the same, as units are then.
    Files with timestamps in milliseconds are read by Arrow, more slowly than others.

    Texts are told apart by their letters, whatever collation a database gives them. A view of a
    database can be public but not protected, as its rows may depend on several people.

    What does not fit into ``memory_limit`` (DuckDB's notation, ``"4GB"``) is spilled to a folder in
    ``spill``, or where temporary files go if None. Only this user can read it, and it is removed
    at the end; what a killed process leaves is removed by the next one that spills there. DuckDB
    encrypts it with a key that is nowhere but in the process, though it does not vouch for the
    random numbers that the key is made of: so choose a disk that may hold the data. It grows to
    ``spill_limit`` at most, half of what is free there if None. ``threads`` are as many as there
    are cores, if None.

    Which rows of a unit count, where there are too many, is chosen by hashes. With ``portable``
    they are those of all engines, so that the same salt gives the same integers everywhere; they
    take longer than DuckDB's own.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3, engine=DuckDBEngine(memory_limit="1GB", threads=2)) as T:
    ...     T.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).columns
    ('n',)
    """

    name: ClassVar[str] = "duckdb"
    memory_limit: str | None = None
    threads: int | None = None
    spill: str | PathLike[str] | None = None
    spill_limit: str | None = None
    portable: bool = False

    def limited(self, resources: Resources, /) -> "DuckDBEngine":
        """Return the same settings with other limits, where these are given.

        >>> DuckDBEngine(threads=2).limited(Resources(memory="1GB")).memory_limit
        '1GB'
        """
        return replace(
            self,
            memory_limit=resources.memory or self.memory_limit,
            spill_limit=resources.disk or self.spill_limit,
        )

    def look(
        self,
        name: str,
        given: object,
        /,
        *,
        is_public: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Look at what was given as the table ``name``.

        >>> import numpy as np
        >>> DuckDBEngine().look("people", {"age": np.arange(3)}).columns
        (('age', 'BIGINT'),)
        """
        return looking.look(name, given, is_public=is_public, types=types)

    def version(self, source: DataSource, /) -> str:
        """Return the version that the data has now: for files a digest of their sizes and times.

        >>> import numpy as np
        >>> people = DuckDBEngine().look("people", {"age": np.arange(3)})
        >>> DuckDBEngine().version(people) == people.version
        True
        """
        return looking.version(source)

    def open(self, sources: Mapping[str, DataSource], /) -> DuckDBConnection:
        """Return an engine that can read these tables and nothing else.

        >>> import numpy as np
        >>> from discreet.tables.model.relation import Select
        >>> people = DuckDBEngine().look("people", {"age": np.arange(3)})
        >>> with DuckDBEngine(threads=1).open({"people": people}) as engine:
        ...     engine.rows(Select.of("people", age="age"))
        Sensitive(<redacted>)
        """
        return DuckDBConnection(
            sources,
            memory_limit=self.memory_limit,
            threads=self.threads,
            spill=self.spill,
            spill_limit=self.spill_limit,
            portable=self.portable,
        )
