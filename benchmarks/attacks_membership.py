"""How well each membership attack does on a small overfitted network, and on a private one.

Run with: python benchmarks/attacks_membership.py [examples]. Prints JSON with versions and seconds.
"""

import json
import platform
import sys
import time
from typing import Any

import numpy as np
import torch

from discreet.attacks import membership
from discreet.privacy import Guarantee

ATTACKS = (
    membership.loss_threshold,
    membership.shadow_models,
    membership.lira_online,
    membership.lira_offline,
    membership.rmia,
)


def main() -> None:
    """Train once for all attacks, and report rates at 0.1% and 1% false positives."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 13_000
    promise = Guarantee(epsilon=2, delta=1e-5)
    points, labels = membership.labelled_points(size)
    facts: dict[str, Any] = {"examples": size, "share": 0.2, "classes": labels}
    private = membership.private_network(points, labels, guarantee=promise, population=size // 5)
    start = time.perf_counter()
    ordinary = membership.observe(
        membership.networks(points, labels), shadows=40, together=True, **facts
    )
    middle = time.perf_counter()
    protected = membership.observe(private, shadows=8, **facts)
    end = time.perf_counter()
    found = {
        name: {
            attack.__name__: membership.run(seen, attack=attack, guarantee=promise).details["rates"]
            for attack in ATTACKS
        }
        for name, seen in (("ordinary", ordinary), ("private", protected))
    }
    about = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "seconds": {"ordinary": middle - start, "private": end - middle},
    }
    print(json.dumps({"about": about, "non_members": int((~ordinary.members).sum()), **found}))


if __name__ == "__main__":
    main()
