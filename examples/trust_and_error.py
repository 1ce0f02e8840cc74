"""What does it cost to trust nobody? The error of a count, by who is trusted, against n.

All are (epsilon, delta)-DP for the same epsilon and delta, and count a rare value of a domain. A
curator who holds the data errs alike for ten people and ten million; devices alone err with the
square root of their number; between them stands a shuffler who only forgets who sent what.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from discreet import plotting, shuffle

EPSILON, DELTA, DOMAIN = 1, 1e-8, 1000
PEOPLE = tuple(round(10 ** (2 + step / 2)) for step in range(11))  # 100 to 10 million
WIDTH = 62

Errors = dict[str, list[float]]


def errors() -> Errors:
    """Return the standard error of a count for each way, in the order of ``PEOPLE``."""
    found = [
        shuffle.standard_errors(epsilon=EPSILON, delta=DELTA, domain=DOMAIN, n=n) for n in PEOPLE
    ]
    return {way: [one[way] for one in found] for way in found[0]}


def show_table(ways: Errors) -> None:
    """Print the errors; each way has a number."""
    for number, way in enumerate(ways, start=1):
        print(f"  {number}  {way}")
    print(f"\n{'people':>12}" + "".join(f"{number:>12}" for number in range(1, len(ways) + 1)))
    for i, n in enumerate(PEOPLE):
        print(f"{n:>12,}" + "".join(f"{row[i]:>12,.1f}" for row in ways.values()))


def show_chart(ways: Errors) -> None:
    """Print the errors on a scale of powers of ten, each as the number of its way."""
    most = math.log10(max(map(max, ways.values())))
    print(
        f"\n{'people':>10}   each place to the right is {10 ** (most / WIDTH):.2f} times the error"
    )
    for i, n in enumerate(PEOPLE):
        line = [" "] * (WIDTH + 1)
        for number, row in enumerate(ways.values(), start=1):
            line[round(math.log10(row[i]) / most * WIDTH)] = str(number)
        print(f"{n:>10,} |{''.join(line).rstrip()}")


def show_rarest(ways: Errors) -> None:
    """Print how rare a value may be that stands out by two standard errors: one in so many."""
    print("\nTwo standard errors are one in so many people:\n")
    print(f"{'people':>12}" + "".join(f"{number:>12}" for number in range(1, len(ways) + 1)))
    for i, n in list(enumerate(PEOPLE))[::5]:
        print(f"{n:>12,}" + "".join(f"{n / (2 * row[i]):>12,.0f}" for row in ways.values()))


def draw(ways: Errors, path: Path) -> None:
    """Plot the errors against the number of people, both on a scale of powers of ten."""
    figure, (axes,) = plotting.panels(room="this example", size=(7.5, 4.8))
    for way, row in ways.items():
        axes.plot(PEOPLE, row, marker="o", markersize=3, label=way)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("people")
    axes.set_ylabel("standard error of a count")
    plotting.legend(axes)
    under = f"epsilon {EPSILON}, delta {DELTA:g}, a rare one of {DOMAIN:,} values"
    plotting.titled(axes, "Less trust, more error", under=under)
    plotting.save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute, print and plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="a file for the plot: .png, .svg or .pdf")
    said = parser.parse_args(arguments)

    ways = errors()
    print(f"The standard error of the count of a rare one of {DOMAIN:,} values,")
    print(f"at epsilon {EPSILON} and delta {DELTA:g}:\n")
    show_table(ways)
    show_chart(ways)
    show_rarest(ways)
    if said.plot:
        draw(ways, said.plot)
        print(f"\nThe plot is in {said.plot}.")


if __name__ == "__main__":
    main()
