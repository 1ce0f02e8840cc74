"""Visits to places: many rows for some people, few for most."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, final

import numpy as np

from discreet._exact import whole
from discreet.datasets._dice import Dice, Integers, Table
from discreet.errors import ParameterError

PLACES: Final = (
    "station", "market", "office park", "university", "hospital", "stadium",
    "museum", "library", "swimming pool", "cinema", "harbour", "clinic",
)  # fmt: skip
_POPULARITY: Final = (30, 22, 16, 10, 6, 4, 3, 3, 2, 2, 1, 1)
_HOURS: Final = (1, 1, 1, 1, 2, 4, 10, 22, 26, 18, 14, 16, 20, 17, 14, 14, 18, 26, 25, 18, 12, 8,
                 5, 2)  # fmt: skip
_WEEKDAYS: Final = np.array((17, 17, 17, 17, 16, 10, 6), dtype=np.int64)
_FIRST_DAY: Final = np.datetime64("2025-01-01", "s")  # a Wednesday
_FIRST_WEEKDAY: Final = 2
_DAYS: Final = 365


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VisitEvent:
    """Something that moves visits to a place, or away from it, from one day to another.

    ``percent`` above 0: so many percent of the visits elsewhere are made here instead. Below 0: so
    many percent of the visits here are made elsewhere.

    >>> VisitEvent(place="museum", first=date(2025, 3, 3), last=date(2025, 3, 16), percent=-100)
    VisitEvent(place='museum', first=datetime.date(2025, 3, 3), last=datetime.date(2025, 3, 16), \
percent=-100)
    """

    place: str
    first: date
    last: date
    percent: int

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise ParameterError(f"place must be one of {', '.join(PLACES)}.", parameter="place")
        if self.last < self.first:
            raise ParameterError("last must be no day before first.", parameter="last")
        if not -100 <= self.percent <= 100:
            raise ParameterError("percent must lie between -100 and 100.", parameter="percent")


def visits(
    n: int = 10_000, *, users: int = 1_000, seed: int = 0, events: Sequence[VisitEvent] = ()
) -> Table:
    """Generate n visits by at most ``users`` people during 2025, in order of time.

    Columns: ``user_id`` (0 to users - 1: the ``person_id`` of a census of that size), ``place``,
    ``time`` (to the second) and ``minutes`` (stayed). A few people make very many visits, most
    few, some none: what a user-level unit of privacy is for. Everyone has a favourite place. Weeks
    differ by chance alone, unless ``events`` change where visits are made, one after another.

    >>> log = visits(1000, users=50)
    >>> list(log), len(log["user_id"])
    (['user_id', 'place', 'time', 'minutes'], 1000)
    """
    n = whole(n, name="n", hint="It is the number of visits to generate.")
    users = whole(users, name="users", hint="It is the number of people who may visit.")
    dice = Dice(seed=seed)
    user = _users(dice, n, users)
    favourite = dice.pick(_POPULARITY, size=users)
    usual = dice.chance(40, size=n)
    place = np.where(usual, favourite[user], dice.pick(_POPULARITY, size=n))
    minutes = np.minimum(dice.between(3, 180, size=n), dice.between(3, 240, size=n))
    time = _times(dice, n)
    for event in events:  # drawn last, so that everything else is the same with and without
        place = _moved(dice, event, place, time)
    order = np.argsort(time, kind="stable")
    return {
        "user_id": user[order],
        "place": np.array(PLACES)[place[order]],
        "time": _FIRST_DAY + time[order].astype("timedelta64[s]"),
        "minutes": minutes[order],
    }


def _users(dice: Dice, n: int, users: int) -> Integers:
    # Zipf-like: the r-th most active person is drawn in proportion to 1 / (r + 5). Whole weights
    # keep their sum below 2^32 for every number of users (the logarithm grows slowly).
    ranks = np.arange(users, dtype=np.int64)
    weights = np.maximum(1, 20_000_000 // (ranks + 5))
    by_activity = dice.pick(weights, size=n)
    # Who is active must not show in the number, so deal the numbers out at random.
    names = np.argsort(dice.below(2**31, size=users), kind="stable")
    return np.asarray(names[by_activity], dtype=np.int64)


def _times(dice: Dice, n: int) -> Integers:
    """Return seconds since the first midnight: busy weekdays, rush hours, empty nights."""
    day = dice.pick(_WEEKDAYS[(np.arange(_DAYS) + _FIRST_WEEKDAY) % 7], size=n)
    hour = dice.pick(_HOURS, size=n)
    return day * 86_400 + hour * 3_600 + dice.below(3_600, size=n)


def _moved(dice: Dice, event: VisitEvent, place: Integers, time: Integers) -> Integers:
    day = _FIRST_DAY.astype("datetime64[D]") + time // 86_400
    is_then = (day >= np.datetime64(event.first)) & (day <= np.datetime64(event.last))
    here = PLACES.index(event.place)
    chosen = is_then & dice.chance(abs(event.percent), size=len(place))
    elsewhere = np.array(_POPULARITY, dtype=np.int64)
    elsewhere[here] = 0
    if event.percent > 0:
        return np.where(chosen, here, place)
    return np.where(chosen & (place == here), dice.pick(elsewhere, size=len(place)), place)
