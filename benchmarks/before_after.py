"""Has a change cost speed? Run the same work on two versions of the sources, turn by turn.

    python benchmarks/before_after.py --before main~10

Each task runs in fresh processes that alternate between the two versions, so that the mood of
the machine hits both alike. What counts is the ratio of processor times, after over before.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
TASKS = {
    "noise: 20 M discrete Laplace and Gaussian": """
        import numpy as np
        from discreet import mechanisms as m
        zeros = np.zeros(10**6, dtype=np.int64)
        laplace = m.DiscreteLaplace(sensitivity=1, scale=100)
        gaussian = m.DiscreteGaussian(sensitivity=1, sigma=100)
        def work():
            for _ in range(10):
                laplace.release(zeros); gaussian.release(zeros)
    """,
    "accounting: 30 sampled Gaussians, and 300 releases": """
        import discreet
        from discreet.accounting import GaussianLoss, LaplaceLoss, compose
        def work():
            for i in range(30):
                loss = GaussianLoss(noise_multiplier=3 + i / 30).sampled(rate=0.01) * 10_000
                discreet.epsilon(loss, delta=1e-5)
            many = compose([(LaplaceLoss(noise_multiplier=20 + i), 1) for i in range(300)])
            discreet.epsilon(many, delta=1e-5)
    """,
    "filters: 20,000 charges": """
        import discreet
        from discreet.accounting import Filter, GaussianLoss, LaplaceLoss
        budget = Filter(discreet.Guarantee(epsilon=1000, delta=1e-6))
        losses = [LaplaceLoss(noise_multiplier=2000 + i) for i in range(100)]
        def work():
            for i in range(20_000):
                budget.charge(losses[i % 100])
    """,
    "ledger: 4,000 charges by 8 threads, verified": """
        import tempfile
        from concurrent.futures import ThreadPoolExecutor
        import discreet
        from discreet.accounting import PureLoss
        folder = tempfile.mkdtemp()
        ledger = discreet.Ledger.open(f"{folder}/budget.db")
        account = ledger.create("people", unit=discreet.Unit.column("id"),
            neighbours="add_remove", guarantee=discreet.Guarantee(epsilon=100, delta=1e-6))
        def charge(i):
            for _ in range(500):
                account.charge(PureLoss(epsilon=0.001), who="ana", purpose="test")
        def work():
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(charge, range(8)))
            assert ledger.verify()
    """,
    "tables: 200 quotes": """
        import tempfile
        import discreet
        from discreet import datasets
        T = discreet.protect(datasets.visits(10_000, users=500, seed=1), name="visits",
            unit="user_id", guarantee=discreet.Guarantee(epsilon=3, delta=1e-6),
            ledger=tempfile.mkdtemp() + "/budget.db")
        ask = ("SELECT place, COUNT(*) AS n, AVG(CLAMP(minutes, 0, {})) AS m FROM visits "
               "GROUP BY place")
        T.quote(ask.format(1), epsilon=0.01)
        def work():
            for i in range(200):
                T.quote(ask.format(100 + i), epsilon=0.01)
    """,
    "tables: 10 questions about a million rows": """
        import tempfile
        import discreet
        from discreet import datasets
        T = discreet.protect(datasets.visits(1_000_000, users=50_000, seed=1), name="visits",
            unit="user_id", rows=40, guarantee=discreet.Guarantee(epsilon=30, delta=1e-6),
            ledger=tempfile.mkdtemp() + "/budget.db")
        ask = ("SELECT place, COUNT(*) AS n, AVG(CLAMP(minutes, 0, {})) AS m FROM visits "
               "GROUP BY place")
        def work():
            for i in range(10):
                T.sql(ask.format(100 + i), epsilon=0.1)
    """,
    "learn: 40 steps of a small CNN": """
        import torch
        from discreet.learn import prepare
        torch.set_num_threads(1)
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 5, 2), torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(800, 10))
        data = torch.randn(4096, 1, 28, 28), torch.randint(10, (4096,))
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        private = prepare(model, sgd, data, epsilon=3, delta=1e-5, steps=45, batch_size=256,
            clip=1.0, progress=False)
        def loss_fn(model, batch):
            return torch.nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")
        batches = iter(private.batches())
        for _ in range(5):
            private.step(next(batches), loss_fn)
        def work():
            for _ in range(40):
                private.step(next(batches), loss_fn)
    """,
}
CLOCK = """
import json, os, time
start, before = time.perf_counter(), os.times()
work()
after = os.times()
print(json.dumps([after.user + after.system - before.user - before.system,
                  time.perf_counter() - start]), flush=True)
os._exit(0)
"""


def measured(program: str, source: Path) -> tuple[float, float]:
    """Return processor and clock seconds of the work, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + CLOCK],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    processor, clock = json.loads(done.stdout.splitlines()[-1])
    return processor, clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", required=True, help="a revision, or a folder with sources")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        old = Path(options.before)
        if not old.is_dir():
            archive = subprocess.run(
                ["git", "archive", options.before, "src"], cwd=ROOT, capture_output=True, check=True
            )
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            old = Path(folder) / "src"
        print(f"{'task':52} {'processor':>10} {'from':>6} {'to':>6} {'clock':>7}")
        for task, program in TASKS.items():
            if options.only not in task:
                continue
            ratios = []
            for _ in range(options.rounds):
                before, after = measured(program, old), measured(program, ROOT / "src")
                ratios.append([new / was for new, was in zip(after, before, strict=True)])
            processor, clock = zip(*ratios, strict=True)
            print(
                f"{task:52} {statistics.median(processor):10.2f} {min(processor):6.2f} "
                f"{max(processor):6.2f} {statistics.median(clock):7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
