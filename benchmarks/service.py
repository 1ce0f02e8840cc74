"""The gateway beside what it stands on: the tables in this process, and a bare server.

    python benchmarks/service.py            # about three minutes on two cores
    python benchmarks/service.py --quick

Newly charged questions go to a gateway of one worker over 32 connections, and to the same tables in
this process from 32 threads: each is charged durably, answered and recorded. Above them is what the
ledger alone does, where nobody asks anything. Questions that are asked again are compared with a
Starlette application that says hello. All in one run, on one machine; the client takes part of it
in both cases.
"""

import argparse
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from discreet import datasets
from discreet.accounting import PureLoss
from discreet.ledger import Ledger
from discreet.service import Records, Role, create

CONNECTIONS: Final = 32
ROWS: Final = 10_000
QUESTION: Final = "SELECT COUNT(*) AS n FROM people WHERE income > {number}"
LOSS: Final = PureLoss(epsilon=Fraction(1, 10**6))
HELLO: Final = """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def hello(request):
    return PlainTextResponse("hello")

app = Starlette(routes=[Route("/", hello)])
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a load came to: requests a second, and how long one took."""

    rate: float
    p50: float
    p99: float

    def line(self, name: str, beside: "Load | None" = None) -> str:
        ratio = "" if beside is None else f"{self.rate / beside.rate:6.2f} x"
        return (
            f"{name:44} {self.rate:9,.0f}/s {ratio:9} p50 {1e3 * self.p50:7.1f} ms   "
            f"p99 {1e3 * self.p99:7.1f} ms"
        )


def measured(times: list[float], seconds: float) -> Load:
    return Load(
        rate=len(times) / seconds,
        p50=float(np.quantile(times, 0.5)),
        p99=float(np.quantile(times, 0.99)),
    )


# Clients -------------------------------------------------------------------------------------


def flooded(port: int, request: Callable[[int], bytes], *, seconds: float) -> Load:
    """Keep 32 connections busy with one request each, from one thread and without a library."""
    chooser = selectors.DefaultSelector()
    began = {}
    number, times = 0, []
    for _ in range(CONNECTIONS):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chooser.register(one, selectors.EVENT_READ, bytearray())
        began[one] = time.perf_counter()
        one.sendall(request(number))
        number += 1
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for key, _ in chooser.select(1):
            connection, seen = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            seen += connection.recv(1 << 16)
            head = seen.find(b"\r\n\r\n")
            if head < 0:
                continue
            assert seen.startswith(b"HTTP/1.1 200"), bytes(seen)
            at = seen.lower().find(b"content-length:")
            length = int(seen[at + 15 : seen.find(b"\r", at)])
            if len(seen) < head + 4 + length:
                continue
            seen.clear()
            now = time.perf_counter()
            times.append(now - began[connection])
            began[connection] = now
            connection.sendall(request(number))
            number += 1
    elapsed = time.perf_counter() - start
    for one in began:
        one.close()
    return measured(times, elapsed)


def in_threads(work: Callable[[int], Any], *, seconds: float) -> Load:
    """Do work in 32 threads for some time."""
    times: list[float] = []
    numbers, lock = iter(range(10**9)), threading.Lock()
    stop = time.perf_counter() + seconds

    def run(_: int) -> None:
        while time.perf_counter() < stop:
            with lock:
                number = next(numbers)
            began = time.perf_counter()
            work(number)
            times.append(time.perf_counter() - began)

    start = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as crowd:
        list(crowd.map(run, range(CONNECTIONS)))
    return measured(times, time.perf_counter() - start)


# Servers -------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def server(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """Run a server until the end of the block."""
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def site(folder: Path) -> str:
    """Protect a table and set up a gateway; return an analyst's key."""
    pq.write_table(pa.table(datasets.census(ROWS, seed=1)), folder / "people.parquet")
    with Ledger.open(folder / "budget.db") as ledger, opened(folder, ledger) as tables:
        tables.save(folder / "people.toml")
    with Records.open(f"{folder / 'budget.db'}.gateway") as records:
        return create(records, who="ana", roles=[Role.ANALYST])[1]


def opened(folder: Path, ledger: Ledger) -> discreet.Protected:
    return discreet.protect(
        folder / "people.parquet",
        name="people",
        unit="person_id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=100, delta=1e-6),
        ledger=ledger,
        columns={"income": {"bounds": (0, 100_000)}},
    )


def gateway(folder: Path, *, answer_after: float, port: int) -> list[str]:
    settings = {
        "ledger": "budget.db",
        "datasets": ["people.toml"],
        "answer_after": answer_after,
        "slots": 4 if answer_after == 0 else CONNECTIONS,
        "waiting": 1000,
        "requests_per_minute": 10**9,
    }
    config = folder / "gateway.toml"
    config.write_text("".join(f"{name} = {json.dumps(one)}\n" for name, one in settings.items()))
    program = [sys.executable, "-m", "discreet", "serve", "--config", str(config)]
    return [*program, "--port", str(port)]


def request(key: str, question: str, *, epsilon: float = 1e-4) -> bytes:
    body = json.dumps({"question": question, "epsilon": epsilon}).encode()
    head = (
        "POST /v1/datasets/people/query HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds for each row")
    seconds = 4.0 if parser.parse_args().quick else 20.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        key = site(folder)
        print(
            f"{CONNECTIONS} connections or threads, {os.cpu_count()} cores, {seconds:g} s a row\n"
        )
        offset = iter(range(0, 10**9, 10**6))

        def fresh() -> Callable[[int], str]:
            first = next(offset)
            return lambda number: QUESTION.format(number=first + number)

        with Ledger.open(folder / "budget.db") as ledger, opened(folder, ledger) as tables:
            ask = fresh()
            tables.sql(ask(10**5), epsilon=1e-4)
            inside = in_threads(
                lambda number: tables.sql(ask(number), epsilon=1e-4), seconds=seconds
            )
            account = tables.account
            alone = in_threads(
                lambda _: account.charge(LOSS, who="ana", purpose="analysis"),
                seconds=seconds,
            )
        print(alone.line("charges alone, in this process"))
        print(inside.line("newly charged, in this process", alone))
        port = free_port()
        with server(gateway(folder, answer_after=0, port=port), port, folder):
            ask = fresh()
            over = flooded(port, lambda number: request(key, ask(number)), seconds=seconds)
            print(over.line("newly charged, over HTTP", inside))
            same = request(key, "SELECT COUNT(*) AS n FROM people")
            again = flooded(port, lambda _: same, seconds=seconds)
        port = free_port()
        (folder / "hello.py").write_text(HELLO)
        command = [sys.executable, "-m", "uvicorn", "hello:app", "--port", str(port)]
        with server([*command, "--no-access-log", "--log-level", "error"], port, folder):
            hello = flooded(port, lambda _: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", seconds=seconds)
        print(hello.line("Starlette says hello"))
        print(again.line("asked again, over HTTP", hello))
        port = free_port()
        with server(gateway(folder, answer_after=1, port=port), port, folder):
            ask = fresh()
            padded = flooded(port, lambda number: request(key, ask(number)), seconds=seconds)
            print(padded.line("newly charged, answered after 1 s, 32 slots"))


if __name__ == "__main__":
    main()
