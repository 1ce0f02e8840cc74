"""Which emoji do people use, when their devices tell nobody what they typed?

Each device tells one emoji a day, through coins of its own: whoever reads all of its reports of a
week learns at most the week's epsilon. With DISCREET_DATA, a folder of data sets, the true counts
are those of tweets; otherwise they are made up.
"""

import csv
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from discreet import local

DEVICES, DAYS = 1_000_000, 7
EPSILON = 1  # a day
NEW = "a new one"
SHOWN = 8


def true_counts() -> dict[str, int]:
    """Return how often each emoji is used: of tweets, or made up to the usual law of ranks."""
    folder = os.environ.get("DISCREET_DATA")
    file = Path(folder) / "emoji" / "Emoji_Sentiment_Data_v1.0.csv" if folder else None
    if file and file.exists():
        with file.open(encoding="utf-8") as lines:
            rows = [(row["Emoji"], row["Occurrences"]) for row in csv.DictReader(lines)]
        return {emoji: int(count) for emoji, count in rows if count.isdigit()}  # a few are unknown
    return {f"emoji {rank}": 1_000_000 // rank for rank in range(1, 752)}


def show_budget(collect: Any) -> None:
    """Print what one device says in ten days, if it is asked thrice a day."""
    day, answered = 0, []
    with tempfile.TemporaryDirectory() as folder:
        device = local.Device(
            collect,
            state=Path(folder) / "emoji",
            daily=EPSILON,
            lifetime=DAYS * EPSILON,
            rotation=1,  # a new pseudonym every day
            clock=lambda: day * 86_400.0,
        )
        for day in range(1, 11):
            answered.append(sum(device.collect(day) is not None for _ in range(3)))
        spent = device.spent
    print(f"A device that is asked thrice a day answers: {' '.join(map(str, answered))}")
    print(f"It allows epsilon {EPSILON} a day and {DAYS * EPSILON} ever. When {spent} is spent,")
    print("it says nothing more, whoever asks.\n")


def smallest_share(collect: Any, *, n: int, names: int) -> float:
    """Return the share that is seen in 19 of 20 collections of so many reports.

    Seen is what lies above all that unused emoji seem to be in 19 of 20 collections.
    """
    above = collect.error(n=n, confidence=1 - 0.1 / names, share=0)  # 5% on each side
    below = collect.error(n=n, confidence=0.9, share=0.2)
    return float(above + below) / n


def show_smallest_shares(collect: Any, names: int) -> None:
    """Print from which share on a rare or new emoji is seen."""
    print("The smallest share that is seen in 19 of 20 collections. Seen is what lies")
    print("above all that unused emoji seem to be, in 19 of 20 collections.\n")
    print(f"{'devices':>14}{'one day':>14}{'a week':>14}")
    for devices in (10_000, 100_000, 1_000_000, 10_000_000):
        found = [smallest_share(collect, n=n, names=names) for n in (devices, DAYS * devices)]
        print(f"{devices:>14,}" + "".join(f"{100 * share:>12.2f} %" for share in found))


def main() -> None:
    """Collect a week, and say what can be seen of it."""
    counts = true_counts()
    names = [*counts, NEW]
    chances = np.array([*counts.values(), 0], dtype=float)
    chances[-1] = 0.006 * chances.sum()  # used by six in a thousand, whom nobody knows yet
    people = np.random.default_rng(2026)  # the people, not the coins
    chosen = local.choose(domain=len(names), epsilon=EPSILON, n=DEVICES)
    print(f"{chosen}\n")
    collect = chosen.randomiser
    show_budget(collect)

    values, reports = [], []
    for _ in range(DAYS):
        values.append(people.choice(len(names), size=DEVICES, p=chances / chances.sum()))
        reports.append(collect.release(values[-1]))
    estimate = collect.estimate(np.concatenate(reports))
    truth = np.bincount(np.concatenate(values), minlength=len(names))
    low, high = estimate.interval(confidence=0.95)
    print(f"{DEVICES:,} devices tell in {DAYS} days, with {collect.bytes_per_report} bytes a day:")
    print("(the intervals hold for all emoji at once, with 95% confidence)\n")
    print(f"{'':14}{'true':>10}{'estimated':>12}{'between':>12}{'and':>12}")
    for i in [*np.argsort(-estimate.counts)[:SHOWN], len(names) - 1]:
        ends = f"{low[i]:>12,.0f}{high[i]:>12,.0f}"
        print(f"{names[i]:14}{truth[i]:>10,}{estimate.counts[i]:>12,.0f}{ends}")
    print(f"\n{np.sum(low > 0)} emoji of {len(names)} are surely used.\n")
    show_smallest_shares(collect, len(names))


if __name__ == "__main__":
    main()
