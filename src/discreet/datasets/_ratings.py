"""Ratings of films: a few everybody has seen, thousands hardly anybody has."""

from typing import Final

import numpy as np

from discreet._exact import whole
from discreet.datasets._dice import Dice, Table

_FIRST_DAY: Final = np.datetime64("2024-01-01", "s")
_TASTE: Final = np.array((2, 5, 14, 27, 30, 22), dtype=np.int64)  # of 0 to 5 stars


def ratings(n: int = 50_000, *, users: int = 1_000, items: int = 5_000, seed: int = 0) -> Table:
    """Generate at most n ratings of films by people known by a number alone.

    Columns: ``user``, ``item``, ``rating`` (0 to 5) and ``time`` (a day of 2024 or 2025). Some
    people rate much and most little, a few films are rated by nearly everybody and most by hardly
    anybody: the long tails that make people known by what they watched. Nobody rates a film twice.

    >>> sheet = ratings(1000, users=50)
    >>> list(sheet), len(set(sheet["user"].tolist())) <= 50
    (['user', 'item', 'rating', 'time'], True)
    """
    n = whole(n, name="n", hint="It is the number of ratings to generate.")
    users = whole(users, name="users", hint="It is the number of people who may rate.")
    items = whole(items, name="items", hint="It is the number of films.")
    dice = Dice(seed=seed)
    user = dice.pick(np.maximum(1, 20_000_000 // (np.arange(users) + 40)), size=n)
    item = dice.pick(np.maximum(1, 20_000_000 // (np.arange(items) + 10)), size=n)
    rating = dice.pick(_TASTE, size=n)
    day = dice.below(731, size=n)
    _, first = np.unique(user * items + item, return_index=True)
    kept = np.sort(first)
    return {
        "user": user[kept],
        "item": item[kept],
        "rating": rating[kept],
        "time": _FIRST_DAY + (86_400 * day[kept]).astype("timedelta64[s]"),
    }
