"""The tables of the records, in the SQL that SQLite and PostgreSQL have in common."""

from typing import Final

__all__ = ["TABLES", "VERSION", "VERSION_QUERY"]

VERSION: Final = 1
VERSION_QUERY: Final = "SELECT value FROM shared WHERE name = 'version'"

TABLES: Final = (
    "CREATE TABLE shared (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE api_keys (id TEXT PRIMARY KEY, who TEXT NOT NULL, roles TEXT NOT NULL,"
    " datasets TEXT, digest TEXT NOT NULL, verifier TEXT NOT NULL,"
    " created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION, revoked DOUBLE PRECISION)",
    "CREATE TABLE jobs (id TEXT PRIMARY KEY, who TEXT NOT NULL, dataset TEXT NOT NULL,"
    " state TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL,"
    " outcome BYTEA)",
    "CREATE TABLE declarations (name TEXT PRIMARY KEY, text TEXT NOT NULL, who TEXT NOT NULL,"
    " created DOUBLE PRECISION NOT NULL)",
    "CREATE INDEX jobs_by_age ON jobs (updated)",
    "CREATE INDEX jobs_by_login ON jobs (who, created)",
    "CREATE TABLE misses (dataset TEXT PRIMARY KEY, times INTEGER NOT NULL,"
    " latest DOUBLE PRECISION NOT NULL)",
    "INSERT INTO shared (name, value) VALUES ('version', '1')",
)
