"""A census-like table: people in households in regions, with the correlations of real life."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from discreet._exact import whole
from discreet.datasets._dice import Dice, Integers, Table, lognormal_table
from discreet.errors import ParameterError

REGIONS: Final = (
    "Ashford", "Birchvale", "Clearwater", "Dunmore", "Eastmark",
    "Fairhaven", "Greywick", "Highfell", "Ironbridge", "Juniper",
)  # fmt: skip
_REGION_WEIGHTS: Final = (24, 17, 13, 11, 9, 8, 7, 5, 4, 2)
# Percent of the national wage, and the shift of education in thousandths of a standard deviation.
_REGION_WAGES: Final = np.array((118, 104, 99, 96, 108, 93, 90, 87, 95, 84), dtype=np.int64)
_REGION_SCHOOLING: Final = np.array(
    (250, 80, 0, -50, 120, -80, -120, -180, -60, -250), dtype=np.int64
)

EDUCATION: Final = ("none", "primary", "secondary", "vocational", "bachelor", "postgraduate")
_BACHELOR: Final = EDUCATION.index("bachelor")
# Where a bell curve of standing is cut into levels, and the median yearly wage of each level.
_EDUCATION_CUTS: Final = np.array((-2600, -1500, -250, 500, 1300), dtype=np.int64)
_WAGES: Final = np.array((19_000, 22_000, 29_000, 35_000, 49_000, 64_000), dtype=np.int64)
# The highest level that somebody younger than the age can have.
_SCHOOL_AGES: Final = ((25, 4), (21, 3), (17, 1), (6, 0))

EMPLOYMENT: Final = (
    "child", "student", "employed", "self-employed", "unemployed", "at home", "retired",
)  # fmt: skip
_CHILD, _STUDENT, _EMPLOYED, _SELF, _UNEMPLOYED, _HOME, _RETIRED = range(7)

SEXES: Final = ("female", "male")
ROLES: Final = ("head", "partner", "child", "relative")
_HEAD, _PARTNER, _OFFSPRING, _RELATIVE = range(4)

_SIZE_WEIGHTS: Final = (30, 34, 15, 13, 5, 2, 1)  # of households with 1, 2, ... 7 people
_MOST_PLACES: Final = 10_000
_SKEW: Final = 0.45  # spread of the logarithm of wages among equals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Homes:
    """Households, and for every person the household and the place in it."""

    region: Integers  # of each household
    standing: Integers  # of each household, in thousandths of a standard deviation
    head_age: Integers  # of each household
    home: Integers  # of each person: an index into the arrays above
    place: Integers  # of each person: 0 for the head, then 1, 2, ...


def census(n: int = 10_000, *, seed: int = 0, places: int | None = None) -> Table:
    """Generate n people of a made-up country; the same ones for the same arguments.

    Columns: ``person_id`` (0 to n - 1), ``household_id``, ``region``, ``role``, ``age``, ``sex``,
    ``education``, ``employment``, ``hours`` (worked a week) and ``income`` (whole, a year).
    Members of a household share the region and, in part, the standing; schooling grows with
    standing and fell with age; wages follow schooling, age, hours, region and luck, with a long
    upper tail. Children have no income.

    With ``places`` there is one column more, ``place``: each household is in one of so many places
    of its region, the first of them large and the last ones small. :func:`census_places` lists all.

    >>> people = census(1000)
    >>> sorted(people)[:5], len(people["income"])
    (['age', 'education', 'employment', 'hours', 'household_id'], 1000)
    >>> people["income"][people["age"] < 15].max().item()
    0
    """
    n = whole(n, name="n", hint="It is the number of people to generate.")
    names = {} if places is None else census_places(places)
    dice = Dice(seed=seed)
    homes = _households(dice, n)
    role = _roles(dice, homes)
    age = _ages(dice, homes, role)
    sex = _sexes(dice, homes, role)
    education = _education(dice, homes, age)
    employment = _employment(dice, age, sex, education, role)
    hours = _hours(dice, employment, sex)
    income = _income(dice, homes, age, education, employment, hours)
    # Drawn last, so that everything else is the same with and without.
    place = {} if places is None else {"place": names["place"][_places(dice, homes, places)]}
    return {
        "person_id": np.arange(n, dtype=np.int64),
        "household_id": homes.home,
        "region": np.array(REGIONS)[homes.region[homes.home]],
        "role": np.array(ROLES)[role],
        "age": age,
        "sex": np.array(SEXES)[sex],
        "education": np.array(EDUCATION)[education],
        "employment": np.array(EMPLOYMENT)[employment],
        "hours": hours,
        "income": income,
        **place,
    }


def census_places(places: int) -> Table:
    """Return all places of a census with so many in each region: a public table.

    Columns: ``place`` and its ``region``. Who lives where is private; which places there are is on
    every map.

    >>> atlas = census_places(12)
    >>> len(atlas["place"]), atlas["place"][11].item(), atlas["region"][11].item()
    (120, 'Ashford 12', 'Ashford')
    """
    places = whole(places, name="places", hint="It is the number of places in each region.")
    if places > _MOST_PLACES:
        raise ParameterError(f"places must be at most {_MOST_PLACES:,}.", parameter="places")
    digits = len(str(places))
    named = [f"{region} {i + 1:0{digits}}" for region in REGIONS for i in range(places)]
    return {"place": np.array(named), "region": np.repeat(np.array(REGIONS), places)}


def _places(dice: Dice, homes: _Homes, places: int) -> Integers:
    # The r-th place of a region is as likely as 1 / r, as sizes of towns are (Zipf).
    weights = 1_000_000 // np.arange(1, places + 1)
    own = dice.pick(weights, size=len(homes.region))
    return np.asarray((homes.region * places + own)[homes.home])


def _households(dice: Dice, n: int) -> _Homes:
    # n households hold at least n people; the last one used may be cut short.
    size = 1 + dice.pick(_SIZE_WEIGHTS, size=n)
    home = np.repeat(np.arange(n, dtype=np.int64), size)[:n]
    count = int(home[-1]) + 1
    size = size[:count]
    place = np.arange(n, dtype=np.int64) - (np.cumsum(size) - size)[home]
    region = dice.pick(_REGION_WEIGHTS, size=count)
    # One or two people live together at any age; larger households are mostly raising children.
    alone = np.minimum(dice.between(19, 92, size=count), dice.between(24, 97, size=count))
    couple = dice.between(22, 88, size=count)
    family = (dice.between(24, 66, size=count) + dice.between(26, 58, size=count)) // 2
    return _Homes(
        region=region,
        standing=dice.bell(size=count) + _REGION_SCHOOLING[region],
        head_age=np.choose(np.minimum(size, 3) - 1, [alone, couple, family]),
        home=home,
        place=place,
    )


def _roles(dice: Dice, homes: _Homes) -> Integers:
    n = len(homes.place)
    second = np.where(dice.chance(80, size=n), _PARTNER, _OFFSPRING)
    others = np.where(dice.chance(93, size=n), _OFFSPRING, _RELATIVE)
    return np.where(homes.place == 0, _HEAD, np.where(homes.place == 1, second, others))


def _ages(dice: Dice, homes: _Homes, role: Integers) -> Integers:
    n = len(role)
    head = homes.head_age[homes.home]
    partner = np.clip(head + dice.bell(size=n) * 4 // 1000, 18, 97)
    born_at = dice.between(19, 40, size=n)
    # Most grown-up children have left; those who stay are young, so draw a fresh age for them.
    child = np.where(head - born_at > 26, dice.between(0, 26, size=n), head - born_at)
    child = np.clip(np.minimum(child, head - 17), 0, None)
    relative = np.clip(head + dice.between(20, 35, size=n), 18, 97)
    return np.choose(role, [head, partner, child, relative])


def _sexes(dice: Dice, homes: _Homes, role: Integers) -> Integers:
    n = len(role)
    own = np.where(dice.chance(51, size=n), 0, 1)
    head = own[np.flatnonzero(homes.place == 0)][homes.home]
    other = np.where(dice.chance(95, size=n), 1 - head, head)
    return np.where(role == _PARTNER, other, own)


def _education(dice: Dice, homes: _Homes, age: Integers) -> Integers:
    own = dice.bell(size=len(age))
    cohort = 8 * np.clip(40 - age, -45, 10)  # each year of earlier birth, a little less schooling
    score = (6 * homes.standing[homes.home] + 8 * own) // 10 + cohort
    level = np.searchsorted(_EDUCATION_CUTS, score).astype(np.int64)
    for younger_than, highest in _SCHOOL_AGES:
        level = np.where(age < younger_than, np.minimum(level, highest), level)
    return level


def _employment(
    dice: Dice, age: Integers, sex: Integers, education: Integers, role: Integers
) -> Integers:
    n = len(age)
    # Percent at work among adults: more with schooling, fewer where a partner raises children.
    at_work = 72 + 4 * education - np.where((sex == 0) & (role == _PARTNER), 9, 0)
    working = np.where(dice.chance(11, size=n), _SELF, _EMPLOYED)
    idle = np.where(dice.chance(38, size=n), _UNEMPLOYED, _HOME)
    status = np.where(dice.chance(at_work, size=n), working, idle)
    studies = dice.chance(np.clip(95 - 12 * (age - 15), 4, 95), size=n)
    status = np.where((age < 30) & studies, _STUDENT, status)
    retires = dice.chance(np.clip(12 * (age - 60), 0, 97), size=n)
    status = np.where((age > 60) & retires, _RETIRED, status)
    return np.where(age < 15, _CHILD, status)


def _hours(dice: Dice, employment: Integers, sex: Integers) -> Integers:
    n = len(employment)
    full = np.where(employment == _SELF, 45, 39) + dice.bell(size=n) * 5 // 1000
    part = dice.between(10, 30, size=n)
    hours = np.where(dice.chance(np.where(sex == 0, 30, 11), size=n), part, full)
    return np.where(_is_working(employment), np.clip(hours, 5, 70), 0)


def _income(
    dice: Dice,
    homes: _Homes,
    age: Integers,
    education: Integers,
    employment: Integers,
    hours: Integers,
) -> Integers:
    luck = _luck(dice, size=len(age))
    region = _REGION_WAGES[homes.region[homes.home]]
    # Percent of the peak wage: rises until 50, then falls a little.
    experience = 100 - (50 - np.clip(age, 18, 65)) ** 2 // 20
    wage = _WAGES[education] * experience // 100 * region // 100
    earned = wage * hours // 39 * luck // 1000
    pension = 9_000 + wage * luck // 1000 * 35 // 100
    grant = dice.between(0, 60, size=len(age)) * 150
    benefit = 7_000 + wage // 6
    nothing = np.zeros_like(age)
    return np.choose(
        employment, [nothing, grant, earned, earned, benefit, nothing, pension]
    ).astype(np.int64)


def _luck(dice: Dice, *, size: int) -> Integers:
    """Return skewed factors in thousandths, median 1000."""
    # Two bells make the table of 1024 steps look smooth: (4/5)^2 + (3/5)^2 = 1.
    z = (4 * dice.bell(size=size) + 3 * dice.bell(size=size)) // 5
    return np.asarray(lognormal_table(_SKEW)[np.clip(z, -3500, 3500) + 3500])


def _is_working(employment: Integers) -> NDArray[np.bool_]:
    return np.asarray((employment == _EMPLOYED) | (employment == _SELF))
