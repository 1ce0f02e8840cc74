"""Engines: where tables are opened and statements run. DuckDB comes with the package."""

from discreet.tables.engines.duckdb.engine import DuckDBEngine
from discreet.tables.engines.duckdb.factory import DuckDB
from discreet.tables.engines.named import DEFAULT_ENGINE, engine_named
from discreet.tables.engines.protocol import Engine, EngineFactory
from discreet.tables.engines.sources import Sources, open_sources

__all__ = [
    "DEFAULT_ENGINE",
    "DuckDB",
    "DuckDBEngine",
    "Engine",
    "EngineFactory",
    "Sources",
    "engine_named",
    "open_sources",
]
