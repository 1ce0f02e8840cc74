"""How much of a Gaussian sum's epsilon does one run with canaries show, here and in jax-privacy?

    python benchmarks/one_run.py --peer PYTHON

PYTHON is an interpreter with benchmarks/requirements-audit.txt. Both judge the same scores. Of the
peer, the two bounds for one run are compared, as they come (all thresholds) and with half of the
canaries set aside to choose a threshold. Its ``epsilon_from_gdp`` is left out: it takes canaries of
one run for independent samples of a threshold chosen by them, and correct mechanisms fail it.
"""

import argparse
import json
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

DELTA, RUNS, TRUTHS = 1e-5, 20, (1, 4, 8)
ALPHA = 0.05

PEER = """
import json, sys
import numpy as np
from jax_privacy import auditing

rows = {}
for name, (scores, coins) in np.load(sys.argv[1]).items():
    coins = coins > 0
    auditor = auditing.CanaryScoreAuditor(scores[coins], scores[~coins])
    rows[name] = {}
    for label, choice in (("all", auditing.Bonferroni()), ("split", auditing.Split(seed=1))):
        for kind in ("epsilon_one_run", "epsilon_one_run_fdp"):
            bound = getattr(auditor, kind)(ALPHA, DELTA, threshold_strategy=choice)
            rows[name][f"{kind} {label}"] = float(bound)
print(json.dumps(rows))
"""


def distance(truth: float) -> float:
    from discreet.accounting import GaussianLoss, epsilon

    low, high = 1e-3, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        within = epsilon(GaussianLoss(noise_multiplier=1 / middle), delta=DELTA) <= truth
        low, high = (middle, high) if within else (low, middle)
    return low


def ours(truth: float, canaries: int, seed: int) -> tuple[dict[str, float | None], Floats]:
    from discreet import audit

    rng = np.random.default_rng(1000 + seed)
    seen: list[tuple[Floats, Floats]] = []

    def train(included: Floats) -> Floats:
        seen.append((distance(truth) * included + rng.normal(size=canaries), included))
        return seen[0][0]

    found = audit.training(
        train, epsilon=truth, delta=DELTA, canaries=canaries, confidence=1 - ALPHA, seed=seed
    )
    return {"epsilon_lower": found.epsilon_lower, "gaussian": found.gaussian}, np.stack(seen[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="a Python with jax-privacy")
    parser.add_argument("--canaries", type=int, default=10_000)
    asked = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    scores: dict[str, Floats] = {}
    for truth in TRUTHS:
        for seed in range(RUNS):
            name = f"{truth}/{seed}"
            results[name], scores[name] = ours(truth, asked.canaries, seed)
    if asked.peer:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores.npz"
            np.savez(path, allow_pickle=False, **scores)
            script = f"ALPHA, DELTA = {ALPHA}, {DELTA}\n{PEER}"
            command = [asked.peer, "-c", script, str(path)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for name, row in json.loads(answer).items():
            results[name].update(row)
    table = {
        truth: {
            kind: round(float(np.mean([results[f"{truth}/{s}"][kind] for s in range(RUNS)])), 3)
            for kind in results[f"{truth}/0"]
        }
        for truth in TRUTHS
    }
    about = {"canaries": asked.canaries, "delta": DELTA, "runs": RUNS, "on": platform.platform()}
    print(json.dumps({"about": about, "mean bound at true epsilon": table}, indent=2))


if __name__ == "__main__":
    main()
