"""A census in small: nation, regions, places, and ages by sex in each, all from one budget.

    python examples/census_release.py                       # 20,000 people who do not exist
    python examples/census_release.py --people 1000000 --places 40
    python examples/census_release.py --data FOLDER         # Adult, in FOLDER/adult/adult.data.gz

DISCREET_DATA names the folder as well.

All tables add up, to the last person, and none has a negative number. Printed beside them is what
the same budget gives when only the finest table is asked and added up: the flat release.
"""

import argparse
import csv
import gzip
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import discreet
from discreet import datasets, plotting
from discreet.errors import PrivacyWarning
from discreet.tables import Protected, Question, Result, consistent, count, write_card

FILE = "adult/adult.data.gz"
BANDS = 18  # of five years, the last one open
SEXES = ("female", "male")
CONTINENTS = {
    "North America": "United-States Canada Mexico Outlying-US(Guam-USVI-etc)",
    "Caribbean": "Puerto-Rico Cuba Jamaica Dominican-Republic Haiti Trinadad&Tobago",
    "Central and South America": "Honduras Guatemala Nicaragua El-Salvador Columbia Ecuador Peru",
    "Europe": "England Germany Greece Italy Poland Portugal Ireland France Hungary Scotland "
    "Yugoslavia Holand-Netherlands",
    "Asia": "Cambodia India Japan China Iran Philippines Vietnam Laos Taiwan Thailand Hong",
    "Not stated": "South ?",  # one word stands for South Korea, South Africa, ...: nobody knows
}


@dataclass(frozen=True, kw_only=True)
class Country:
    """The people, which is private, and the map, which is not."""

    people: dict[str, Any]
    name: str
    regions: dict[str, str]  # of every place there is

    @property
    def sizes(self) -> list[int]:
        """How many cells each level has."""
        places = len(self.regions)
        return [1, len(set(self.regions.values())), places, places * BANDS * len(SEXES)]


LEVELS = ("nation", "region", "place", "place x age x sex")
KEYS = ((), ("region",), ("place",), ("place", "sex", "band"))


def generated(people: int, places: int) -> Country:
    """Make up a country."""
    table = datasets.census(people, seed=1, places=places)
    atlas = datasets.census_places(places)
    regions = dict(zip(atlas["place"].tolist(), atlas["region"].tolist(), strict=True))
    return country(table, regions, name=f"{people:,} people who do not exist")


def adult(folder: Path) -> Country:
    """Read the Adult extract: countries of birth are the places, continents the regions."""
    regions = {place: name for name, places in CONTINENTS.items() for place in places.split()}
    with gzip.open(folder / FILE, "rt") as lines:
        rows = [row for row in csv.reader(lines, skipinitialspace=True) if row]
    table = {
        "person_id": np.arange(len(rows)),
        "region": np.array([regions.get(row[13], "?") for row in rows]),
        "place": np.array([row[13] for row in rows]),
        "sex": np.array([row[9].lower() for row in rows]),
        "age": np.array([int(row[0]) for row in rows]),
    }
    return country(table, regions, name="Adult, an extract of a survey of 1994")


def country(table: dict[str, Any], regions: dict[str, str], *, name: str) -> Country:
    """Keep the columns that are asked about, with ages in bands."""
    band = np.minimum(table["age"] // 5, BANDS - 1)
    kept = {name: table[name] for name in ("person_id", "region", "place", "sex")}
    return Country(people={**kept, "band": band}, name=name, regions=regions)


def protected(country: Country, folder: str, *, epsilon: float) -> Protected:
    """Declare what is public: which places there are, and that a person is counted once."""
    return discreet.protect(
        country.people,
        name="people",
        unit="person_id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=epsilon),
        ledger=Path(folder) / "budget.db",
        columns={
            "region": {"keys": sorted(set(country.regions.values()))},
            "place": {"keys": list(country.regions)},
            "sex": {"keys": list(SEXES)},
            "band": {"keys": list(range(BANDS))},
        },
    )


def counted(tables: Protected, keys: Sequence[str]) -> Question:
    """Ask for the number of people by these keys."""
    return (tables.group_by(*keys) if keys else tables.table()).agg(n=count())


def after_least_squares(variances: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return the variance of each level once all of it adds up, for a tree of equal families.

    As :func:`discreet.tables.consistent` does it: going up, a number is averaged with the sum of
    its parts; going down, what is left between the two is shared out among the parts.
    """
    families = [fine / coarse for coarse, fine in pairwise(sizes)]
    up = [variances[-1]]
    for own, many in zip(variances[-2::-1], families[::-1], strict=True):
        up.insert(0, 1 / (1 / own + 1 / (many * up[0])))
    down = [up[0]]
    for own, many in zip(up[1:], families, strict=True):
        down.append(own * (1 - 1 / many) + down[-1] / many**2)
    return down


def best_shares(sizes: Sequence[int], *, steps: int = 40) -> tuple[float, ...]:
    """Choose each level's share of epsilon, from the map alone.

    The rule: the sum over levels of the standard error, relative to what the flat release has
    there, is least. Noise of a level has variance 2 / share**2, in units of 1 / epsilon**2; the
    flat release has 2 in each of the finest cells, so sizes[-1] / size times that on a level.
    """
    flat = [2 * sizes[-1] / size for size in sizes]

    def badness(shares: tuple[float, ...]) -> float:
        found = after_least_squares([2 / share**2 for share in shares], sizes)
        return sum(math.sqrt(one / other) for one, other in zip(found, flat, strict=True))

    upper = product(range(1, steps), repeat=len(sizes) - 1)
    tried = ((*some, steps - sum(some)) for some in upper if sum(some) < steps)
    return min((tuple(one / steps for one in some) for some in tried), key=badness)


def hierarchical(
    tables: Protected, country: Country, *, epsilon: float, shares: Sequence[float]
) -> list[Result]:
    """Release every level from one budget, and make all of it add up in whole numbers."""
    # A plan gives each question epsilon in proportion to the cube root of its weight.
    workload = tables.plan(
        [counted(tables, keys) for keys in KEYS],
        epsilon=epsilon,
        delta=0,
        weights=[share**3 for share in shares],
    )
    told = [
        result.with_key("region", of="place", mapping=country.regions)
        if "place" in result.keys
        else result
        for result in workload.release()
    ]
    return consistent(told, column="n", nonnegative=True, whole=True)


def flat(tables: Protected, country: Country, *, epsilon: float) -> list[np.ndarray]:
    """Release the finest table for the whole budget, and add it up."""
    (cells,) = tables.plan([counted(tables, KEYS[-1])], epsilon=epsilon, delta=0).release()
    place = cells["place"].tolist()
    region = [country.regions[one] for one in place]
    return [np.array([cells["n"].sum()]), summed(cells, region), summed(cells, place), cells["n"]]


def summed(cells: Result, keys: Sequence[str]) -> np.ndarray:
    """Add up the finest cells, in the order of the keys: answers are in order, too."""
    return np.bincount(np.unique(keys, return_inverse=True)[1], weights=cells["n"])


def truth(country: Country) -> list[np.ndarray]:
    """Count exactly. Only made-up people may be counted so: this is for the comparison alone."""
    people = country.people
    place = np.searchsorted(sorted(country.regions), people["place"])
    sex = np.searchsorted(SEXES, people["sex"])
    cell = (place * len(SEXES) + sex) * BANDS + people["band"]
    cells = np.bincount(cell, minlength=country.sizes[-1])
    places = cells.reshape(-1, BANDS * len(SEXES)).sum(axis=1)
    regions = [country.regions[one] for one in sorted(country.regions)]
    in_regions = np.bincount(np.unique(regions, return_inverse=True)[1], weights=places)
    return [np.array([cells.sum()]), in_regions, places, cells]


def mean_errors(found: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> list[float]:
    """Return the mean absolute error of each level."""
    return [float(abs(one - two).mean()) for one, two in zip(found, exact, strict=True)]


def compared(country: Country, *, epsilon: float, shares: Sequence[float], runs: int) -> np.ndarray:
    """Release in both ways again and again; return the mean error of each level.

    Nobody could afford that about real people, and the exact counts are looked at besides. It says
    how good a release is, and is for the demo alone.
    """
    exact, errors = truth(country), []
    budget = 1.01 * 2 * runs * epsilon
    with (
        TemporaryDirectory() as folder,
        warnings.catch_warnings(action="ignore", category=PrivacyWarning),  # rightly
        protected(country, folder, epsilon=budget) as tables,
    ):
        for _ in range(runs):
            made = hierarchical(tables, country, epsilon=epsilon, shares=shares)
            ours = mean_errors([result["n"] for result in made], exact)
            theirs = mean_errors(flat(tables, country, epsilon=epsilon), exact)
            errors.append([ours, theirs])
    return np.asarray(np.mean(errors, axis=0))


def by_size(country: Country, made: Sequence[Result]) -> list[tuple[str, int, float, float, float]]:
    """Group places by how many people they have, and say how far off their numbers are."""
    exact = truth(country)
    totals, cells = exact[2], exact[3].reshape(len(exact[2]), -1)
    off = abs(made[2]["n"] - totals)
    off_cells = abs(made[3]["n"].reshape(cells.shape) - cells).sum(axis=1)
    found = []
    ends = [1, 100, 300, 1_000, 3_000, 10_000, 10**12]
    for low, high in pairwise(ends):
        here = (totals >= low) & (totals < high)
        if here.any():
            people = totals[here].sum()
            name = f"{low:,} to {high - 1:,}" if high < 10**12 else f"{low:,} and more"
            share, inside = off[here].sum() / people, off_cells[here].sum() / people
            found.append((name, int(here.sum()), float(off[here].mean()), share, inside))
    return found


def check(made: Sequence[Result]) -> None:
    """Make sure of what is promised: whole numbers, none negative, and exact sums."""
    nation, regions, places, cells = made
    assert all(result["n"].dtype == np.int64 and result["n"].min() >= 0 for result in made)
    assert nation.value == regions["n"].sum() == places["n"].sum() == cells["n"].sum()
    for parts, wholes, key in ((places, regions, "region"), (cells, places, "place")):
        for name, n in zip(wholes[key], wholes["n"], strict=True):
            assert parts["n"][parts[key] == name].sum() == n


def report(
    country: Country,
    made: Sequence[Result],
    errors: np.ndarray,
    *,
    epsilon: float,
    shares: Sequence[float],
    runs: int,
) -> None:
    """Print what was released, what it cost and how good it is."""
    sizes = country.sizes
    nation, regions, places, _ = made
    alone = [2**0.5 / share / epsilon for share in shares]
    together = [one**0.5 for one in after_least_squares([x**2 for x in alone], sizes)]
    summed_up = [(2 * sizes[-1] / size) ** 0.5 / epsilon for size in sizes]
    print(f"DATA              {country.name}")
    print("WHO IS PROTECTED  one person, counted once: add or remove any one of them")
    print(f"PRICE             epsilon={epsilon:g}, delta=0, for all four tables together\n")
    print("Standard errors, known before anybody is counted; 'flat' asks for the last")
    print("table alone, for the whole budget, and adds it up.\n")
    print(f"{'':19}{'cells':>8}{'share':>8}{'as asked':>10}{'adding up':>11}{'flat':>8}")
    for line in zip(LEVELS, sizes, shares, alone, together, summed_up, strict=True):
        print("{:19}{:8,}{:8.1%}{:10.1f}{:11.1f}{:8.1f}".format(*line))
    print("\nThe shares make the sum of these errors, each relative to the flat one, least.")

    print(f"\nTHE NUMBERS       {nation.value:,} people, in {len(regions)} regions\n")
    smallest = str(regions["region"][regions["n"].argmin()])
    inside = [row for row in places.to_dicts() if row["region"] == smallest]
    shown = [row for row in regions.to_dicts() if row["region"] == smallest]
    for row in [*shown, *inside[:8]]:
        name = row.get("place", row["region"])
        print(f"  {name:24}{row['n']:>8,}   {row['n_low']:,.0f} to {row['n_high']:,.0f}")
    if len(inside) > 8:
        print(f"  ... and {len(inside) - 8} places more")
    print("\nIntervals cover the noise with 95%. Parts add up to the last person.")

    print("\nHOW GOOD IS IT?   For the demo alone, since it looks at the exact numbers.\n")
    print(f"{f'mean error of {runs} releases':22}{'this one':>13}{'flat':>10}")
    for name, ours, other in zip(LEVELS, *errors, strict=True):
        print(f"  {name:20}{ours:>13.1f}{other:>10.1f}")
    print("\nsmall groups suffer most (this release)")
    print(f"  {'people in the place':22}{'places':>7}{'off by':>8}{'of total':>10}{'of ages':>9}")
    for name, many, off, share, within in by_size(country, made):
        print(f"  {name:22}{many:>7}{off:>8.1f}{share:>10.1%}{within:>9.1%}")
    print("  'of ages': errors of the cells of a place added up, relative to its people")


def draw(country: Country, made: Sequence[Result], errors: np.ndarray, path: Path) -> None:
    """Plot errors by level, beside the flat release's, and by size of place."""
    figure, (left, right) = plotting.panels(2, room="this example", columns=2, size=(10.0, 4.2))
    look = plotting.look()
    at = np.arange(len(LEVELS))
    left.bar(at - 0.2, errors[0], 0.4, label="from one budget, adding up")
    left.bar(at + 0.2, errors[1], 0.4, label="flat: the finest table, summed", color=look.quiet)
    left.set_xticks(at, ["nation", "region", "place", "place x\nage x sex"])
    left.set_yscale("log")
    left.set_ylabel("mean error, people")
    plotting.legend(left)
    plotting.titled(left, "What one budget gains", under="errors of several releases, averaged")
    exact = truth(country)[2]
    size, off = np.maximum(exact, 1), np.maximum(abs(made[2]["n"] - exact), 0.5)
    # An exact one as if it were half a person off.
    right.loglog(size, off / size, "o", alpha=0.5, markersize=4)
    right.set_xlabel("people in the place")
    right.set_ylabel("error, relative to them")
    plotting.titled(right, "Small places suffer most", under="each dot is a place")
    plotting.save(figure, path)


def publish(made: Sequence[Result], out: Path) -> None:
    """Write each table as CSV, and its release card for people and for programs."""
    out.mkdir(parents=True, exist_ok=True)
    for name, result in zip(("nation", "region", "place", "place_age_sex"), made, strict=True):
        result.to_csv(out / f"{name}.csv")
        write_card(result.card(), out / f"{name}_card.md")
        write_card(result.card(), out / f"{name}_card.json")


def real_data(given: Path | None) -> Path | None:
    """Return the folder of real data: the one named, or DISCREET_DATA's where it has the file."""
    if given is not None:
        return datasets.folder(given)
    named = os.environ.get("DISCREET_DATA")
    return Path(named) if named and (Path(named) / FILE).exists() else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Release, compare, print and publish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--places", type=int, default=8, help="in each of ten regions")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=10, help="releases that are averaged over")
    parser.add_argument("--data", type=Path, help="a folder with adult/adult.data.gz in it")
    parser.add_argument("--out", type=Path, default=Path("census-release"))
    said = parser.parse_args(arguments)

    folder = real_data(said.data)
    country = adult(folder) if folder else generated(said.people, said.places)
    shares = best_shares(country.sizes)
    with TemporaryDirectory() as kept, protected(country, kept, epsilon=said.epsilon) as tables:
        made = hierarchical(tables, country, epsilon=said.epsilon, shares=shares)
    errors = compared(country, epsilon=said.epsilon, shares=shares, runs=said.runs)
    check(made)
    report(country, made, errors, epsilon=said.epsilon, shares=shares, runs=said.runs)
    publish(made, said.out)
    plot = bool(find_spec("matplotlib"))
    if plot:
        draw(country, made, errors, said.out / "errors.png")
    print(f"\nTables, release cards{' and a plot' if plot else ''} are in:\n{said.out}")


if __name__ == "__main__":
    main()
