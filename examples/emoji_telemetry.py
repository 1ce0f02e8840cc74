"""Which emoji do people use, when their devices tell nobody what they typed?

Each device tells one emoji a day, through coins of its own: whoever reads all of its reports of a
week learns at most the week's epsilon. With DISCREET_DATA, a folder of data sets, the true counts
are those of tweets; otherwise they are made up.
"""

import csv
import os
from pathlib import Path

import numpy as np

from discreet import local

DEVICES, DAYS = 1_000_000, 7
EPSILON = 1  # a day
NEW = "a new one"
SHOWN = 8


def true_counts() -> dict[str, int]:
    """Return how often each emoji is used: of tweets, or made up to the usual law of ranks."""
    folder = os.environ.get("DISCREET_DATA")
    if folder:
        path = Path(folder) / "emoji" / "Emoji_Sentiment_Data_v1.0.csv"
        with path.open(encoding="utf-8") as file:
            return {row["Emoji"]: int(row["Occurrences"]) for row in csv.DictReader(file)}
    return {f"emoji {rank}": 1_000_000 // rank for rank in range(1, 752)}


def main() -> None:
    """Collect a week, and say what can be seen of it."""
    counts = true_counts()
    names = [*counts, NEW]
    chances = np.array([*counts.values(), 0], dtype=float)
    chances[-1] = 0.004 * chances.sum()  # used by four in a thousand, whom nobody knows yet
    people = np.random.default_rng(2026)  # the people, not the coins
    chosen = local.choose(domain=len(names), epsilon=EPSILON, n=DEVICES)
    print(chosen)
    collect = chosen.randomiser
    print(f"\n{DEVICES:,} devices, {DAYS} days, epsilon {EPSILON} a day: {DAYS * EPSILON} a week.")
    print(f"A report has {collect.bytes_per_report} bytes.\n")

    truth, found = np.zeros(len(names)), np.zeros(len(names))
    squares = np.zeros(len(names))
    for _ in range(DAYS):
        values = people.choice(len(names), size=DEVICES, p=chances / chances.sum())
        estimate = collect.estimate(collect.release(values))
        truth += np.bincount(values, minlength=len(names))
        found += estimate.counts
        squares += estimate.standard_error**2  # the coins of other days are other coins

    print(f"{'':14}{'true':>10}{'estimated':>12}{'± two standard errors':>24}")
    for i in [*np.argsort(-found)[:SHOWN], len(names) - 1]:
        print(f"{names[i]:14}{truth[i]:>10,.0f}{found[i]:>12,.0f}{2 * squares[i] ** 0.5:>24,.0f}")

    print("\nThe smallest share that is seen, with 95% confidence for all emoji at once:")
    confidence = 1 - 0.05 / len(names)
    for devices in (10_000, 100_000, 1_000_000, 10_000_000):
        seen = collect.error(n=devices, confidence=confidence, share=0.01) / devices
        print(f"  {devices:>12,} devices, one day: {100 * seen:6.2f} in 100")


if __name__ == "__main__":
    main()
