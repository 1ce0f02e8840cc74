"""What does "may I spend this?" cost, and does it grow with history?

Times one ask-and-charge after 10, 1,000 and 100,000 charges, for every kind of filter, with a loss
seen before and with one never seen, beside OpenDP's privacy filter and dp-accounting's accountants
(which have no filter: one composes and asks for epsilon). All in one process and one thread,
medians; only ratios and growth mean much. Peers that are not installed are left out, and those that
grow are stopped once a step takes too long.

    python benchmarks/filters.py [--json FILE] [--quick]
"""

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from discreet.accounting import Filter, GaussianLoss, LaplaceLoss
from discreet.privacy import Guarantee

PROMISE = Guarantee(epsilon=3, delta=1e-6)
SIZES = (10, 1_000, 100_000)
NOISE = 10_000  # noise multiplier: 100,000 of them fit
PATIENCE = 20.0  # seconds that filling up one peer's history may take
Step = Callable[[], object]


def ours(kind: Any, *, repeated: bool) -> Step:
    """Return one ask-and-charge."""
    f = Filter(PROMISE, kind=kind)
    # A basic filter pays a share of delta for each Gaussian, so a thousand would fill it.
    make: Any = LaplaceLoss if kind == "basic" else GaussianLoss
    noise = 10 * NOISE if kind == "basic" else NOISE
    same = make(noise_multiplier=noise)

    def step() -> None:
        loss = same if repeated else make(noise_multiplier=noise + random.random())
        if f.ask(loss):
            f.charge(loss)

    return step


def opendp_filter() -> Step:
    """Return one query to OpenDP's filter; it draws its noise as well, which takes part of it."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())
    queryable = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0)(0)
    query = dp.m.make_gaussian(*space, scale=float(NOISE))
    return lambda: queryable(query)


def opendp_noise() -> Step:
    """Return the same query without a filter, to take its share off."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    query = dp.m.make_gaussian(
        dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=float(NOISE)
    )
    return lambda: query(0)


def dp_accounting(kind: str) -> Step:
    """Return composing one Gaussian and asking for epsilon."""
    import dp_accounting as dpa

    accountant = dpa.rdp.RdpAccountant() if kind == "rdp" else dpa.pld.PLDAccountant()
    event = dpa.GaussianDpEvent(NOISE / 100)  # with less noise its grid would take minutes

    def step() -> None:
        accountant.compose(event)
        accountant.get_epsilon(1e-6)

    return step


def times(step: Step, *, probes: int) -> dict[int, float]:
    """Return the median time of a step once so many were made; stop when patience runs out."""
    found, made, start = {}, 0, time.perf_counter()
    for size in SIZES:
        while made < size and time.perf_counter() - start < PATIENCE:
            step()
            made += 1
        if made < size:
            break
        samples = []
        for _ in range(probes):
            before = time.perf_counter()
            step()
            samples.append(time.perf_counter() - before)
            made += 1
        found[size] = statistics.median(samples)
    return found


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the figures and hardware to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    probes = 51 if options.quick else 501
    contenders: dict[str, Callable[[], Step]] = {}
    for kind in ("combined", "basic", "zcdp", "renyi"):
        contenders[f"discreet {kind}"] = partial(ours, kind, repeated=True)
        contenders[f"discreet {kind}, new losses"] = partial(ours, kind, repeated=False)
    contenders["opendp filter, with noise"] = opendp_filter
    contenders["opendp noise alone"] = opendp_noise
    contenders["dp-accounting rdp"] = lambda: dp_accounting("rdp")
    contenders["dp-accounting pld"] = lambda: dp_accounting("pld")
    rows: dict[str, dict[int, float]] = {}
    for name, make in contenders.items():
        try:
            step = make()
        except ImportError as missing:
            print(f"{name}: left out, {missing.name} is not installed")
            continue
        rows[name] = times(step, probes=probes if name.startswith("discreet") else 5)
    show(rows)
    if options.json:
        hardware = {"machine": platform.machine(), "cores": os.cpu_count()}
        report = {"python": sys.version.split()[0], "hardware": hardware, "seconds": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


def show(rows: dict[str, dict[int, float]]) -> None:
    """Print microseconds, growth, and how many times the default filter's."""
    base = rows["discreet combined"]
    print(f"\n{'ask and charge, microseconds':34}" + "".join(f"{n:>12,}" for n in SIZES), end="")
    print(f"{'growth':>9}   times discreet's")
    for name, found in rows.items():
        cells = "".join(f"{found[n] * 1e6:12,.1f}" if n in found else f"{'-':>12}" for n in SIZES)
        last = max(found, default=0)
        growth = f"{found[last] / found[SIZES[0]]:8.1f}x" if last else f"{'-':>9}"
        print(f"{name:34}{cells}{growth}   {found[last] / base[last] if last else 0:,.1f}")
    print("\n- : its history was not filled up within", PATIENCE, "seconds")


if __name__ == "__main__":
    main()
