"""A Spark session of our own beside the user's: its settings decide what a statement means."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from discreet.errors import DataError, MissingExtra, ParameterError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "SETTINGS", "check_alive", "handed_over", "is_session", "own_session", "quietly",
    "read_everything", "usual_session",
]  # fmt: skip

SETTINGS: Final = {
    # What does not fit is NULL; what could overflow is computed in types that it cannot fill.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",  # or a text with ${...} would be changed
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.singleCharacterPipeOperator.enabled": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.groupByAliases": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.codingErrorAction": "true",
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "false",
    # Files of other programs, whatever their dates; a value that would have to be rebased fails.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
# What these begin with decides what a text means, how files are read and what fails; whatever of it
# is not set above is as Spark has it.
_OF_MEANING: Final = tuple(
    f"spark.sql.{one}."
    for one in (
        "legacy", "ansi", "parser", "parquet", "orc", "files", "collation", "icu", "optimizer",
        "sources", "execution.arrow", "session", "decimalOperations", "view", "timestamp",
    )
)  # fmt: skip
# Of speed and size alone, so that what somebody set for their session holds for ours.
_COPIED: Final = (
    "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes", "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.codegen.wholeStage", "spark.sql.files.maxPartitionBytes",
    "spark.sql.sources.useV1SourceList", "spark.scheduler.pool",
)  # fmt: skip
_busy = threading.local()


def is_session(given: object) -> bool:
    """Say whether this is a Spark session, classic or Connect."""
    return all(hasattr(given, name) for name in ("sql", "conf", "read", "catalog", "table"))


def check_installed() -> None:
    """Refuse to go on without PySpark."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtra(room="discreet.tables", needs="pyspark", extra="spark") from None


def usual_session() -> "SparkSession":
    """Return the session of this process, else what Spark's own configuration starts.

    That is ``SPARK_REMOTE`` for Spark Connect, and ``spark-defaults.conf`` of ``SPARK_CONF_DIR``.
    """
    check_installed()
    from pyspark.sql import SparkSession

    session = None
    with suppress(Exception):
        session = SparkSession.builder.appName("discreet").getOrCreate()
    if session is None:  # raised out here, it has no __context__
        raise DataError(
            "Spark could not be started, or not be reached. Check that there is Java, and what "
            "SPARK_REMOTE and the spark-defaults.conf in SPARK_CONF_DIR say."
        )
    return session


def own_session(spark: "SparkSession") -> "SparkSession":
    """Return a new session of the same application, with the settings that statements need.

    The user's session stays as it is; nothing that is set or made in one shows in the other.
    """
    check_alive(spark)
    if not hasattr(spark, "newSession"):
        raise ParameterError(
            "this Spark Connect session cannot make another one beside itself. Use PySpark 4.1 or "
            "later, or a classic session.",
            parameter="spark",
        )
    session = spark.newSession()
    for key in _given(session):
        # Whoever runs the cluster may have set any of them for all sessions.
        if key.startswith(_OF_MEANING) and session.conf.isModifiable(key):
            session.conf.unset(key)
    copied = {name: spark.conf.get(name, None) for name in _COPIED}
    for name, value in {**copied, **SETTINGS}.items():
        if value is not None and session.conf.get(name, None) != value:
            session.conf.set(name, value)
    return session


def _given(session: "SparkSession") -> list[str]:
    """Return the names of all settings that a new session has from somewhere."""
    if hasattr(session.conf, "getAll"):
        return list(session.conf.getAll)
    return [row.key for row in session.sql("SET").collect()]  # PySpark 3.5


def read_everything(session: "SparkSession") -> None:
    """Let files be read whatever their statistics say, where it is not known that they are alike.

    A file with another type of a column makes Spark fail once it is read: were it passed over for
    the values in it, then whether a question fails would depend on them.
    """
    for kind in ("parquet", "orc"):
        session.conf.set(f"spark.sql.{kind}.filterPushdown", "false")


def check_alive(spark: "SparkSession") -> None:
    """Refuse a session that was stopped."""
    context = getattr(spark, "_sc", None)
    is_stopped = context is not None and getattr(context, "_jsc", True) is None
    if is_stopped or getattr(spark, "is_stopped", False):
        raise DataError("the Spark session was stopped. Start one, and open the tables again.")


@contextmanager
def handed_over(frame: "DataFrame", session: "SparkSession") -> "Iterator[DataFrame]":
    """Show a DataFrame of the user's session to ours, for as long as the block lasts.

    The one place where sessions of an application meet are global temporary views. A view that is
    made of it within the block outlives the block.
    """
    name = f"discreet_{uuid4().hex}"
    place = frame.sparkSession.conf.get("spark.sql.globalTempDatabase", "global_temp")
    frame.createGlobalTempView(name)
    try:
        yield session.table(f"{place}.{name}")
    finally:
        with suppress(Exception):
            frame.sparkSession.catalog.dropGlobalTempView(name)


class _Quiet(logging.Filter):
    """Leave out what PySpark reports of our own statements: its messages quote values."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_busy, "with_statement", False)


_QUIET: Final = _Quiet()


def _loggers() -> list[logging.Logger]:
    """Return those that PySpark reports errors to: loggers of its own kind, from version 4 on."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return []
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    return [PySparkLogger.getLogger(name) for name in names]


@contextmanager
def quietly() -> Iterator[None]:
    """Let PySpark log no errors of this thread until the end of the block."""
    for logger in _loggers():
        if _QUIET not in logger.filters:
            logger.addFilter(_QUIET)
    before, _busy.with_statement = getattr(_busy, "with_statement", False), True
    try:
        yield
    finally:
        _busy.with_statement = before
