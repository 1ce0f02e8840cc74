"""Why the sparse vector technique found in tutorials is not private.

The recipe in circulation: noise Lap(2 / epsilon) on the threshold, once; noise Lap(4 / (3 epsilon))
on every query; stop after c positive answers; "epsilon-DP however many queries are asked". Its
query noise does not grow with c, and even one positive answer costs twice what is claimed. This
script computes the true cost by integration and then lets the auditor find it from samples.
"""

from functools import partial

import numpy as np
import numpy.typing as npt

from discreet import audit
from discreet.mechanisms import AboveThreshold
from discreet.noise import discrete_laplace

STEPS = 1 << 20  # grid steps in one unit: fine enough to stand for real numbers


def log_probability(
    *, epsilon: float, negatives: int, positives: int, low: float, high: float
) -> float:
    """Return log Pr[first all negative, then all positive] in the recipe, threshold 0.

    ``low`` and ``high`` are the values of the queries answered no and yes. Given the threshold's
    noise the answers are independent, so one integral is left.
    """
    threshold_scale, query_scale = 2 / epsilon, 4 / (3 * epsilon)
    at = np.linspace(-60, 60, 240_001) * threshold_scale
    log_density = -np.abs(at) / threshold_scale - np.log(2 * threshold_scale)
    stays_below = negatives * log_laplace_cdf((at - low) / query_scale)
    rises_above = positives * log_laplace_cdf((high - at) / query_scale)
    terms = log_density + stays_below + rises_above
    peak = float(terms.max())
    return peak + float(np.log(np.exp(terms - peak).sum() * (at[1] - at[0])))


def log_laplace_cdf(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the standard Laplace distribution function."""
    tail = np.exp(-np.abs(z)) / 2
    return np.where(z < 0, -np.abs(z) - np.log(2), np.log1p(-tail))


def true_cost(*, epsilon: float, negatives: int, positives: int) -> float:
    """Return the privacy loss of one output on one pair of neighbours, in units of epsilon.

    On one dataset the queries are 0 (negatives) and 1 (positives), on its neighbour the reverse.
    """
    log_likelihood = partial(
        log_probability, epsilon=epsilon, negatives=negatives, positives=positives
    )
    return (log_likelihood(low=0, high=1) - log_likelihood(low=1, high=0)) / epsilon


def recipe(queries: npt.NDArray[np.int64], runs: int, *, epsilon: float) -> list[str]:
    """Run the recipe for one positive answer, ``runs`` times; return strings such as ``'nny'``."""
    threshold = discrete_laplace(2 / epsilon * STEPS, (runs, 1))
    noise = discrete_laplace(4 / (3 * epsilon) * STEPS, (runs, queries.size))
    above = queries * STEPS + noise >= threshold
    first = np.where(above.any(axis=1), above.argmax(axis=1), queries.size)
    return ["n" * stop + "y" * (stop < queries.size) for stop in first.tolist()]


def pair(negatives: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return neighbouring query values: so many negatives, then the positive."""
    x = np.array([0] * negatives + [1])
    return x, 1 - x


def main() -> None:
    """Print the recipe's true cost, the auditor's verdict, and the remedy."""
    print("The recipe claims epsilon. It costs, in units of epsilon (at epsilon = 1):\n")
    print("  negatives before    c = 1    c = 2    c = 3")
    for negatives in (1, 2, 10, 100):
        costs = [true_cost(epsilon=1, negatives=negatives, positives=c) for c in (1, 2, 3)]
        print(f"  {negatives:16}" + "".join(f"{cost:9.2f}" for cost in costs))
    print("  the limit, (1+3c)/2 " + "".join(f"{(1 + 3 * c) / 2:7.2f}  " for c in (1, 2, 3)))

    print("\nThe auditor, on the pair with ten negatives:\n")
    found = audit.mechanism(
        lambda queries, runs: recipe(queries, runs, epsilon=1),
        pair=pair(10),
        epsilon=1,
        delta=0,
        samples=100_000,
        batch=True,
    )
    print(found)

    alert = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1)
    print(f"\nThe remedy: {alert}")
    print(f"costs {alert.loss}, proved. Of 1,000 answers all are right, with 95% confidence,")
    print(f"for values {alert.error(confidence=0.95, queries=1000):.1f} or more away.")


if __name__ == "__main__":
    main()
