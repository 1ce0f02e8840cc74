"""One suite for all stores: whatever database keeps a ledger must do this."""

from discreet.testing.stores.entries import Entries
from discreet.testing.stores.facts import Facts
from discreet.testing.stores.handles import Handles
from discreet.testing.stores.snapshots import Snapshots
from discreet.testing.stores.transactions import Transactions

__all__ = ["StoreConformance"]


class StoreConformance(Entries, Facts, Transactions, Snapshots, Handles):
    """Check that a store does what :mod:`discreet.ledger.stores.protocol` asks of it.

    Derive a class for pytest from it and say how to open a store: the same database whenever it
    gets the same folder. Cases that only make sense for one database live with that store.

    >>> from discreet.ledger.stores.sqlite.store import SqliteStore
    >>> class TestSqlite(StoreConformance):
    ...     def make_store(self, folder):
    ...         return SqliteStore(folder / "ledger.db", create=True)
    >>> suite = TestSqlite()
    >>> suite.test_a_new_store_is_empty()
    >>> suite.teardown_method()
    """
