"""How long pages take while fifty people use the budget explorer at once.

    python benchmarks/explorer.py           # two minutes, on two cores that do nothing else

A real ``discreet serve --demo`` is asked over HTTP, as browsers do: each visitor begins a session,
sees two prices, asks until the budget is spent, is refused, and starts over, with a moment of
thought in between; one more comes each fifth of a second. Measured are prices (GET), and answers
(POST, and the page that it leads to).
"""

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

_RESULTS = Path(__file__).parent / "results" / "explorer.json"
GUARD = re.compile(r'name="guard" value="(\w+)"')
KEY = re.compile(r'name="key" value="([\w-]+)"')
ARRIVAL = 0.2  # seconds between two visitors
Times = dict[str, list[float]]
QUESTIONS = (
    "SELECT COUNT(*) AS people FROM salaries WHERE salary > {n}000",
    "SELECT AVG(salary) AS pay FROM salaries WHERE years < {n}",
    "SELECT department, COUNT(*) AS people FROM salaries WHERE years < {n} GROUP BY department",
)


async def visit(
    address: str, number: int, until: float, thought: float, times: dict[str, list[float]]
) -> None:
    """Be one visitor until the time is over."""
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        turn = 0
        await asyncio.sleep(number * ARRIVAL)
        while time.monotonic() < until:
            question = QUESTIONS[turn % len(QUESTIONS)].format(n=10 + turn + number)
            page = None
            for epsilon in ("0.45", "0.5"):
                began = time.monotonic()
                page = await client.get(
                    "/explorer", params={"question": question, "epsilon": epsilon}
                )
                times["price"].append(time.monotonic() - began)
                page.raise_for_status()
                await asyncio.sleep(thought)
            assert page is not None
            form = {"guard": GUARD.search(page.text)[1], "key": KEY.search(page.text)[1]}  # type: ignore[index]
            is_over = "This does not fit any more" in page.text
            path = "/explorer/start-over" if is_over else "/explorer/ask"
            began = time.monotonic()
            found = await client.post(
                path, data={**form, "question": question, "epsilon": "0.5"},
                headers={"Origin": address}, follow_redirects=True,
            )  # fmt: skip
            times["start over" if is_over else "answer"].append(time.monotonic() - began)
            found.raise_for_status()
            turn += 1
            await asyncio.sleep(thought)


async def crowd(
    address: str, visitors: int, seconds: float, thought: float
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"price": [], "answer": [], "start over": []}
    until = time.monotonic() + seconds
    await asyncio.gather(*(visit(address, one, until, thought, times) for one in range(visitors)))
    return times


def served(workers: int) -> tuple[subprocess.Popen[bytes], str]:
    """Start the demo, and wait until it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "discreet", "serve", "--demo", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return process, address
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("the gateway did not start")


def summary(found: list[float]) -> dict[str, float]:
    cuts = (
        statistics.quantiles(found, n=100)
        if len(found) > 1
        else [found[0]] * 99
        if found
        else [0.0] * 99
    )
    return {
        "requests": len(found),
        "p50_ms": round(1000 * cuts[49], 1),
        "p95_ms": round(1000 * cuts[94], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument(
        "--thought", type=float, default=2.0, help="seconds between two requests of a visitor"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "explorer.json"
    )
    told = parser.parse_args()
    process, address = served(told.workers)
    try:
        times = asyncio.run(crowd(address, told.visitors, told.seconds, told.thought))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    document = {
        "command": " ".join(["python benchmarks/explorer.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "results": {name: summary(found) for name, found in times.items()},
    }
    told.out.parent.mkdir(exist_ok=True)
    told.out.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
