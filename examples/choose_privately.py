"""Which town is the most popular, which three, and how old is the typical visitor?

Run it several times: the choices change where the race is close, and hardly ever elsewhere.
"""

import numpy as np

from discreet.mechanisms import NoisyMax, PermuteAndFlip, Quantiles, TopK

TOWNS = ("Aarau", "Basel", "Chur", "Davos", "Engelberg", "Fribourg")
EPSILON = 0.5


def main() -> None:
    """Print a few private choices next to the truth."""
    people = np.random.default_rng(2024)  # the data, not the noise
    visits = people.multinomial(3_000, [0.05, 0.26, 0.24, 0.21, 0.20, 0.04])
    ages = np.clip(people.normal(44, 16, size=3_000), 0, 110).round()

    print("Visits, which nobody but the custodian may see:")
    for town, count in zip(TOWNS, visits, strict=True):
        print(f"  {town:<10}{count:>5}")

    # Each person visits one town, so a person added moves one count by one, and none down.
    best = PermuteAndFlip(epsilon=EPSILON, sensitivity=1, monotone=True)
    short = best.error(confidence=0.95, candidates=len(TOWNS))
    print(f"\nMost popular (epsilon {EPSILON}): {TOWNS[best.select(visits)]},")
    print(f"  with 95% confidence at most {short:.0f} visits behind the true winner")

    winner, gap = NoisyMax(epsilon=EPSILON, sensitivity=1, monotone=True).select_with_gap(visits)
    print(f"The same with the gap, which is free: {TOWNS[winner]}, about {gap:.0f} visits ahead")

    top = TopK(k=3, epsilon=EPSILON, sensitivity=1, monotone=True)
    print(f"The three most popular: {', '.join(TOWNS[i] for i in top.select(visits))}")
    print(f"  at a concentrated cost of rho = {float(top.zcdp_loss.rho):.4f}")

    quartiles = Quantiles(
        quantiles=(0.25, 0.5, 0.75), low=0, high=110, grid=1, epsilon=1, neighbours="add_remove"
    )
    found = ", ".join(f"{age:.0f}" for age in quartiles.release(ages))
    truth = ", ".join(f"{age:.0f}" for age in np.quantile(ages, [0.25, 0.5, 0.75]))
    print(f"\nQuartiles of age (epsilon 1): {found}; the true ones: {truth}")


if __name__ == "__main__":
    main()
