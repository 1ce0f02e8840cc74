"""Engines: where tables are opened and statements run, and what an engine has to know of them."""

from discreet.tables.engines.duckdb.engine import DuckDBEngine
from discreet.tables.engines.duckdb.factory import DuckDB
from discreet.tables.engines.named import DEFAULT_ENGINE, engine_named
from discreet.tables.engines.protocol import Engine, EngineFactory
from discreet.tables.engines.sources import Sources, open_sources
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.statements import Cells, Distinct, Place, Profile, Statement, Sums
from discreet.tables.sources.source import DataSource

__all__ = [
    "DEFAULT_ENGINE",
    "WEIGHT_STEPS",
    "Bounding",
    "Cells",
    "DataSource",
    "Distinct",
    "DuckDB",
    "DuckDBEngine",
    "Engine",
    "EngineFactory",
    "Groups",
    "Key",
    "Norm",
    "Place",
    "Profile",
    "Query",
    "Sources",
    "Statement",
    "Sums",
    "Value",
    "engine_named",
    "open_sources",
]
