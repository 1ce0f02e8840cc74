"""Engines by name, for declarations and command lines; elsewhere one hands over the object."""

from typing import Final

from discreet.errors import ParameterError
from discreet.tables.engines.duckdb.engine import DuckDBEngine
from discreet.tables.engines.postgres.engine import PostgresEngine
from discreet.tables.engines.protocol import Engine
from discreet.tables.engines.spark.engine import SparkEngine
from discreet.tables.engines.spark.session import usual_session

__all__ = ["DEFAULT_ENGINE", "engine_named"]

DEFAULT_ENGINE: Final[Engine] = DuckDBEngine()
_ENGINES: Final[dict[str, Engine]] = {
    engine.name: engine for engine in (DEFAULT_ENGINE, PostgresEngine())
}
_KNOWN: Final = (*_ENGINES, SparkEngine.name)


def engine_named(name: str) -> Engine:
    """Return an engine with its usual settings, those of its own configuration.

    Where the database of PostgreSQL is, ``DISCREET_POSTGRES_URL`` says. Spark is the session that
    runs in this process, or the one that Spark's configuration starts or connects to.

    >>> engine_named("duckdb")
    DuckDBEngine(memory_limit=None, threads=None, spill=None, spill_limit=None, portable=False)
    >>> engine_named("abacus")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: engine must be one of duckdb, postgres, spark, got 'abacus'.
    Another engine is handed over in Python, with engine=.
    """
    if name == SparkEngine.name:
        return SparkEngine(usual_session())
    if name not in _ENGINES:
        raise ParameterError(
            f"engine must be one of {', '.join(_KNOWN)}, got {name!r}. Another engine is handed "
            "over in Python, with engine=.",
            parameter="engine",
        )
    return _ENGINES[name]
