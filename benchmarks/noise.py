"""How fast is exact, secure noise beside its peers and beside numpy's insecure generator?

All in one process, on one processor, interleaved, best of several runs; only ratios mean anything.
Large vectors of ours use all processors; what two are worth is a table of its own. The samplers
that peers offer one value at a time are looped. Run it with `make bench`, or:

    python benchmarks/noise.py [--json FILE] [--quick]
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

from discreet import mechanisms as m

N = 1_000_000
LONG = 16_000_000
SCALES = (1, 100, 10_000)
ALL_PROCESSORS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
Job = tuple[Callable[[], Any], int]  # what to run, and how many samples that makes


def rate(job: Job, *, repeats: int) -> float:
    """Return samples per second, best of ``repeats``."""
    run, samples = job
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return samples / best


def numpy_jobs(scale: int) -> dict[str, dict[str, Job]]:
    rng = np.random.default_rng()
    normal: Job = (lambda: rng.normal(0, scale, N), N)
    return {
        "discrete laplace": {"numpy normal": normal},
        "discrete gaussian": {"numpy normal": normal},
        "float laplace": {
            "numpy normal": normal,
            "numpy laplace": (lambda: rng.laplace(0, scale, N), N),
        },
        "float gaussian": {"numpy normal": normal},
    }


def our_jobs(scale: int, n: int = N) -> dict[str, Job]:
    integers, floats = np.zeros(n, dtype=np.int64), np.zeros(n)
    laplace, gaussian = (
        m.DiscreteLaplace(sensitivity=1, scale=scale),
        m.DiscreteGaussian(sensitivity=1, sigma=scale),
    )
    real_laplace, real_gaussian = (
        m.Laplace(sensitivity=1, scale=scale),
        m.Gaussian(sensitivity=1, sigma=scale),
    )
    return {
        "discrete laplace": (lambda: laplace.release(integers), n),
        "discrete gaussian": (lambda: gaussian.release(integers), n),
        "float laplace": (lambda: real_laplace.release(floats), n),
        "float gaussian": (lambda: real_gaussian.release(floats), n),
    }


def opendp_jobs(scale: int, samples: int = 2_000) -> dict[str, Job]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    integers = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    integers2 = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    floats2 = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    whole, real = [0] * samples, [0.0] * samples
    measurements = {
        "discrete laplace": (dp.m.make_laplace(*integers, scale=float(scale)), whole),
        "discrete gaussian": (dp.m.make_gaussian(*integers2, scale=float(scale)), whole),
        "float laplace": (dp.m.make_laplace(*floats, scale=float(scale)), real),
        "float gaussian": (dp.m.make_gaussian(*floats2, scale=float(scale)), real),
    }
    return {name: (partial(f, x), samples) for name, (f, x) in measurements.items()}


def opendp_scalar(scale: int, samples: int = 500) -> Job:
    import opendp.prelude as dp

    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=float(scale))
    return lambda: [measurement(0) for _ in range(samples)], samples


def diffprivlib_jobs(scale: int, samples: int = 2_000) -> dict[str, Job]:
    from diffprivlib import mechanisms as peer

    laplace = peer.Geometric(epsilon=1 / scale, sensitivity=1)
    gaussian = peer.GaussianDiscrete(epsilon=min(0.9, 4 / scale), delta=1e-5, sensitivity=1)
    real = peer.Laplace(epsilon=1 / scale, delta=0, sensitivity=1)
    real_gaussian = peer.GaussianAnalytic(epsilon=min(0.9, 4 / scale), delta=1e-5, sensitivity=1)

    def loop(randomise: Callable[[Any], Any], value: float) -> Job:
        return lambda: [randomise(value) for _ in range(samples)], samples

    return {
        "discrete laplace": loop(laplace.randomise, 0),
        "discrete gaussian": loop(gaussian.randomise, 0),
        "float laplace": loop(real.randomise, 0.0),
        "float gaussian": loop(real_gaussian.randomise, 0.0),
    }


def python_dp_jobs(scale: int, samples: int = 5_000) -> dict[str, Job]:
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    laplace = LaplaceMechanism(epsilon=1 / scale, sensitivity=1)
    gaussian = GaussianMechanism(min(0.9, 4 / scale), 1e-5, 1.0)

    def loop(mechanism: Any, value: float) -> Job:
        return lambda: [mechanism.add_noise(value) for _ in range(samples)], samples

    return {
        "discrete laplace": loop(laplace, 0),
        "discrete gaussian": loop(gaussian, 0),
        "float laplace": loop(laplace, 0.0),
        "float gaussian": loop(gaussian, 0.0),
    }


def other_jobs() -> dict[str, tuple[Job, Job | None, str]]:
    """Return single tasks: ours, the one to compare with, and its name."""
    rng = np.random.default_rng()
    scores = rng.normal(size=N)
    bits = rng.random(10_000_000) < 0.5
    queries = np.zeros(5_000_000)
    laplace, gaussian = (
        m.DiscreteLaplace(sensitivity=1, scale=100),
        m.Gaussian(sensitivity=1, sigma=4),
    )
    exponential = m.Exponential(epsilon=1, sensitivity=1)
    flip = m.PermuteAndFlip(epsilon=1, sensitivity=1)
    maximum = m.NoisyMax(epsilon=1, sensitivity=1)
    response = m.RandomizedResponse(epsilon=1, categories=2)
    sparse = m.AboveThreshold(epsilon=1, threshold=10_000, positives=3, sensitivity=1)
    gumbel: Job = (lambda: int(np.argmax(scores / 2 + rng.gumbel(size=N))), 1)
    loop = 20_000
    return {
        "scalar discrete laplace": (
            (lambda: [laplace.release(7) for _ in range(loop)], loop),
            opendp_scalar(100),
            "opendp",
        ),
        "scalar float gaussian": (
            (lambda: [gaussian.release(7.0) for _ in range(loop)], loop),
            None,
            "",
        ),
        "exponential mechanism, 1e6 candidates": (
            (lambda: exponential.select(scores), 1),
            gumbel,
            "numpy gumbel argmax",
        ),
        "permute and flip, 1e6 candidates": (
            (lambda: flip.select(scores), 1),
            gumbel,
            "numpy gumbel argmax",
        ),
        "noisy max (Laplace), 1e6 candidates": (
            (lambda: maximum.select(scores), 1),
            gumbel,
            "numpy gumbel argmax",
        ),
        "sparse vector, queries": (
            (lambda: sparse.start().ask_many(queries), queries.size),
            None,
            "",
        ),
        "randomized response, bits": ((lambda: response.release(bits), bits.size), None, ""),
    }


def vector_table(repeats: int) -> list[dict[str, Any]]:
    rows = []
    peers = {"opendp": opendp_jobs, "diffprivlib": diffprivlib_jobs, "python-dp": python_dp_jobs}
    for scale in SCALES:
        ours, numpy_by_task = our_jobs(scale), numpy_jobs(scale)
        theirs = {name: make(scale) for name, make in peers.items()}
        for task, job in ours.items():
            row: dict[str, Any] = {
                "task": task,
                "scale": scale,
                "discreet": rate(job, repeats=repeats),
            }
            for name, reference in numpy_by_task[task].items():
                row[name] = rate(reference, repeats=repeats)
            for name, jobs in theirs.items():
                row[name] = rate(jobs[task], repeats=2)
            rows.append(row)
    return rows


def processors(count: int) -> None:
    """Run on so many of the machine's processors from here on, where that can be chosen."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(ALL_PROCESSORS)[:count]))


def cores_table(repeats: int) -> list[dict[str, Any]]:
    """Return the rates of our long vectors on one processor and on two, interleaved."""
    rows = []
    for task, job in our_jobs(100, LONG).items():
        rates = {1: 0.0, 2: 0.0}
        for _ in range(repeats):
            for count in rates:
                processors(count)
                rates[count] = max(rates[count], rate(job, repeats=3))
        rows.append({"task": task, "one": rates[1], "two": rates[2]})
    return rows


def show(rows: list[dict[str, Any]], tasks: list[dict[str, Any]]) -> None:
    print(f"{'samples per second':26} {'scale':>6} {'discreet':>10}   times the speed of")
    for row in rows:
        ratios = ", ".join(
            f"{name} {row['discreet'] / value:,.{1 if row['discreet'] / value < 20 else 0}f}"
            for name, value in row.items()
            if name not in {"task", "scale", "discreet"}
        )
        print(f"{row['task']:26} {row['scale']:>6} {row['discreet'] / 1e6:>8.1f} M   {ratios}")
    print()
    for task in tasks:
        versus = f"{task['ratio']:,.1f} x {task['peer']}" if task["peer"] else ""
        print(f"{task['task']:40} {task['rate']:>14,.0f} /s   {versus}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the figures, versions and hardware to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    repeats = 3 if options.quick else 9
    processors(1)
    rows = vector_table(repeats)
    tasks = []
    for name, (ours, other, peer) in other_jobs().items():
        ours_rate = rate(ours, repeats=repeats)
        ratio = ours_rate / rate(other, repeats=repeats) if other else None
        tasks.append({"task": name, "rate": ours_rate, "peer": peer, "ratio": ratio})
    show(rows, tasks)
    cores = cores_table(repeats)
    for row in cores:
        print(f"{row['task']:26} of {LONG:,} on two processors {row['two'] / row['one']:.2f} x one")
    if options.json:
        packages = ("discreet", "numpy", "cryptography", "opendp", "diffprivlib", "python-dp")
        report = {
            "versions": {name: metadata.version(name) for name in packages},
            "python": sys.version.split()[0],
            "hardware": {"machine": platform.machine(), "cores": os.cpu_count()},
            "vectors": rows,
            "tasks": tasks,
            "cores": cores,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()
