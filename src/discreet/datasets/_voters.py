"""A public register with names, and a hospital's file without: the same people."""

from typing import Final

import numpy as np

from discreet._exact import whole
from discreet.datasets._dice import Dice, Table

DIAGNOSES: Final = ("asthma", "diabetes", "fracture", "heart disease", "infection", "migraine")
_WEIGHTS: Final = (20, 18, 17, 16, 15, 14)
_FIRST_DAY: Final = np.datetime64("1935-01-01", "D")
_DAYS: Final = 26_000  # to 2006


def voters(n: int = 10_000, *, zips: int = 20, seed: int = 0) -> Table:
    """Generate a register of n voters: who they are, where they live, and when they were born.

    Columns: ``voter`` (a number in place of a name), ``zip``, ``birth_date``, ``sex``, and
    ``diagnosis``, which no register has: leave it out, or use it to score an attack. The diagnosis
    has nothing to do with the rest, so that nothing but finding the person tells it.

    >>> register = voters(100)
    >>> list(register), len(register["voter"])
    (['voter', 'zip', 'birth_date', 'sex', 'diagnosis'], 100)
    """
    n = whole(n, name="n", hint="It is the number of voters to generate.")
    zips = whole(zips, name="zips", hint="It is the number of places they live in.")
    dice = Dice(seed=seed)
    return {
        "voter": np.arange(n, dtype=np.int64),
        "zip": 2_100 + dice.pick(100 + np.arange(zips), size=n),
        "birth_date": _FIRST_DAY + dice.below(_DAYS, size=n).astype("timedelta64[D]"),
        "sex": np.array(("female", "male"))[dice.below(2, size=n)],
        "diagnosis": np.array(DIAGNOSES)[dice.pick(_WEIGHTS, size=n)],
    }
