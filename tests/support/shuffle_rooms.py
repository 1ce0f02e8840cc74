"""A collection, its shuffler and its analyser in a folder, and envelopes of known senders."""

import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from discreet.ledger import Ledger
from discreet.local import DirectResponse
from discreet.local.wire import Parameters, encode, parameters_of
from discreet.privacy import Guarantee, Unit
from discreet.shuffle import (
    Analyser,
    AnalyserSettings,
    Arrival,
    Envelopes,
    SealingKey,
    Shuffler,
    ShufflerSettings,
    read_batch,
    read_vouching_key,
)

LAW = DirectResponse(domain=4, epsilon=1)


def collection(law=LAW) -> Parameters:
    return parameters_of(law, name="tea", a_day=law.epsilon, lifetime=1000)


def sealed(parameters: Parameters, values, *, key: SealingKey) -> list[bytes]:
    reports = encode(parameters, parameters.randomiser.release(values))
    return [Envelopes.of(parameters).seal(one, key=key) for one in reports]


def in_batch(raw: bytes, shuffler: str) -> list[bytes]:
    batch = read_batch(raw, key=read_vouching_key(shuffler))
    step = batch.facts.length
    return [batch.body[start : start + step] for start in range(0, len(batch.body), step)]


@dataclass
class Rooms:
    """Where everything lies; nothing is open."""

    folder: Path
    parameters: Parameters
    key: SealingKey
    shuffler_key: str
    analyser_token: str
    tokens: list[str]

    @classmethod
    def make(cls, folder: Path, *, senders: int = 10, minimum: int = 5, law=LAW, **options):
        parameters = collection(law)
        assumed = {"honest": 1, "delta": 1e-8}
        with Analyser.make(
            folder / "analyser.db",
            AnalyserSettings(parameters=parameters, minimum=minimum, **assumed),
        ) as analyser:
            key = analyser.key
        settings = ShufflerSettings(parameters=parameters, analyser=key, minimum=minimum, **options)
        with Shuffler.make(folder / "shuffler.db", settings) as shuffler:
            rooms = cls(
                folder,
                parameters,
                key,
                shuffler.key,
                shuffler.analyser_token(),
                shuffler.admit(senders),
            )
        with Ledger.open(folder / "budget.db") as ledger:
            ledger.create(
                "tea",
                unit=Unit.record(),
                neighbours="replace_one",
                guarantee=Guarantee(epsilon=1000, delta=1e-4),
            )
        return rooms

    def shuffler(self) -> Shuffler:
        return Shuffler.open(self.folder / "shuffler.db")

    def analyser(self) -> Analyser:
        return Analyser.open(self.folder / "analyser.db")

    def ledger(self) -> Ledger:
        return Ledger.open(self.folder / "budget.db", create=False)

    def arrivals(self, senders: int, *, first: int = 0, value: int = 1) -> list[Arrival]:
        envelopes = sealed(self.parameters, [value] * senders, key=self.key)
        return list(map(Arrival, self.tokens[first : first + senders], envelopes))

    def open_all(self) -> Analyser:
        """Take every batch, pay and open it; the analyser stays open."""
        analyser = self.analyser()
        with self.shuffler() as shuffler, self.ledger() as ledger:
            while (raw := shuffler.next()) is not None:
                shuffler.taken(analyser.keep(raw, shuffler=self.shuffler_key))
            analyser.open_kept(ledger["tea"], who="ana")
        return analyser


def counted(verdicts) -> dict[str, int]:
    return {verdict.value: n for verdict, n in Counter(verdicts).items()}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


class Process:
    """A command of discreet in a process of its own, to be killed and started again."""

    def __init__(self, *args: object, environment: dict[str, str] | None = None) -> None:
        self._args = [sys.executable, "-m", "discreet", *map(str, args)]
        self._environment = environment
        self._running: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._running = subprocess.Popen(
            self._args,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self) -> None:
        self._running.kill()
        self.wait()

    def wait(self, timeout: float = 1200) -> tuple[int, str]:
        said, _ = self._running.communicate(timeout=timeout)
        return self._running.returncode, said


@contextmanager
def serving(rooms: Rooms, port: int):
    process = Process("shuffle", "serve", rooms.folder / "shuffler.db", "--port", port)
    process.start()
    try:
        await_answer(port)
        yield process
    finally:
        process.kill()


def await_answer(port: int) -> None:
    deadline = time.monotonic() + 600
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/v1/shuffler")
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the shuffler never answered"
            time.sleep(0.05)
        else:
            return
