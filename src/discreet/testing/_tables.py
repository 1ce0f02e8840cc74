"""Protected tables that are gone afterwards, for tests and examples."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet._exact import Number
from discreet.datasets import census
from discreet.privacy import Guarantee
from discreet.tables import Protected, protect

__all__ = ["temporary_tables"]


@contextmanager
def temporary_tables(
    *, n: int = 2000, epsilon: Number, delta: Number = 1e-6, **declared: Any
) -> Iterator[Protected]:
    """Protect n generated people, one row each, as ``people`` in a ledger of their own.

    ``declared`` goes to :func:`discreet.protect`.

    >>> with temporary_tables(epsilon=3) as T:
    ...     T
    Protected('people': people; all records of one person_id, ..., 100% left)
    """
    facts: dict[str, Any] = {
        "name": "people",
        "unit": "person_id",
        "rows": 1,
        "guarantee": Guarantee(epsilon=epsilon, delta=delta),
        "columns": {"income": {"bounds": (0, 100_000)}, "sex": {"keys": ["female", "male"]}},
        **declared,
    }
    with (
        TemporaryDirectory() as folder,
        protect(census(n, seed=1), ledger=Path(folder) / "budget.db", **facts) as tables,
    ):
        yield tables
