"""What visitors ask about: a hundred made-up people and their pay, under one budget."""

from pathlib import Path
from typing import Any, Final

from discreet.datasets import salaries
from discreet.ledger import Ledger
from discreet.privacy import Guarantee
from discreet.tables import Protected, Resources, protect

__all__ = ["DELTA", "EPSILON", "LONGEST", "PEOPLE", "READY", "WHO", "opened", "people"]

PEOPLE: Final = 100
EPSILON: Final = 5.0
DELTA: Final = 1e-6
WHO: Final = "visitor"
LONGEST: Final = 500  # characters of a question
_WORK: Final = Resources(memory="64MB", disk="1MB", seconds=5)
_DEPARTMENTS: Final = ("engineering", "management", "operations", "sales", "support")

READY: Final = (
    ("How many earn more than 60,000?",
     "SELECT COUNT(*) AS people FROM salaries WHERE salary > 60000"),
    ("What is the average pay?",
     "SELECT AVG(salary) AS pay FROM salaries"),
    ("How large is each department?",
     "SELECT department, COUNT(*) AS people FROM salaries GROUP BY department"),
    ("What does each department pay?",
     "SELECT department, AVG(salary) AS pay FROM salaries GROUP BY department"),
    ("What does the whole payroll cost?",
     "SELECT SUM(salary) AS payroll FROM salaries"),
    ("Can I single out employee 17?",
     "SELECT SUM(salary) AS pay FROM salaries WHERE employee_id = 17"),
)  # fmt: skip


def people(seed: int) -> dict[str, Any]:
    """Return the people of a seed."""
    return dict(salaries(PEOPLE, seed=seed))


def opened(seed: int, ledger: Path) -> Protected:
    """Protect the people of a seed, with what is left of their budget in this ledger.

    All bounds are said without a look at the data. The key of the ledger is beside it, whatever the
    environment says of the key of the gateway's own.
    """
    book = Ledger.open(ledger, key=f"{ledger}.key")
    try:
        return protect(
            people(seed),
            name="salaries",
            unit="employee_id",
            rows=1,
            size=PEOPLE,
            guarantee=Guarantee(epsilon=EPSILON, delta=DELTA),
            columns={
                "salary": {"bounds": (0, 150_000)},
                "years": {"bounds": (0, 50)},
                "department": {"keys": list(_DEPARTMENTS)},
            },
            ledger=book,
            who=WHO,
            purpose="exploring",
            resources=_WORK,
        )
    except BaseException:
        book.close()
        raise
