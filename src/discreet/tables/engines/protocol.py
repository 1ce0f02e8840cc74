"""What an engine is: the only thing that a place where tables live has to bring along."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from discreet.errors import ParameterError
from discreet.tables.model.relation import Rows, Select
from discreet.tables.model.resources import Resources
from discreet.tables.model.statements import Statement
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger import TableContent
    from discreet.privacy import Sensitive

__all__ = [
    "Connection",
    "Engine",
    "LimitedEngine",
    "SamplingConnection",
    "SelectiveConnection",
    "limited",
]


class Connection(Protocol):
    """Runs statements where the data lives; returns exact, bounded aggregates.

    :class:`discreet.testing.EngineConformance` says when it is right.
    """

    def aggregate(self, statement: Statement, /) -> "Sensitive[pa.Table]":
        """Run one statement. Whether an error is raised never depends on the data's values."""

    def sql(self, statement: Statement, /) -> str:
        """Return the text that :meth:`aggregate` would run, its salt left out."""

    def rows(self, select: Select, /) -> "Sensitive[pa.Table]":
        """Return rows as they are, for whoever computes with them under the same budget."""

    def holding(self) -> AbstractContextManager[None]:
        """Make sure that the tables can be read until the end of the block, or raise a DataError.

        Entered before a question is charged, so that one which cannot be answered costs nothing.
        """

    def close(self) -> None:
        """Let go of the data. Calling it twice does no harm.

        An engine that nobody holds any more has to let go by itself: tables that are refreshed
        leave the one before to the questions that still run on it.
        """


@runtime_checkable
class SamplingConnection(Protocol):
    """An engine that lets a ledger know copies of a table, whatever they are called."""

    def sample(self, table: str, /, *, unit: str | None, salt: str) -> "Sensitive[TableContent]":
        """Return samples of a table, by hashes of the ``salt`` and the value; see TableContent."""


@runtime_checkable
class SelectiveConnection(Protocol):
    """An engine that cannot do all that questions ask of rows; it is asked before any charge."""

    def lacks(self, rows: Rows, /) -> str | None:
        """Return what it cannot do ("this engine cannot do ..."), None if it can do all."""


class Engine(Protocol):
    """Settings of an engine, frozen: knows what a table is to it, and opens it.

    What people give as a table differs: to one engine a path or a frame, to another an address and
    a name. So the engine looks at it, without reading rows where that can be helped, and says what
    columns it has, which data it is and which version of it.
    """

    @property
    def name(self) -> str:
        """What declarations call the engine."""

    def look(
        self,
        name: str,
        given: object,
        /,
        *,
        is_public: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Look at what was given as the table ``name``; ``types`` for data that has none."""

    def version(self, source: DataSource, /) -> str:
        """Return the version that the data has now, quickly: it is asked before every answer."""

    def open(self, sources: Mapping[str, DataSource], /) -> Connection:
        """Return a connection that can read these tables and nothing else."""


@runtime_checkable
class LimitedEngine(Protocol):
    """Settings of an engine that can be told how much memory and disk to use."""

    def limited(self, resources: Resources, /) -> Engine:
        """Return the same settings with these limits, where there are any."""


def limited(engine: Engine, resources: Resources) -> Engine:
    """Return an engine with these limits, or refuse those that it cannot keep.

    Seconds are kept by whoever runs statements by :func:`discreet.tables.engines.progress.run`.

    >>> from discreet.tables.engines.duckdb.engine import DuckDBEngine
    >>> limited(DuckDBEngine(), Resources(disk="9GB"))
    DuckDBEngine(memory_limit=None, threads=None, spill=None, spill_limit='9GB', portable=False)
    """
    if resources.memory is None and resources.disk is None:
        return engine
    if isinstance(engine, LimitedEngine):
        return engine.limited(resources)
    raise ParameterError(
        f"resources: the engine {engine.name!r} cannot be told how much memory or disk to use. "
        "Leave memory and disk out, and limit it where it runs.",
        parameter="resources",
    )
