"""Protect two tables about the same people, and ask them: prices first, error bars always."""

from pathlib import Path
from tempfile import TemporaryDirectory

import discreet
from discreet import datasets
from discreet.tables import consistent


def main() -> None:
    """Ask about people and their visits from one budget."""
    people = datasets.census(20_000, seed=2)
    log = datasets.visits(100_000, users=20_000, seed=2)
    log["person_id"] = log.pop("user_id")
    with (
        TemporaryDirectory() as folder,
        discreet.protect(
            {"people": people, "visits": log},
            name="city",
            unit="person_id",
            guarantee=discreet.Guarantee(epsilon=3, delta=1e-6),
            ledger=Path(folder) / "budget.db",
            columns={
                "people": {"sex": {"keys": ["female", "male"]}},
                "visits": {"minutes": {"bounds": (0, 240)}},
            },
            rows=20,
        ) as tables,
    ):
        joined = (
            "SELECT sex, COUNT(*) AS visits, AVG(minutes) AS stay "
            "FROM visits JOIN people USING (person_id) GROUP BY sex"
        )
        print(tables.quote(joined, share="10%"))
        print(tables.sql(joined, share="10%"), "\n")

        # Totals and parts are released apart, so they disagree a little; least squares mends it.
        total = tables.sql("SELECT COUNT(*) AS n FROM people", share="5%")
        parts = tables.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", share="5%")
        whole, split = consistent([total, parts], column="n")
        print(f"total {whole.value:.1f}, sum of its parts {split['n'].sum():.1f}")
        print(f"{tables.remaining:.0%} of the budget is left")


if __name__ == "__main__":
    main()
