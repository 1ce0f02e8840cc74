"""How fast are devices and servers, and how exact are estimates, here and in two peers?

pure-ldp and multi-freq-ldpy stand beside ours: one core, one run. Ours draw from the secure source;
the peers draw from NumPy's generator and from ``random``, one report a call. A peer is timed with
as many reports as it makes in about a second.

    python benchmarks/local.py [--epsilon 1] [--n 1000000] [--no-peers] [--json PATH]

The peers need what benchmarks/requirements-local.txt says: without scikit-learn pure-ldp does not
import, and its hashing does not work with xxhash 4.
"""

import argparse
import json
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from discreet import local

DOMAINS: Final = (100, 10_000, 1_000_000)
SECONDS: Final = 1.0  # for which a peer is asked
CELLS: Final = 20_000  # squares that an error is the mean of, at least
Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A library's randomiser: many values to reports, and reports to counts."""

    library: str
    name: str
    client: Callable[[Array], Any]
    server: Callable[[Any], Array]
    size: int  # bytes of a report


def ours(domain: int, epsilon: float) -> Iterator[Contestant]:
    kinds: tuple[Any, ...] = (
        local.DirectResponse, local.HadamardResponse, local.ProjectiveResponse,
        local.PublicHashing, local.LocalHashing, local.OptimizedUnary, local.SubsetSelection,
    )  # fmt: skip
    for kind in kinds:
        made = kind(domain=domain, epsilon=epsilon)

        def read(reports: Any, made: Any = made) -> Array:
            return np.asarray(made.estimate(reports).counts)

        size = made.bytes_per_report
        yield Contestant(
            library="discreet", name=kind.__name__, client=made.release, server=read, size=size
        )


def pure_ldp(domain: int, epsilon: float) -> Iterator[Contestant]:
    from pure_ldp import frequency_oracles as oracles

    def same(value: int) -> int:
        return int(value)

    hadamard = oracles.HadamardResponseServer(epsilon, domain, index_mapper=same)
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any], int]] = {
        "DirectResponse": (
            lambda: oracles.DEClient(epsilon, domain, index_mapper=same),
            lambda: oracles.DEServer(epsilon, domain, index_mapper=same),
            -(-domain.bit_length() // 8),
        ),
        "HadamardResponse": (
            lambda: oracles.HadamardResponseClient(
                epsilon, domain, hadamard.get_hash_funcs(), index_mapper=same
            ),
            lambda: oracles.HadamardResponseServer(epsilon, domain, index_mapper=same),
            -(-(domain.bit_length() + 1) // 8),
        ),
        "LocalHashing": (
            lambda: oracles.LHClient(epsilon, domain, use_olh=True, index_mapper=same),
            lambda: oracles.LHServer(epsilon, domain, use_olh=True, index_mapper=same),
            5,
        ),
        "OptimizedUnary": (
            lambda: oracles.UEClient(epsilon, domain, use_oue=True, index_mapper=same),
            lambda: oracles.UEServer(epsilon, domain, use_oue=True, index_mapper=same),
            -(-domain // 8),
        ),
    }
    for name, (client, server, size) in pairs.items():
        made = client()

        def read(reports: Any, server: Callable[[], Any] = server) -> Array:
            reader = server()
            for report in reports:
                reader.aggregate(report)
            return np.asarray(reader.estimate_all(range(domain), suppress_warnings=True))

        def send(values: Array, made: Any = made) -> Any:
            return [made.privatise(value) for value in values]

        yield Contestant(library="pure-ldp", name=name, client=send, server=read, size=size)


def multi_freq(domain: int, epsilon: float) -> Iterator[Contestant]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, SS

    yield Contestant(
        library="multi-freq-ldpy",
        name="DirectResponse",
        client=lambda values: [GRR.GRR_Client(int(v), domain, epsilon) for v in values],
        server=lambda reports: GRR.GRR_Aggregator_MI(reports, domain, epsilon) * len(reports),
        size=-(-domain.bit_length() // 8),
    )
    if domain <= 10_000:
        yield Contestant(
            library="multi-freq-ldpy",
            name="SubsetSelection",
            client=lambda values: [SS.SS_Client(int(v), domain, epsilon) for v in values],
            server=lambda reports: SS.SS_Aggregator_MI(reports, domain, epsilon) * len(reports),
            size=-(-domain // 8),
        )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def rates(one: Contestant, values: Array, *, is_peer: bool) -> dict[str, float]:
    """Return reports a second of the device's side and of the server's."""
    few = values[: 200 if is_peer else min(values.size, 20_000)]
    one.client(few[:10])  # what compiles at its first call has done so
    device, _ = timed(lambda: one.client(few))
    count = min(values.size, max(few.size, int(few.size * SECONDS / max(device, 1e-9))))
    device, reports = timed(lambda: one.client(values[:count]))
    first = reports[: max(1, min(200, count))] if is_peer else reports[: min(20_000, count)]
    server, _ = timed(lambda: one.server(first))
    read = min(count, max(len(first), int(len(first) * 3 * SECONDS / max(server, 1e-9))))
    if one.name in ("DirectResponse", "HadamardResponse"):
        read = count  # most of the time is spent once, for all values
    server, _ = timed(lambda: one.server(reports[:read]))
    return {"device": count / device, "server": read / server, "reports": read}


def speed(epsilon: float, n: int, *, with_peers: bool) -> list[dict[str, Any]]:
    """Time everything, and print a table."""
    people = np.random.default_rng(2026)
    rows = []
    print(f"\n{'domain':>9} {'':17} {'library':15} {'device/s':>12} {'server/s':>12} {'bytes':>7}")
    for domain in DOMAINS:
        values = people.integers(0, domain, size=n)
        made = [*ours(domain, epsilon)]
        if with_peers:
            made += [*pure_ldp(domain, epsilon), *multi_freq(domain, epsilon)]
        for one in sorted(made, key=lambda one: one.name):
            is_ours = one.library == "discreet"
            is_wide = one.size > domain // 16 and domain > 10_000
            if is_wide or (one.name == "LocalHashing" and domain > 10_000):
                most = 1_000 if is_ours else 3  # a report is as long as the domain, or read so
            else:
                most = n if is_ours else 50_000
            found = rates(one, values[:most], is_peer=not is_ours)
            row = {"domain": domain, "name": one.name, "library": one.library} | found
            rows.append(row | {"bytes": one.size})
            print(
                f"{domain:>9,} {one.name:17} {one.library:15} {found['device']:>12,.4g} "
                f"{found['server']:>12,.4g} {one.size:>7,}",
                flush=True,
            )
    return rows


def accuracy(epsilon: float, *, with_peers: bool) -> list[dict[str, Any]]:
    """Compare squared errors of values that nobody has, at equal epsilon and n."""
    domain, n = 100, 2_000
    print(
        f"\nMean squared error of absent values over the least possible*, {n:,} devices, k={domain}"
    )
    rows = []
    values = np.zeros(n, dtype=np.int64)
    floor = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2 * n
    made = [*ours(domain, epsilon)]
    if with_peers:
        made += [*pure_ldp(domain, epsilon)]
        # multi-freq-ldpy cuts estimates off at 0, so its errors are those of another thing.
    for one in sorted(made, key=lambda one: one.name):
        if one.library != "discreet" and one.name in ("LocalHashing", "OptimizedUnary"):
            repeats = 5
        else:
            repeats = -(-CELLS // (domain - 1)) if one.library == "discreet" else 20
        squares = np.concatenate(
            [np.asarray(one.server(one.client(values)))[1:] ** 2 for _ in range(repeats)]
        )
        mean, error = squares.mean() / floor, squares.std() / floor / math.sqrt(squares.size)
        rows.append({"name": one.name, "library": one.library, "over": mean, "error": error})
        print(f"  {one.name:17} {one.library:15} {mean:6.3f} ± {error:.3f}", flush=True)
    print("  * 4 e^epsilon n / (e^epsilon - 1)^2, what optimised unary encoding reaches")
    return rows


def end_to_end(epsilon: float, n: int) -> dict[str, float]:
    """Time a million values of a million devices, from value to estimates with errors."""
    values = np.random.default_rng(2026).integers(0, 10**6, size=n)
    found = {}
    for kind in (local.HadamardResponse, local.ProjectiveResponse):

        def whole(kind: Any = kind) -> Any:
            made = kind(domain=10**6, epsilon=epsilon)
            estimate = made.estimate(made.release(values))
            return estimate.counts, estimate.standard_error

        found[kind.__name__], _ = timed(whole)
        print(f"k = 1,000,000, n = {n:,}, {kind.__name__}: {found[kind.__name__]:.2f} s end to end")
    hashing = local.LocalHashing(domain=10_000, epsilon=epsilon)
    reports = hashing.release(values % 10_000)
    found["LocalHashing server, k=10,000"], _ = timed(lambda: hashing.estimate(reports).counts)
    seconds = found["LocalHashing server, k=10,000"]
    print(f"k = 10,000, n = {n:,}, LocalHashing, server alone: {seconds:.1f} s")
    return found


def main() -> None:
    """Run everything on one core."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--n", type=float, default=10**6)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", help="also write the figures, versions and hardware to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    n, with_peers = int(options.n), not options.no_peers
    packages = ("discreet", "numpy", *(("pure-ldp", "multi-freq-ldpy") if with_peers else ()))
    report: dict[str, Any] = {
        "command": "python benchmarks/local.py",
        "versions": {name: metadata.version(name) for name in packages},
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "load": os.getloadavg(),
    }
    print(f"load at the start: {report['load'][0]:.2f}; epsilon {options.epsilon:g}; one core")
    report["end to end"] = end_to_end(options.epsilon, n)
    report["speed"] = speed(options.epsilon, n, with_peers=with_peers)
    report["accuracy"] = accuracy(options.epsilon, with_peers=with_peers)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
