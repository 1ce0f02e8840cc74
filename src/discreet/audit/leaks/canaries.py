"""A table of people who do not exist, whose every value is a canary."""

import csv
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias, final

from discreet._exact import refusal, whole
from discreet.errors import DataError

__all__ = ["COLUMNS", "Canary", "Cell", "LENGTH", "Planted", "plant", "secret_text"]

Cell: TypeAlias = "int | float | str | date"

LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # 32: five bits each
LENGTH = 24  # letters of a text
IDS = (10**17, 10**18)
_MOST_ROWS = 1_000_000
_SALARIES = (100_000, 1_000_000)
_STEP = Fraction(1, 2**33)  # the spacing of doubles just below the highest salary
_BORN = (date(1930, 1, 1), date(2000, 1, 1))
TEAMS = ("amber", "blue", "green", "red")
CITIES = ("Aldermoor", "Brackenford", "Coldhaven")  # public: everybody may know these
COLUMNS = ("person_id", "name", "email", "team", "city", "salary", "born")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One value that must not come out, called by a label so that nobody has to show it.

    Whatever the other people are, the value is uniform on an interval of length ``spread``
    (numbers) or on 2^(5 * 24) texts: ``family`` names those that are drawn alike and independently.
    """

    label: str
    family: str
    kind: Literal["text", "number", "date"]
    value: str | Fraction | date
    spread: Fraction = Fraction(0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Hold a table of canaries: columns of equal length, one row for each person.

    ``person_id``, ``name``, ``email``, ``salary`` and ``born`` are secrets of each person, ``team``
    is public, and so is ``city``, except that the first ``alone`` people have one of their own.

    >>> planted = plant(rows=50)
    >>> list(planted.table)
    ['person_id', 'name', 'email', 'team', 'city', 'salary', 'born']
    >>> planted
    Planted(rows=50, alone=5)
    """

    table: Mapping[str, Sequence[Cell]]
    alone: int

    @property
    def rows(self) -> int:
        """The number of people.

        >>> plant(rows=50).rows
        50
        """
        return len(self.table["name"])

    def canaries(self) -> Iterator[Canary]:
        """Yield every value of a person, and exact sums and means of the salaries.

        >>> next(plant(rows=50).canaries()).label
        'person_id[0]'
        """
        yield from _of_people(self)
        yield from _of_groups(self)

    def without_first(self) -> "Planted":
        """Return a neighbour: the same people without the first, who earns most and lives alone.

        >>> plant(rows=50).without_first()
        Planted(rows=49, alone=4)
        """
        return Planted(
            table={name: column[1:] for name, column in self.table.items()},
            alone=max(0, self.alone - 1),
        )

    def write(self, path: str | Path) -> Path:
        """Write the table as CSV, for a surface that reads files and for a later scan.

        >>> plant(rows=50).write("planted.csv")  # doctest: +SKIP
        PosixPath('planted.csv')
        """
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.table)
            writer.writerows(zip(*self.table.values(), strict=True))
        return Path(path)

    @staticmethod
    def read(path: str | Path) -> "Planted":
        """Read a table that :meth:`write` wrote.

        >>> Planted.read(plant(rows=50).write("planted.csv"))  # doctest: +SKIP
        Planted(rows=50, alone=5)
        """
        try:
            with Path(path).open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            columns = dict(zip(header, zip(*rows, strict=True), strict=True))
            table: dict[str, Sequence[Cell]] = {name: columns[name] for name in COLUMNS}
            table["person_id"] = [int(one) for one in columns["person_id"]]
            table["salary"] = [float(one) for one in columns["salary"]]
            table["born"] = [date.fromisoformat(one) for one in columns["born"]]
        except (KeyError, ValueError):
            raise DataError(
                f"{Path(path).name!r} is no planted table: expected the CSV that plant(...).write "
                "writes, as it was written."
            ) from None
        return Planted(table=table, alone=sum(city not in CITIES for city in table["city"]))

    def __repr__(self) -> str:
        return f"Planted(rows={self.rows}, alone={self.alone})"


def plant(*, rows: int = 200, alone: int = 5) -> Planted:
    """Invent people whose every value is drawn anew from the operating system's randomness.

    Give ``planted.table`` to what you want to scan as its protected data, then :func:`scan` it. The
    first ``alone`` people live in a city where nobody else does.

    >>> plant(rows=100)
    Planted(rows=100, alone=5)
    """
    rows, alone = whole(rows, name="rows", minimum=20), whole(alone, name="alone")
    if rows > _MOST_ROWS:
        hint = "A scan looks for each of them in everything."
        raise refusal("rows", f"at most {_MOST_ROWS:,}", rows, hint)
    if alone > rows:
        raise refusal("alone", f"at most {rows}, the number of rows", alone)
    low, high = _SALARIES
    drawn = [float(low + secrets.randbelow((high - low) << 33) * _STEP) for _ in range(rows)]
    top = max(range(rows), key=drawn.__getitem__)
    drawn[0], drawn[top] = drawn[top], drawn[0]
    first, last = _BORN
    table: dict[str, Sequence[Cell]] = {
        "person_id": [IDS[0] + secrets.randbelow(IDS[1] - IDS[0]) for _ in range(rows)],
        "name": [secret_text() for _ in range(rows)],
        "email": [f"{secret_text()}@mail.example" for _ in range(rows)],
        "team": [TEAMS[i % len(TEAMS)] for i in range(rows)],
        "city": [secret_text() if i < alone else CITIES[i % len(CITIES)] for i in range(rows)],
        "salary": drawn,
        "born": [first + timedelta(secrets.randbelow((last - first).days)) for _ in range(rows)],
    }
    return Planted(table=table, alone=alone)


def secret_text() -> str:
    """Return 24 letters that nobody else has: 120 bits."""
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def _of_people(planted: Planted) -> Iterator[Canary]:
    spreads = {"person_id": IDS[1] - IDS[0], "salary": _SALARIES[1] - _SALARIES[0]}
    for name, column in planted.table.items():
        for place, value in enumerate(column):
            label = f"{name}[{place}]"
            if name in spreads and isinstance(value, int | float):
                spread = Fraction(spreads[name])
                yield Canary(
                    label=label, family=name, kind="number", value=Fraction(value), spread=spread
                )
            elif isinstance(value, date):
                yield Canary(label=label, family=name, kind="date", value=value)
            elif isinstance(value, str) and (name in ("name", "email") or value not in PUBLIC):
                secret = value.partition("@")[0]
                yield Canary(label=label, family=name, kind="text", value=secret)


def _of_groups(planted: Planted) -> Iterator[Canary]:
    groups: dict[str, list[Fraction]] = {}
    columns = planted.table["team"], planted.table["city"], planted.table["salary"]
    for place, (team, city, salary) in enumerate(zip(*columns, strict=True)):
        assert isinstance(salary, float)
        keys = ["all", f"team {team}"] + [f"city {city}"] * (place >= planted.alone)
        for key in keys:
            groups.setdefault(key, []).append(Fraction(salary))
    spread = Fraction(_SALARIES[1] - _SALARIES[0])
    for key, values in groups.items():
        # Whatever the others earn, one person's salary makes the sum uniform on its spread.
        by = key.partition(" ")[0]
        for word, size in (("sum", 1), ("mean", len(values))):
            yield Canary(
                label=f"{word} of salary, {key}",
                family=f"{word} of salary by {by}",
                kind="number",
                value=sum(values, Fraction(0)) / size,
                spread=spread / size,
            )


PUBLIC = frozenset(TEAMS + CITIES)
