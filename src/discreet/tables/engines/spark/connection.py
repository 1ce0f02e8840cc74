"""Statements in Spark: what they read, how they are stopped, what they may say."""

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, final
from uuid import uuid4

from discreet.errors import DataError
from discreet.privacy import Sensitive
from discreet.tables.engines.compile.dialect import Lacking
from discreet.tables.engines.compile.keys import KeyTable
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.statement import compile, lacking  # noqa: A004
from discreet.tables.engines.progress import run
from discreet.tables.engines.spark.columns import reader
from discreet.tables.engines.spark.dialect import PORTABLE, SPARK
from discreet.tables.engines.spark.looking import frame_of, reading_of
from discreet.tables.engines.spark.results import as_frame, to_arrow
from discreet.tables.engines.spark.session import (
    check_alive,
    handed_over,
    own_session,
    quietly,
    read_everything,
)
from discreet.tables.engines.spark.spelling import spelled
from discreet.tables.model.relation import Rows, Select
from discreet.tables.model.statements import Statement
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["SparkConnection"]

_FAILED: Final = (
    "Spark could not carry out the statement. Its message is withheld because it may show values. "
    "Check that the tables are still there and have the columns they had, and that the cluster has "
    "room for the question."
)
_LATE: Final = (
    "the question took longer than it may, and was stopped. Ask for less at once, or let the "
    "custodian raise seconds in the resources of the tables."
)
_CLOSED: Final = "the engine is closed. Open the tables again."


@final
class SparkConnection:
    """Run statements in a Spark session of its own, which shows the given tables alone.

    :class:`discreet.tables.engines.SparkEngine` says what a table is and what this rests on.
    Threads may share it.
    """

    def __init__(
        self,
        spark: "SparkSession",
        sources: Mapping[str, DataSource],
        *,
        portable: bool = False,
    ) -> None:
        self._session = own_session(spark)
        declared = {name: dict(source.columns) for name, source in sources.items()}
        self._dialect = replace(PORTABLE if portable else SPARK, tables=declared)
        if not all(reading_of(source).are_alike for source in sources.values()):
            read_everything(self._session)
        failed = None
        for name, source in sources.items():
            try:
                with quietly():
                    _show(self._session, name, source)
            except DataError:
                raise
            except Exception:
                failed = name
        if failed is not None:
            raise DataError(f"table {failed!r} can no longer be read by Spark. Restore it.")
        self._is_open = True
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, _dropped, self._session, list(sources))

    def sql(self, statement: Statement, /) -> str:
        """Return the text that :meth:`aggregate` would run, its salt left out."""
        return spelled(compile(statement, dialect=self._dialect).text, salt=":salt")

    def lacks(self, rows: Rows, /) -> str | None:
        """Return what rows ask for that cannot be written for Spark."""
        return lacking(rows, self._dialect)

    def aggregate(self, statement: Statement, /) -> "Sensitive[pa.Table]":
        """Run one statement. An error's message is the same whatever the data."""
        made = self._written(lambda: compile(statement, dialect=self._dialect))
        return Sensitive(self._run(made.text, statement.salt, made.keys))

    def rows(self, select: Select, /) -> "Sensitive[pa.Table]":
        """Return rows as they are."""
        return Sensitive(self._run(self._written(lambda: rows_sql(select, self._dialect)), ""))

    def holding(self) -> AbstractContextManager[None]:
        """Make sure that Spark still runs."""
        return self._held()

    def close(self) -> None:
        """Let go of the tables. The user's session goes on."""
        self._is_open = False
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self._is_open:
            raise DataError(_CLOSED)
        check_alive(self._session)
        yield

    def _written(self, write: Callable[[], Any]) -> Any:
        lacking: str
        try:
            return write()
        except Lacking as error:
            lacking = str(error)
        raise DataError(f"Spark cannot do this: {lacking}.")

    def _run(self, text: str, salt: str, keys: Sequence[KeyTable] = ()) -> "pa.Table":
        with self.holding():
            found = self._attempt(text, salt, keys)
        # Raised out here, it has no __context__: Spark's own messages quote values.
        if isinstance(found, str):
            raise DataError(found)
        return found

    def _attempt(self, text: str, salt: str, keys: Sequence[KeyTable]) -> "pa.Table | str":
        """Return the answer, or what to say instead."""
        session, mark = self._session, f"discreet_{uuid4().hex}"
        names = {one.name: f"{mark}_{place}" for place, one in enumerate(keys)}
        tables = {names[one.name]: _arrow(one) for one in keys}
        salted = f"(SELECT salt FROM {mark}_salt)"  # noqa: S608
        written = spelled(text, salt=salted, names=names)
        if salted in written:
            # As a value of a table it is in no plan, and so in no log of plans.
            tables[f"{mark}_salt"] = _salt(salt)

        def work() -> "pa.Table":
            with quietly(), _tagged(session, mark):
                for name, table in tables.items():
                    as_frame(session, table).createOrReplaceTempView(name)
                return to_arrow(session.sql(written))

        try:
            return run(work, stop=lambda: _interrupt(session, mark), done=lambda: -1.0)
        except TimeoutError:
            return _LATE
        except Exception:
            return _FAILED
        finally:
            with quietly():
                for name in tables:
                    with suppress(Exception):
                        session.catalog.dropTempView(name)


def _show(session: "SparkSession", name: str, source: DataSource) -> None:
    """Make a table known to our session, with the columns that questions can use."""
    reading = reading_of(source)
    is_new = not session.version.startswith("3.")
    readers = [reader(column, kind, is_new=is_new) for column, kind in reading.kinds]
    columns = [spelled(one) for one in readers if one is not None] or ["1 AS nothing"]
    frame = frame_of(reading, session)
    view = "`" + name.replace("`", "``") + "`"
    if reading.how == "frame":
        with handed_over(frame, session) as seen:
            seen.selectExpr(*columns).createOrReplaceTempView(view)
    else:
        frame.selectExpr(*columns).createOrReplaceTempView(view)


def _dropped(session: "SparkSession", names: Sequence[str]) -> None:
    with quietly():
        for name in names:
            with suppress(Exception):
                session.catalog.dropTempView("`" + name.replace("`", "``") + "`")


def _arrow(keys: KeyTable) -> "pa.Table":
    import pyarrow as pa

    number, *texts = keys.columns
    arrays = {number[0]: pa.array(number[1], pa.int64())}
    return pa.table(arrays | {name: pa.array(column, pa.string()) for name, column in texts})


def _salt(salt: str) -> "pa.Table":
    import pyarrow as pa

    return pa.table({"salt": pa.array([salt], pa.string())})


@contextmanager
def _tagged(session: Any, tag: str) -> Iterator[None]:
    """Mark all that this thread asks of Spark, so that it can be stopped."""
    is_classic = hasattr(session, "_jsparkSession")
    if is_classic:  # a session's own tags do not reach jobs whose results come as Arrow
        session.sparkContext.addJobTag(tag)
    else:
        session.addTag(tag)
    try:
        yield
    finally:
        with suppress(Exception):
            session.sparkContext.removeJobTag(tag) if is_classic else session.removeTag(tag)


def _interrupt(session: Any, tag: str) -> None:
    with quietly(), suppress(Exception):
        if hasattr(session, "_jsparkSession"):
            session.sparkContext.cancelJobsWithTag(tag)
        else:
            session.interruptTag(tag)
