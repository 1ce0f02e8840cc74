"""Which losses does the accountant take long for?

Sweeps losses, parameters and numbers of steps, asks for epsilon, delta and a bracket of each, and
lists what takes longer than a second of this process's own time, or fails. A question that takes
over ten seconds is given up.

    python benchmarks/accounting_corners.py [--limit SECONDS] [--all]
"""

import argparse
import itertools
import math
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    ShuffledLoss,
    WithoutReplacementLoss,
    ZCDPLoss,
    bracket,
    compose,
    delta,
    epsilon,
)

DELTA = 1e-5
GIVE_UP = 10
TIMES = (1, 2, 100, 10_000, 10**6, 10**9, 10**12)
NOISE = (1e-3, 0.03, 0.1, 0.3, 1.0, 4.0, 100.0, 1e6)
RATES = (1e-6, 1e-3, 0.01, 0.5)
EPSILONS = (1e-6, 0.01, 1.0, 30.0, 1000.0)
MANY = (20, 300)


def singles() -> Iterator[tuple[str, Loss]]:
    for m in NOISE:
        yield f"gaussian {m:g}", GaussianLoss(noise_multiplier=m)
        yield f"laplace {m:g}", LaplaceLoss(noise_multiplier=m)
        for r in RATES:
            yield f"gaussian {m:g} sampled {r:g}", GaussianLoss(noise_multiplier=m).sampled(rate=r)
            yield f"laplace {m:g} sampled {r:g}", LaplaceLoss(noise_multiplier=m).sampled(rate=r)
    for e in EPSILONS:
        yield f"pure {e:g}", PureLoss(epsilon=e)
        yield f"pure {e:g} sampled", PureLoss(epsilon=e).sampled(rate=0.01)
        yield f"response {e:g}", RandomizedResponseLoss(epsilon=e, categories=10)
        yield f"range {e:g}", BoundedRangeLoss(epsilon=e)
        yield f"approximate {e:g}", ApproximateLoss(epsilon=e, delta=1e-18)
        yield f"zcdp {e:g}", ZCDPLoss(rho=e)
        for n in (1000, 2**25, 2**40):
            yield f"shuffled {e:g} {n}", ShuffledLoss(epsilon0=e, n=n)
    for m in (0.3, 3.0, 100.0):
        yield f"discrete gaussian {m:g}", DiscreteGaussianLoss(sigma=m, sensitivity=1)
        yield f"discrete laplace {m:g}", DiscreteLaplaceLoss(noise_multiplier=m, sensitivity=1)
        inner = GaussianLoss(noise_multiplier=m)
        yield f"batch {m:g}", WithoutReplacementLoss(inner=inner, batch=5, population=500)


def mixtures() -> Iterator[tuple[str, Loss]]:
    rng = random.Random(7)
    makers: dict[str, Callable[[float], Loss]] = {
        "laplace": lambda x: LaplaceLoss(noise_multiplier=20 * x),
        "sampled gaussian": lambda x: GaussianLoss(noise_multiplier=4 * x).sampled(rate=0.05),
        "sampled small": lambda x: GaussianLoss(noise_multiplier=x / 9).sampled(rate=1e-4),
        "sampled tiny": lambda x: GaussianLoss(noise_multiplier=x / 99).sampled(rate=1e-4),
        "pure": lambda x: PureLoss(epsilon=x / 20),
        "shuffled": lambda x: ShuffledLoss(epsilon0=x, n=2000),
        "discrete gaussian": lambda x: DiscreteGaussianLoss(sigma=9 * x, sensitivity=1),
    }
    for (name, make), many in itertools.product(makers.items(), MANY):
        parts: list[tuple[Loss, int]] = [(make(rng.uniform(0.5, 2)), 1) for _ in range(many)]
        yield f"{many} different {name}", compose(parts)


def losses() -> Iterator[tuple[str, Loss]]:
    for name, loss in singles():
        for times in TIMES:
            yield f"{name} x {times:g}", loss * times if times > 1 else loss
    yield from mixtures()


def given_up(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--limit", type=float, default=1.0, help="seconds that are not worth a line"
    )
    parser.add_argument("--all", action="store_true", help="show every question")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, given_up)
    asked = slow = 0
    for name, loss in losses():
        at = 0.5
        for question in ("epsilon", "delta", "bracket"):
            start = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP)
            try:
                if question == "epsilon":
                    found: Any = epsilon(loss, delta=DELTA)
                    at = min(found, 500.0) if math.isfinite(found) else 1.0
                else:
                    found = (
                        delta(loss, epsilon=at)
                        if question == "delta"
                        else bracket(loss, delta=DELTA)
                    )
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:90]
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            seconds = time.process_time() - start
            asked += 1
            is_slow = seconds > options.limit or isinstance(found, str)
            slow += is_slow
            if is_slow or options.all:
                print(f"{seconds:7.2f} s  {question:8} {name:44} {found}", flush=True)
    print(f"{slow} of {asked} questions took over {options.limit:g} s or failed")


if __name__ == "__main__":
    main()
