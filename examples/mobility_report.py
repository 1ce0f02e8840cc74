"""A mobility report: how many people were where in which week, and what changed.

    python examples/mobility_report.py                      # 20,000 people who do not exist
    python examples/mobility_report.py --people 200000
    python examples/mobility_report.py --data FOLDER        # FOLDER/nycflights13/flights.csv.gz

DISCREET_DATA names the folder as well. A person has many rows, and all of them are protected
together. The tables of weeks, of places and of both are planned at once, so that the budget goes
where it helps; changes from week to week are flagged for the price of the flags alone.
"""

import argparse
import gzip
import json
import os
from collections.abc import Sequence
from csv import DictReader
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.util import find_spec
from itertools import pairwise
from math import ceil, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import discreet
from discreet import datasets, mechanisms, plotting
from discreet.tables import (
    Alert,
    Protected,
    Result,
    Rise,
    Watch,
    Workload,
    count_distinct,
    write_card,
)

PLACES = (
    "station", "market", "office park", "university", "hospital", "stadium",
    "museum", "library", "swimming pool", "cinema", "harbour", "clinic",
)  # fmt: skip
AIRPORTS = (
    "ATL", "ORD", "LAX", "DFW", "DEN", "SFO", "CLT", "LAS", "PHX", "MIA", "MCO", "BOS", "SEA",
)  # fmt: skip
FILE = "nycflights13/flights.csv.gz"
CONFIDENCE = 0.95
FLAGS = 10
BEYOND = 0.5  # what has an interval farther than half of it is not published


@dataclass(frozen=True, kw_only=True)
class Log:
    """Rows of who was where in which week, which are private, and what is public about them."""

    rows: dict[str, Any]
    places: tuple[str, ...]
    weeks: tuple[date, ...]
    who: str  # what a unit is called
    people: int  # about so many, as everybody knows

    @property
    def in_full(self) -> int:
        """In how many places and weeks a unit counts in full: three places a week."""
        return 3 * len(self.weeks)


def mondays(first: date) -> tuple[date, ...]:
    """Return the Mondays of a quarter."""
    return tuple(first + timedelta(weeks=i) for i in range(13))


def generated(people: int) -> Log:
    """Make up a town in which five things happen."""
    weeks = mondays(date(2025, 3, 31))

    def event(place: str, week: int, percent: int, weeks_long: int = 1) -> datasets.VisitEvent:
        first = weeks[week]
        last = first + timedelta(weeks=weeks_long, days=-1)
        return datasets.VisitEvent(place=place, first=first, last=last, percent=percent)

    events = [
        event("station", 2, -60),  # a strike
        event("market", 4, -80, weeks_long=2),  # repairs
        event("stadium", 7, 15),  # a final
        event("harbour", 10, 10),  # a festival
        event("museum", 5, -100, weeks_long=3),  # closed, but it is small
    ]
    log = datasets.visits(30 * people, users=people, seed=1, events=events)
    days = log["time"].astype("datetime64[D]")
    rows = {"unit": log["user_id"], "place": log["place"], "week": monday_of(days)}
    return Log(rows=rows, places=PLACES, weeks=weeks, who="person", people=people)


def flights(folder: Path) -> Log:
    """Read the flights that left New York in the first weeks of 2013; the unit is an aircraft."""
    with gzip.open(folder / FILE, "rt") as lines:
        read = [
            (row["tailnum"], row["dest"], f"{row['year']}-{row['month']:0>2}-{row['day']:0>2}")
            for row in DictReader(lines)
        ]
    tail, place, day = (np.array(column) for column in zip(*read, strict=True))
    rows = {"unit": tail, "place": place, "week": monday_of(day.astype("datetime64[D]"))}
    weeks = mondays(date(2013, 1, 7))
    return Log(rows=rows, places=AIRPORTS, weeks=weeks, who="aircraft", people=4_000)


def monday_of(days: np.ndarray) -> np.ndarray:
    """Return the Monday before each day."""
    since: np.ndarray = (days.astype(np.int64) + 3) % 7
    return np.asarray(days - since.astype("timedelta64[D]"))


def protected(log: Log, folder: str, *, epsilon: float) -> Protected:
    """Declare what is public: which places and weeks there are, and how much of a unit counts."""
    return discreet.protect(
        log.rows,
        name="visits",
        unit="unit",
        groups=log.in_full,
        guarantee=discreet.Guarantee(epsilon=epsilon, delta=1e-6),
        ledger=Path(folder) / "budget.db",
        columns={
            "place": {"keys": list(log.places)},
            "week": {"keys": [week.isoformat() for week in log.weeks], "type": "DATE"},
        },
    )


def planned(tables: Protected, *, epsilon: float) -> Workload:
    """Split a budget over time, geography and both, of which the last is what it is all about."""
    questions = [
        "SELECT week, COUNT(DISTINCT unit) AS n FROM visits GROUP BY week",
        "SELECT place, COUNT(DISTINCT unit) AS n FROM visits GROUP BY place",
        "SELECT place, week, COUNT(DISTINCT unit) AS n FROM visits GROUP BY place, week",
    ]
    return tables.plan(questions, epsilon=epsilon, weights=[1, 1, 8])


def changes(log: Log) -> list[tuple[str, date, int]]:
    """List what is watched: each place, each week but the first, up (1) and down (-1)."""
    return [(place, week, way) for week in log.weeks[1:] for place in log.places for way in (1, -1)]


def threshold_of(log: Log, *, epsilon: float) -> int:
    """Choose from which change on to flag.

    Noise alone should flag nothing, so the threshold is at least as large as the error of a watch
    on so many questions. Nor should chance: of n people who come or not, about n differ from week
    to week by chance, which is sqrt(n) in the balance: four times that, of half of all people. And
    less than two in a hundred of all people is no news.
    """
    many = len(changes(log))
    of_this_size = mechanisms.AboveThreshold(
        epsilon=epsilon, threshold=0, positives=FLAGS, sensitivity=1
    )
    error = of_this_size.error(confidence=CONFIDENCE, queries=many)
    return ceil(max(error + 4 * sqrt(log.people / 2), 0.02 * log.people) / 10) * 10


def watched(tables: Protected, log: Log, *, epsilon: float, threshold: int) -> Watch:
    """Pay for the flags; what is below the threshold is free."""

    def people(place: str, week: date) -> str:
        here = tables.where(f"place = '{place}' AND week = DATE '{week}'")
        return here.agg(n=count_distinct("unit")).sql

    before = {late: early for early, late in pairwise(log.weeks)}
    asked = []
    for place, week, way in changes(log):
        now, then = people(place, week), people(place, before[week])
        asked.append(Rise(now=now, before=then) if way > 0 else Rise(now=then, before=now))
    return tables.watch(asked, threshold=threshold, positives=FLAGS, epsilon=epsilon)


def truth(log: Log) -> np.ndarray:
    """Count exactly, by place and week. For the demo alone: nobody may see that in earnest."""
    place_of, week_of = ({name: i for i, name in enumerate(of)} for of in (log.places, log.weeks))
    place = np.array([place_of.get(name, -1) for name in log.rows["place"].tolist()])
    week = np.array([week_of.get(day, -1) for day in log.rows["week"].tolist()])
    known = (place >= 0) & (week >= 0)
    cell = place[known] * len(log.weeks) + week[known]
    _, unit = np.unique(log.rows["unit"][known], return_inverse=True)
    size = len(log.places) * len(log.weeks)
    seen = np.unique(unit.astype(np.int64) * size + cell)
    return np.bincount(seen % size, minlength=size).reshape(len(log.places), -1)


def grid_of(log: Log, result: Result) -> np.ndarray:
    """Arrange a table of places and weeks as the map has them."""
    told = {(row["place"], row["week"]): row["n"] for row in result.to_dicts(errors=False)}
    return np.array([[told[place, week] for week in log.weeks] for place in log.places], float)


def report(
    log: Log,
    workload: Workload,
    tables: Sequence[Result],
    alerts: Sequence[Alert],
    watch: Watch,
    *,
    budget: str,
) -> None:
    """Print what was asked, what it cost, how far off it may be, and what changed."""
    by_week, by_place, both = tables
    print(f"WHO IS PROTECTED  one {log.who}, with all rows: counted once in a place and week,")
    print(f"                  and in {log.in_full} of these at most (three places a week)")
    print(f"PRICE             {budget}, for everything on this page")
    print(f"PERIOD            {log.weeks[0]} to {log.weeks[-1] + timedelta(days=6)}\n")
    print(f"{'what was asked':24}{'epsilon':>8}{'numbers':>9}   {CONFIDENCE:.0%} within")
    for name, result, expected in zip(
        ("by week", "by place", "by place and week"), tables, workload.expected, strict=True
    ):
        told = f"± {expected[0].half_width:.0f}"
        print(f"  {name:22}{result.epsilon:>8.2f}{len(result):>9}   {told}")
    told = f"{watch.error():.0f} of the threshold"
    print(f"  {'changes to flag':22}{float(watch.mechanism.epsilon):>8.2f}"
          f"{len(watch.questions):>9}   {told}")  # fmt: skip

    print(f"± is about noise, not about what counting {log.in_full} at most takes off.")

    print(f"\nA typical week has {np.median(by_week['n']):,.0f} {plural(log)}.", end=" ")
    print("In the whole period:")
    rows = [f"{row['place']:14}{row['n']:>8,.0f}" for row in by_place]
    for i in range(0, len(rows), 3):
        print("  " + "   ".join(rows[i : i + 3]))

    shown = both.withheld("n", beyond=BEYOND)
    numbers, flagged = grid_of(log, shown), {changes(log)[one.place][:2] for one in alerts}
    print(f"\n{plural(log).capitalize()} by place and week; * a change, - withheld\n")
    print(" " * 14 + "".join(f"w{week:%V} ".rjust(5) for week in log.weeks))
    for place, row in zip(log.places, numbers, strict=True):
        cells = [
            ("-" if np.isnan(n) else f"{n:.0f}") + ("*" if (place, week) in flagged else " ")
            for n, week in zip(row, log.weeks, strict=True)
        ]
        print(f"{place[:13]:14}" + "".join(cell.rjust(5) for cell in cells))
    print(f"\n{np.isnan(numbers).sum()} of {numbers.size} numbers are withheld, since half of them"
          " or more may be noise.")  # fmt: skip


def plural(log: Log) -> str:
    """Name several units."""
    return {"person": "people"}.get(log.who, log.who)


def report_changes(log: Log, alerts: Sequence[Alert], watch: Watch) -> None:
    """Print the flags, and how often they would be wrong."""
    threshold, spread = float(watch.mechanism.threshold), 2 * watch.mechanism.gap_variance**0.5
    many = len(watch.questions)
    print(f"\nCHANGES           of more than {threshold:,.0f} from one week to the next\n")
    for alert in alerts:
        place, week, way = changes(log)[alert.place]
        size = way * (threshold + alert.gap)
        print(f"  {week}  {place:14} {size:+7,.0f} ± {spread:.0f}")
    sure = watch.error()
    print(f"\nWith {CONFIDENCE:.0%}, all {many} answers are right but for changes within "
          f"{sure:.0f} of {threshold:.0f}:")  # fmt: skip
    print(f"no flag is for a change below {threshold - sure:.0f}, and none beyond "
          f"{threshold + sure:.0f} is missing", end="")  # fmt: skip
    last = changes(log)[alerts[-1].place][1] if alerts else None
    print(
        f",\nup to {last}, when all {FLAGS} flags were used." if not watch.positives_left else "."
    )


def report_truth(log: Log, both: Result, alerts: Sequence[Alert], watch: Watch) -> None:
    """Compare with the exact numbers."""
    exact = truth(log)
    off = grid_of(log, both) - exact
    flagged = {changes(log)[one.place] for one in alerts}
    threshold = float(watch.mechanism.threshold)
    week_at = {week: i for i, week in enumerate(log.weeks)}
    true = {}
    for place, week, way in changes(log):
        row, at = exact[log.places.index(place)], week_at[week]
        true[place, week, way] = way * int(row[at] - row[at - 1])
    large = {change for change, size in true.items() if size > threshold}
    print("\nHOW GOOD IS IT?   For the demo alone, since it looks at the exact numbers.\n")
    print(
        f"  mean error by place and week  {abs(off).mean():.0f}, of {exact.mean():.0f} on average"
    )
    print(f"  of which counting each {log.who} {log.in_full} times at most took  "
          f"{max(0, -off.mean()):.0f}")  # fmt: skip
    print(f"  changes above {threshold:.0f}: {len(large)}; flagged: {len(flagged)}, "
          f"right: {len(flagged & large)}, missed: {len(large - flagged)}")  # fmt: skip
    for place, week, way in sorted(large - flagged, key=str):
        print(f"    missed {week}  {place:14} {way * true[place, week, way]:+,}")
    for place, week, way in sorted(flagged - large, key=str):
        print(f"    within the error: {week}  {place:14} {way * true[place, week, way]:+,}")


def draw(log: Log, both: Result, alerts: Sequence[Alert], path: Path) -> None:
    """Plot each place over the weeks, with intervals and flags."""
    figure, axes = plotting.panels(
        len(log.places), room="this example", columns=(len(log.places) + 2) // 3, size=(10.0, 6.4)
    )
    look = plotting.look()
    rows = {(row["place"], row["week"]): row for row in both}
    at = np.arange(len(log.weeks))
    flagged = [changes(log)[one.place] for one in alerts]
    for panel, place in zip(axes, log.places, strict=False):
        here = [rows[place, week] for week in log.weeks]
        values = np.array([row["n"] for row in here])
        panel.plot(at, values, marker="o", markersize=3)
        low, high = ([row[end] for row in here] for end in ("n_low", "n_high"))
        panel.fill_between(at, low, high, alpha=0.25, linewidth=0)
        for name, week, way in flagged:
            if name == place:
                i = log.weeks.index(week)
                mark, colour = ("^", look.colours[2]) if way > 0 else ("v", look.colours[1])
                panel.plot(i, values[i], mark, color=colour, markersize=9)
        panel.set_title(place, loc="left", fontsize="medium", parse_math=False)
        panel.set_ylim(bottom=min(0, *low))
        panel.set_xticks(at[::4], [f"{log.weeks[i]:%d.%m.}" for i in at[::4]], fontsize="x-small")
    figure.suptitle(
        "Visitors by place and week, with intervals; triangles are flagged changes",
        x=0.01, ha="left", color=look.ink,
    )  # fmt: skip
    plotting.save(figure, path)


def publish(
    log: Log, tables: Sequence[Result], alerts: Sequence[Alert], watch: Watch, out: Path
) -> None:
    """Write tables as CSV without what is mostly noise, flags, and release cards."""
    out.mkdir(parents=True, exist_ok=True)
    for name, result in zip(("by_week", "by_place", "by_place_and_week"), tables, strict=True):
        published = result.withheld("n", beyond=BEYOND).rounded()
        published.to_csv(out / f"{name}.csv")
        write_card(published.card(), out / f"{name}_card.md")
        write_card(published.card(), out / f"{name}_card.json")
    told = [(*changes(log)[one.place], one.gap) for one in alerts]
    flags = [
        {"place": place, "week": week.isoformat(), "way": way, "above_threshold_by": round(gap)}
        for place, week, way, gap in told
    ]
    (out / "changes.json").write_text(json.dumps(flags, indent=2) + "\n")
    write_card(watch.card(), out / "changes_card.md")


def real_data(given: Path | None) -> Path | None:
    """Return the folder of real data: the one named, or DISCREET_DATA's where it has the file."""
    if given is not None:
        return datasets.folder(given)
    named = os.environ.get("DISCREET_DATA")
    return Path(named) if named and (Path(named) / FILE).exists() else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Plan, release, watch, print and publish."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=3.0, help="of the whole account")
    parser.add_argument("--data", type=Path, help="a folder with nycflights13/flights.csv.gz in it")
    parser.add_argument("--out", type=Path, default=Path("mobility-report"))
    said = parser.parse_args(arguments)

    folder = real_data(said.data)
    log = flights(folder) if folder else generated(said.people)
    # The account's filter bears whatever is asked next, and takes a little more than the sum.
    for_tables, for_flags = round(0.6 * said.epsilon, 6), round(0.3 * said.epsilon, 6)
    threshold = threshold_of(log, epsilon=for_flags)
    budget = f"at most epsilon={said.epsilon:g}, delta=1e-06"
    with TemporaryDirectory() as kept, protected(log, kept, epsilon=said.epsilon) as opened:
        workload = planned(opened, epsilon=for_tables)
        tables = workload.release()
        watch = watched(opened, log, epsilon=for_flags, threshold=threshold)
        alerts = watch.ask()
    report(log, workload, tables, alerts, watch, budget=budget)
    report_changes(log, alerts, watch)
    report_truth(log, tables[2], alerts, watch)
    publish(log, tables, alerts, watch, said.out)
    plot = bool(find_spec("matplotlib"))
    if plot:
        draw(log, tables[2], alerts, said.out / "places.png")
    print(f"\nTables, flags, release cards{' and a plot' if plot else ''} are in:\n{said.out}")


if __name__ == "__main__":
    main()
