"""How tight and how fast is the accountant beside its peers?

Four training runs, a thousand different releases, and calibration of the noise, all in one process
and one run; best of several, interleaved; only ratios mean anything. Peers that are not installed
are left out with a message. What the library remembers between calls is forgotten before each.

    python benchmarks/accounting.py [--json FILE] [--quick]

A bracket is shown where a method has one. "CLT" is an estimate, not a bound: where it is below the
lower end of a bracket it claims more privacy than there is.
"""

import argparse
import json
import math
import os
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from typing import Any

# One thread for everybody, set before numpy is loaded: threads that wait for each other on a busy
# machine would be measured instead.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from discreet._version import __version__
from discreet.accounting import (
    GaussianLoss,
    LaplaceLoss,
    Loss,
    bracket,
    calibrate,
    compose,
    epsilon,
    risk,
)

DELTA = 1e-5
COLUMNS = {  # rate, noise multiplier, steps
    "q=.01 s=4 T=1e4": (0.01, 4.0, 10_000),
    "q=.01 s=4 T=4e4": (0.01, 4.0, 40_000),
    "q=256/6e4 s=1.1 T=14,062": (256 / 60_000, 1.1, 14_062),
    "q=1e-5 s=.5 T=1e6": (1e-5, 0.5, 1_000_000),
}
RELEASES = 1_000
Answer = tuple[float | None, float]  # epsilon from below (if any) and from above
Job = Callable[[], Answer]


def forget() -> None:
    """Empty every cache of the library."""
    for name, module in list(sys.modules.items()):
        if name.startswith("discreet."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def timed(jobs: dict[str, Job], *, repeats: int, patience: float = 3.0) -> list[dict[str, Any]]:
    """Run each job in turn, several times over; one that takes long is run once."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for name, job in jobs.items():
            row = found.get(name)
            if row is not None and (row.get("error") or row["seconds"] > patience):
                continue
            forget()
            start = time.perf_counter()
            try:
                lower, upper = job()
            except Exception as error:  # a peer that fails is a finding, not a crash
                found[name] = {"method": name, "error": f"{type(error).__name__}: {error}"[:90]}
                continue
            seconds = time.perf_counter() - start
            best = min(seconds, row["seconds"]) if row else seconds
            found[name] = {"method": name, "lower": lower, "upper": upper, "seconds": best}
    return list(found.values())


def training(rate: float, noise: float, steps: int) -> Loss:
    return GaussianLoss(noise_multiplier=noise).sampled(rate=rate) * steps


def both_ends(loss: Loss) -> tuple[float, float]:
    found = bracket(loss, delta=DELTA)
    return found.lower, found.upper


def column_jobs(rate: float, noise: float, steps: int, has: set[str]) -> dict[str, Job]:
    loss = training(rate, noise, steps)
    jobs: dict[str, Job] = {
        "discreet": lambda: (None, epsilon(loss, delta=DELTA)),
        "discreet bracket": lambda: both_ends(loss),
    }
    if "dp-accounting" in has:
        import dp_accounting as dp
        from dp_accounting import pld, rdp

        event = dp.SelfComposedDpEvent(
            dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), steps
        )

        def by(make: Callable[[], Any]) -> Job:
            return lambda: (None, make().compose(event).get_epsilon(DELTA))

        jobs["dp-accounting PLD"] = by(pld.PLDAccountant)
        jobs["dp-accounting RDP"] = by(rdp.RdpAccountant)
    if "prv-accountant" in has:
        jobs["prv-accountant"] = lambda: prv(rate, noise, steps)
    if "opacus" in has:
        from opacus.accountants import RDPAccountant
        from opacus.accountants.analysis import gdp

        def opacus_rdp() -> Answer:
            accountant = RDPAccountant()
            accountant.history = [(noise, rate, steps)]
            return None, accountant.get_epsilon(DELTA)

        setting = {"noise_multiplier": noise, "sample_rate": rate, "steps": steps, "delta": DELTA}
        jobs["opacus RDP"] = opacus_rdp
        jobs["opacus GDP (CLT)"] = lambda: (None, gdp.compute_eps_poisson(**setting))
    return jobs


def prv(rate: float, noise: float, steps: int) -> Answer:
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    mechanism = PoissonSubsampledGaussianMechanism(
        noise_multiplier=noise, sampling_probability=rate
    )
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[steps], eps_error=0.01, delta_error=DELTA / 1000
    )
    low, _, high = accountant.compute_epsilon(DELTA, [steps])
    if not math.isfinite(high):
        raise ValueError("no finite epsilon")
    return low, high


def releases(seed: int = 7) -> list[tuple[str, float, float]]:
    """Return a thousand different releases: what, noise multiplier, rate."""
    rng = random.Random(seed)
    kinds = ("gaussian", "laplace", "sampled")
    return [(kinds[i % 3], rng.uniform(40, 120), rng.uniform(0.05, 0.3)) for i in range(RELEASES)]


def mixed_jobs(has: set[str]) -> dict[str, Job]:
    planned = releases()

    def one(kind: str, noise: float, rate: float) -> Loss:
        if kind == "laplace":
            return LaplaceLoss(noise_multiplier=noise)
        if kind == "gaussian":
            return GaussianLoss(noise_multiplier=noise)
        return GaussianLoss(noise_multiplier=noise / 10).sampled(rate=rate)

    def ours() -> Loss:
        return compose([(one(*release), 1) for release in planned])

    jobs: dict[str, Job] = {
        "discreet": lambda: (None, epsilon(ours(), delta=DELTA)),
        "discreet bracket": lambda: both_ends(ours()),
    }
    if "dp-accounting" in has:
        import dp_accounting as dp
        from dp_accounting import pld

        def theirs() -> Answer:
            accountant = pld.PLDAccountant()
            for kind, noise, rate in planned:
                if kind == "laplace":
                    accountant.compose(dp.LaplaceDpEvent(noise))
                elif kind == "gaussian":
                    accountant.compose(dp.GaussianDpEvent(noise))
                else:
                    gaussian = dp.GaussianDpEvent(noise / 10)
                    accountant.compose(dp.PoissonSampledDpEvent(rate, gaussian))
            return None, accountant.get_epsilon(DELTA)

        jobs["dp-accounting PLD"] = theirs
    return jobs


def calibration_jobs(has: set[str]) -> dict[str, Job]:
    """Find the noise of 10,000 steps at rate 0.01 for (3, 1e-5), to four digits or better."""
    jobs: dict[str, Job] = {
        "discreet": lambda: (
            None,
            calibrate(lambda s: training(0.01, s, 10_000), epsilon=3, delta=DELTA),
        )
    }
    if "dp-accounting" in has:
        import dp_accounting as dp
        from dp_accounting import pld

        def event(noise: float) -> Any:
            sampled = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(noise))
            return dp.SelfComposedDpEvent(sampled, 10_000)

        jobs["dp-accounting PLD"] = lambda: (
            None,
            dp.calibrate_dp_mechanism(
                pld.PLDAccountant,
                event,
                3.0,
                DELTA,
                dp.ExplicitBracketInterval(0.5, 8.0),
                tol=1e-4,
            ),
        )
    if "opacus" in has:
        from opacus.accountants.utils import get_noise_multiplier

        jobs["opacus PRV"] = lambda: (
            None,
            get_noise_multiplier(
                target_epsilon=3.0,
                target_delta=DELTA,
                sample_rate=0.01,
                steps=10_000,
                accountant="prv",
                epsilon_tolerance=1e-4,
            ),
        )
    return jobs


def advantage_jobs(has: set[str]) -> dict[str, Job]:
    loss = training(0.01, 4.0, 10_000)
    jobs: dict[str, Job] = {"discreet": lambda: (None, risk.advantage(loss))}
    if "riskcal" in has:
        from riskcal.calibration import get_advantage_for_dpsgd

        jobs["riskcal"] = lambda: (None, float(get_advantage_for_dpsgd(4.0, 0.01, 10_000)))
    return jobs


def tables(has: set[str], *, quick: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    repeats = 2 if quick else 5
    for title, (rate, noise, steps) in COLUMNS.items():
        yield title, timed(column_jobs(rate, noise, steps, has), repeats=repeats)
    yield f"{RELEASES} different releases", timed(mixed_jobs(has), repeats=2 if quick else 3)
    yield "sigma for (3, 1e-5), q=.01 T=1e4", timed(calibration_jobs(has), repeats=repeats)
    yield "advantage, q=.01 s=4 T=1e4", timed(advantage_jobs(has), repeats=repeats)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title:34} {'value':>11} {'width':>9} {'ms':>9} {'x slower':>9}")
    base = next(row["seconds"] for row in rows if row["method"] == "discreet")
    for row in rows:
        if "error" in row:
            print(f"  {row['method']:32} failed: {row['error']}")
            continue
        width = "" if row["lower"] is None else f"{row['upper'] - row['lower']:.1e}"
        times = row["seconds"] / base
        print(
            f"  {row['method']:32} {row['upper']:>11.6g} {width:>9} "
            f"{1000 * row['seconds']:>9.1f} {times:>9.1f}"
        )


def installed() -> set[str]:
    modules = {
        "dp-accounting": "dp_accounting",
        "prv-accountant": "prv_accountant",
        "opacus": "opacus",
        "riskcal": "riskcal",
    }
    found = set()
    for name, module in modules.items():
        try:
            import_module(module)
            found.add(name)
        except ImportError:
            print(f"{name} is not installed and left out")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the figures, versions and hardware to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers'
    has = installed()
    import_module("scipy.fft")
    report: dict[str, Any] = {}
    for title, rows in tables(has, quick=options.quick):
        show(title, rows)
        report[title] = rows
    if options.json:
        packages = ("numpy", "scipy", *sorted(has))
        facts = {
            "versions": {
                "discreet": __version__,
                **{name: metadata.version(name) for name in packages},
            },
            "python": sys.version.split()[0],
            "hardware": {"machine": platform.machine(), "cores": os.cpu_count()},
            "tables": report,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=2)


if __name__ == "__main__":
    main()
