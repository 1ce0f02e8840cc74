"""Does the ledger need libpq's pipeline mode itself, or would psycopg's pipelines do?

Charges a second, and processor time of the clients per charge, with 32 threads and with 8
processes, on a server started for the purpose. Runs of either kind alternate; only their ratios
mean much. docs/decisions/0008-postgres-wire.md has the figures.

    python benchmarks/postgres_wire.py [--rounds N] [--seconds S]
"""

import argparse
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from discreet.accounting import LaplaceLoss
from discreet.ledger import Ledger
from discreet.ledger.stores.postgres import address, posts, snapshot, store, values, wire
from discreet.ledger.stores.postgres.errors import ConnectionLost, ServerError
from discreet.privacy import Guarantee, Unit
from discreet.testing import PostgresServer

LOSS = LaplaceLoss(noise_multiplier=10**7)
CLIENTS = {"threads": (1, 32), "processes": (8, 1)}  # processes, and threads in each


class PsycopgSession:
    """The same questions by psycopg's own cursors, prepared statements and pipelines."""

    def __init__(self, connection: Any) -> None:
        import psycopg

        self._connection, self._error, self._raw = connection, psycopg.Error, psycopg.RawCursor
        connection.prepare_threshold = 0

    def ask(self, *questions: wire.BoundStatement) -> list[list[tuple[Any, ...]]]:
        try:
            if len(questions) == 1:
                cursors = [self._execute(*questions[0])]
            else:
                with self._connection.pipeline():
                    cursors = [self._execute(*question) for question in questions]
            return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
        except self._error as error:
            if error.sqlstate is None:
                raise ConnectionLost(str(error), sent=True) from None
            raise ServerError(error.sqlstate, str(error)) from None

    def _execute(self, statement: wire.Statement, parameters: Sequence[Any]) -> Any:
        given = list(parameters)
        if statement.name in ("turn", "lock", "holder"):  # the lock's number
            given[0] = int.from_bytes(given[0], signed=True)
        return self._raw(self._connection).execute(statement.sql, given or None, binary=True)

    def close(self) -> None:
        self._connection.close()

    closed_on_error = wire.Session.closed_on_error

    @property
    def is_usable(self) -> bool:
        return not self._connection.closed


def use_psycopg() -> None:
    """Let the store speak through psycopg, which writes values itself."""
    plain: dict[str, Callable[[Any], Any]] = {
        "number": lambda value: value,
        "text": lambda value: value,
        "numbers": list,
        "texts": list,
        "values": list,
    }
    for module in (store, snapshot, posts):
        for name, function in plain.items():
            if getattr(module, name, None) is getattr(values, name):
                setattr(module, name, function)
    setattr(address, "Session", PsycopgSession)  # noqa: B010  # where the store takes it from


def client(
    kind: str, place: tuple[str, str], threads: int, seconds: float, gate: Any, told: Any
) -> None:
    url, key = place
    if kind == "psycopg":
        use_psycopg()
    with Ledger.open(url, key=key) as ledger:
        account, counts = ledger["people"], [0] * threads

        def charge(number: int, until: float) -> None:
            while time.monotonic() < until:
                account.charge(LOSS, who="ana", purpose="bench")
                counts[number] += 1

        gate.wait()
        start, until = time.process_time(), time.monotonic() + seconds
        running = [threading.Thread(target=charge, args=(n, until)) for n in range(threads)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        told.put((sum(counts), time.process_time() - start))


def measure(kind: str, mode: str, url: str, key: str, seconds: float) -> tuple[float, float]:
    """Return charges a second, and microseconds of the processor for each."""
    with Ledger.open(url, key=key) as ledger:
        ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=10, delta=1e-6),
        )
    spawning, (processes, threads) = multiprocessing.get_context("spawn"), CLIENTS[mode]
    gate, told = spawning.Barrier(processes), spawning.Queue()
    running = [
        spawning.Process(target=client, args=(kind, (url, key), threads, seconds, gate, told))
        for _ in range(processes)
    ]
    for each in running:
        each.start()
    found = [told.get(timeout=seconds + 120) for _ in running]
    for each in running:
        each.join()
    charges = sum(count for count, _ in found)
    return charges / seconds, sum(cpu for _, cpu in found) / charges * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    with PostgresServer() as server, tempfile.TemporaryDirectory() as folder:
        for mode in CLIENTS:
            rounds = []
            for turn in range(options.rounds):
                kinds = ("libpq", "psycopg") if turn % 2 else ("psycopg", "libpq")
                found = {
                    kind: measure(
                        kind,
                        mode,
                        server.new_database(),
                        f"{folder}/{mode}{turn}{kind}",
                        options.seconds,
                    )
                    for kind in kinds
                }
                rounds.append(found)
                for kind, (speed, cpu) in sorted(found.items()):
                    print(f"{mode:10} {kind:8} {speed:6.0f} charges/s {cpu:6.0f} us each")
            for what, place in (("charges/s", 0), ("processor time", 1)):
                ratios = [one["psycopg"][place] / one["libpq"][place] for one in rounds]
                print(f"{mode}: {what}, psycopg over libpq: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
