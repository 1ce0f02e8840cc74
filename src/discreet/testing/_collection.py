"""A small collection and the account that pays for it, gone afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.local import Collection, DirectResponse
from discreet.privacy import Guarantee, Unit
from discreet.testing._ledger import temporary_ledger

__all__ = ["temporary_collection"]


@contextmanager
def temporary_collection(*, minimum: int = 2) -> Iterator[Collection]:
    """Open a collection of values from 0 to 3, at epsilon 1 a report, of at most five a device.

    Its estimates are published from ``minimum`` new reports on.

    >>> with temporary_collection() as collection:
    ...     collection.parameters.randomiser
    DirectResponse(domain=4, epsilon=1)
    """
    with temporary_ledger() as ledger, tempfile.TemporaryDirectory() as folder:
        ledger.create(
            "devices",
            unit=Unit.column("device"),
            neighbours="replace_one",
            guarantee=Guarantee(epsilon=10),
        )
        opening = Collection.open(
            ledger,
            f"{folder}/tea.db",
            name="tea",
            account="devices",
            randomiser=DirectResponse(domain=4, epsilon=1),
            a_day=1,
            lifetime=5,
            minimum=minimum,
            who="ana",
            purpose="menu",
        )
        with opening as collection:
            yield collection
