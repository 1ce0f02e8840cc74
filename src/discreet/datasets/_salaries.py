"""A small company's payroll, for examples where one person matters."""

from typing import Final

import numpy as np

from discreet._exact import whole
from discreet.datasets._dice import Dice, Table, lognormal_table

DEPARTMENTS: Final = ("engineering", "sales", "support", "operations", "management")
_WEIGHTS: Final = (35, 25, 20, 14, 6)
_STARTING_PAY: Final = np.array((52_000, 40_000, 33_000, 36_000, 78_000), dtype=np.int64)
_RAISE: Final = np.array((2_100, 1_500, 900, 1_100, 3_400), dtype=np.int64)  # a year of service


def salaries(n: int = 100, *, seed: int = 0) -> Table:
    """Generate the payroll of n people; the same one for the same arguments.

    Columns: ``employee_id`` (0 to n - 1), ``department``, ``years`` (of service) and ``salary``
    (whole, a year, in hundreds). Pay follows department and years, with a few high earners.

    >>> payroll = salaries()
    >>> list(payroll), len(payroll["salary"])
    (['employee_id', 'department', 'years', 'salary'], 100)
    """
    n = whole(n, name="n", hint="It is the number of employees to generate.")
    dice = Dice(seed=seed)
    department = dice.pick(_WEIGHTS, size=n)
    # The smaller of two: many have come lately, few have stayed for ever.
    years = np.minimum(dice.between(0, 34, size=n), dice.between(0, 34, size=n))
    luck = lognormal_table(0.15)[np.clip(dice.bell(size=n), -3500, 3500) + 3500]
    pay = (_STARTING_PAY[department] + _RAISE[department] * years) * luck // 1000
    return {
        "employee_id": np.arange(n, dtype=np.int64),
        "department": np.array(DEPARTMENTS)[department],
        "years": years,
        "salary": pay // 100 * 100,
    }
