"""Engines: where statements run. DuckDB comes with the package."""

from discreet.tables.engines.duckdb import DuckDBEngine

__all__ = ["DuckDBEngine"]
