"""A ledger for a test or an example, gone afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet._exact import Number
from discreet.ledger import Account, Ledger
from discreet.privacy import Guarantee, Unit

__all__ = ["temporary_account", "temporary_ledger"]


@contextmanager
def temporary_ledger() -> Iterator[Ledger]:
    """Open a ledger in a temporary folder. It takes charges for seeded noise, and says so.

    >>> with temporary_ledger() as ledger:
    ...     ledger.is_testing, ledger.size
    (True, 1)
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(Path(folder) / "budget.db", testing=True) as ledger,
    ):
        yield ledger


@contextmanager
def temporary_account(*, epsilon: Number, delta: Number = 0) -> Iterator[Account]:
    """Open an account that protects records, in a temporary ledger of its own.

    >>> with temporary_account(epsilon=1) as account:
    ...     account.guarantee, account.used
    (Guarantee(epsilon=1, delta=0), 0.0)
    """
    with temporary_ledger() as ledger:
        yield ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=epsilon, delta=delta),
        )
