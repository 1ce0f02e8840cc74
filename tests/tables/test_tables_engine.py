"""DuckDB passes the suite of all engines, and keeps to itself what goes wrong."""

from discreet.tables.engines.duckdb import DuckDBEngine
from discreet.testing._engines import EngineConformance


class TestDuckDB(EngineConformance):
    def make_engine(self, tables):
        return DuckDBEngine(tables, threads=2)
