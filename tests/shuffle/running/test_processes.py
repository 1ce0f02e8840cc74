"""Devices, shuffler and analyser as processes of their own, over HTTP, killed and started again."""

import os
import random
import time
from collections import Counter
from threading import Thread

import pytest
from shuffle_crashes import reports_in
from shuffle_rooms import Process, Rooms, free_port, serving

from discreet.local.wire import encode
from discreet.shuffle import Arrival, Envelopes
from discreet.shuffle.running import deliver


def analysing(rooms: Rooms, port: int, *options: object) -> Process:
    environment = os.environ | {"DISCREET_SHUFFLE_TOKEN": rooms.analyser_token}
    return Process(
        *("shuffle", "analyse", rooms.folder / "analyser.db", "--account", "tea"),
        *("--shuffler", f"http://127.0.0.1:{port}", "--signed-by", rooms.shuffler_key),
        *("--ledger", rooms.folder / "budget.db", *options),
        environment=environment,
    )


def reports_of(rooms: Rooms, rounds: int) -> tuple[list[bytes], list[Arrival]]:
    """Return the reports of all senders, so many of each, and their envelopes."""
    law, senders = rooms.parameters.randomiser, rooms.tokens
    reports = encode(rooms.parameters, law.release([1] * rounds * len(senders)))
    envelopes = Envelopes.of(rooms.parameters)
    sealed = [envelopes.seal(one, key=rooms.key) for one in reports]
    return reports, [Arrival(senders[i % len(senders)], one) for i, one in enumerate(sealed)]


def until_kept(arrivals: list[Arrival], url: str, kept: list[int]) -> None:
    """Send, and send again what came too early for the next batch, as devices do."""
    for arrival in arrivals:
        while not deliver([arrival], url=url, patience=600).kept:
            time.sleep(0.02)
        kept.append(1)


def run(rooms: Rooms, rng: random.Random, *, rounds: int, kills: int) -> None:
    """Send all, kill both halves meanwhile, and see that every report is counted once."""
    reports, arrivals = reports_of(rooms, rounds)
    port, kept = free_port(), []
    url = f"http://127.0.0.1:{port}"
    with serving(rooms, port) as shuffler:
        analyser = analysing(rooms, port, "--seconds", "0.02")
        analyser.start()
        sender = Thread(target=until_kept, args=(arrivals, url, kept))
        sender.start()
        for _ in range(kills):
            # Wait until something was kept, so that a kill meets work.
            seen = len(kept)
            while sender.is_alive() and len(kept) < min(seen + 2, len(arrivals)):
                time.sleep(0.01)
            time.sleep(rng.random() * 0.3)
            victim = rng.choice([shuffler, analyser])
            victim.kill()
            victim.start()
        sender.join()
        assert len(kept) == len(arrivals)
        deadline = time.monotonic() + 1200
        while opened(rooms) < len(arrivals):
            assert time.monotonic() < deadline, "not everything was opened"
            time.sleep(0.1)
        analyser.kill()
    found, batches = reports_in(rooms)
    assert found == Counter(reports)
    with rooms.ledger() as ledger:
        ledger.verify()
        kinds = [one["kind"] for one in ledger.history("tea")]
        assert kinds.count("charge") == batches
    with rooms.analyser() as analyser:
        assert analyser.estimate().n == len(reports)


def opened(rooms: Rooms) -> int:
    with rooms.analyser() as analyser:
        return sum(one.accepted for one in analyser.opened)


@pytest.mark.lengthy
def test_killed_halves_go_on_and_every_report_is_counted_once(tmp_path):
    rooms = Rooms.make(tmp_path, senders=5, minimum=5, seconds=0.02)
    run(rooms, random.Random(1), rounds=3, kills=2)


@pytest.mark.slow
def test_halves_that_are_killed_again_and_again_lose_and_repeat_nothing(tmp_path):
    rng = random.Random(os.urandom(8))
    rooms = Rooms.make(tmp_path, senders=10, minimum=10, seconds=0.02)
    run(rooms, rng, rounds=30, kills=40)
