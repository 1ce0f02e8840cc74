"""Helpers for tests, yours and ours: a source, a ledger, a server, suites, and checks of a law.

Nothing here is for production. A seeded source is predictable, and says so wherever it shows.
"""

from discreet.testing._collection import temporary_collection
from discreet.testing._law import cdf_gap, dkw_band
from discreet.testing._ledger import temporary_account, temporary_ledger
from discreet.testing._postgres import PostgresServer
from discreet.testing._seeded import SeededSource
from discreet.testing._shuffle import TemporaryShuffle, temporary_shuffle
from discreet.testing._tables import temporary_tables
from discreet.testing.engines.conformance import EngineConformance
from discreet.testing.stores.conformance import StoreConformance

__all__ = [
    "EngineConformance",
    "PostgresServer",
    "SeededSource",
    "StoreConformance",
    "TemporaryShuffle",
    "cdf_gap",
    "dkw_band",
    "temporary_account",
    "temporary_collection",
    "temporary_ledger",
    "temporary_shuffle",
    "temporary_tables",
]
