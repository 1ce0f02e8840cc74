"""What attacks run on where no file is named, and what protects it for the second half."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from discreet._exact import Number
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    from discreet.tables import Protected

DELTA: Final = 1e-6
EPSILON: Final = "1"


@contextmanager
def protected(
    data: object, *, name: str, unit: str, epsilon: Number, columns: Mapping[str, Any]
) -> "Iterator[Protected]":
    """Protect a table, one row each, in a ledger that is gone afterwards.

    >>> people = {"person": [1, 2, 3], "age": [20, 30, 40]}
    >>> with protected(people, name="people", unit="person", epsilon=1, columns={}) as T:
    ...     T.remaining
    1.0
    """
    from discreet.tables import protect

    with (
        TemporaryDirectory() as place,
        protect(
            data,
            name=name,
            unit=unit,
            rows=1,
            guarantee=Guarantee(epsilon=epsilon, delta=DELTA),
            ledger=Path(place) / "budget.db",
            columns=columns,
        ) as tables,
    ):
        yield tables
