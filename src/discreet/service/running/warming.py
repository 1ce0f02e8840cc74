"""Answer a question about nobody before the first analyst asks: libraries load slowly, once."""

import tempfile
from pathlib import Path

from discreet.privacy import Guarantee
from discreet.tables import protect, write_quote

__all__ = ["warm_up"]

_QUESTION = "SELECT region, COUNT(*) AS n, AVG(pay) AS pay FROM nobody GROUP BY region ORDER BY n"


def warm_up() -> None:
    """Protect a made-up table with a ledger of its own, and ask it, as analysts will ask.

    Without it the first answer of a worker could miss its deadline, and would stay charged.
    """
    table = {"person": list(range(9)), "region": ["a", "b", "c"] * 3, "pay": [1.0] * 9}
    with (
        tempfile.TemporaryDirectory() as folder,
        protect(
            table,
            name="nobody",
            unit="person",
            rows=1,
            guarantee=Guarantee(epsilon=1, delta=1e-6),
            ledger=Path(folder) / "budget.db",
            columns={"pay": {"bounds": (0, 1)}},
        ) as tables,
    ):
        write_quote(tables.quote(_QUESTION, epsilon=0.5))
        tables.sql(_QUESTION, epsilon=0.5).to_json()
