"""Engines: where tables are opened and statements run, and what an engine has to know of them."""

from discreet.tables.engines.duckdb.connection import DuckDBConnection
from discreet.tables.engines.duckdb.engine import DuckDBEngine
from discreet.tables.engines.named import DEFAULT_ENGINE, engine_named
from discreet.tables.engines.postgres.connection import PostgresConnection
from discreet.tables.engines.postgres.engine import PostgresEngine
from discreet.tables.engines.protocol import (
    Connection,
    Engine,
    SamplingConnection,
    SelectiveConnection,
    StreamingConnection,
)
from discreet.tables.engines.sources import Sources, open_sources
from discreet.tables.engines.spark.connection import SparkConnection
from discreet.tables.engines.spark.engine import SparkEngine
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.relation import (
    GroupedRows,
    Joined,
    JoinKind,
    Rows,
    Scan,
    Select,
    UnionRows,
    partner_keys,
)
from discreet.tables.model.scalar import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Fold,
    Function,
    Literal,
    Scalar,
)
from discreet.tables.model.statements import (
    Cells,
    Combinations,
    Distinct,
    Profile,
    Statement,
    Sums,
    ValueGrid,
)
from discreet.tables.model.types import Type
from discreet.tables.sources.source import DataSource

__all__ = [
    "Bounding",
    "Call",
    "Case",
    "Cast",
    "Cells",
    "ColumnRef",
    "Combinations",
    "Connection",
    "DEFAULT_ENGINE",
    "DataSource",
    "Distinct",
    "DuckDBConnection",
    "DuckDBEngine",
    "Engine",
    "Fold",
    "Function",
    "GroupedRows",
    "Groups",
    "JoinKind",
    "Joined",
    "Key",
    "Literal",
    "Norm",
    "ValueGrid",
    "PostgresConnection",
    "PostgresEngine",
    "Profile",
    "Query",
    "Rows",
    "SamplingConnection",
    "SelectiveConnection",
    "Scalar",
    "Scan",
    "Select",
    "Sources",
    "SparkConnection",
    "SparkEngine",
    "Statement",
    "StreamingConnection",
    "Sums",
    "Type",
    "UnionRows",
    "Value",
    "WEIGHT_STEPS",
    "engine_named",
    "open_sources",
    "partner_keys",
]
