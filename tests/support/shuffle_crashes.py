"""A shuffler and an analyser to be killed at any statement, and what must be true afterwards."""

import multiprocessing
import os
import pickle
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from shuffle_rooms import Rooms, in_batch

from discreet.local.wire import encode
from discreet.shuffle import Arrival, Envelopes, read_batch, read_vouching_key
from discreet.shuffle.state.state_file import StateFile

KILLED = -signal.SIGKILL
ROUND = 5  # senders, all of whom a batch needs


def warm_processes() -> Any:
    """Return how to start processes that need not import everything anew."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["shuffle_crashes", "scipy.fft"])
    return context


def prepare(folder: Path, *, rounds: int = 2) -> Rooms:
    """Make rooms, and the same envelopes for every life of the processes in them."""
    rooms = Rooms.make(folder, senders=ROUND, minimum=ROUND)
    reports = encode(rooms.parameters, rooms.parameters.randomiser.release([1] * ROUND * rounds))
    envelopes = [Envelopes.of(rooms.parameters).seal(one, key=rooms.key) for one in reports]
    (folder / "sent.pickle").write_bytes(pickle.dumps((rooms, reports, envelopes)))
    return rooms


def prepared(folder: Path) -> tuple[Rooms, list[bytes], list[bytes]]:
    return pickle.loads((folder / "sent.pickle").read_bytes())


def live(folder: Path, fatal: int) -> None:
    """Send, release, take, pay and open until all is done, unless killed at a statement."""
    rooms, _, envelopes = prepared(folder)
    with (
        rooms.shuffler() as shuffler,
        rooms.analyser() as analyser,
        rooms.ledger() as ledger,
        (folder / "acknowledged").open("a", buffering=1) as told,
    ):
        fate = Fate(fatal)
        for one in (shuffler, analyser):
            fate.watch(one._state)
        for start in range(0, len(envelopes), ROUND):
            for place in range(start, start + ROUND):
                arrival = Arrival(rooms.tokens[place % ROUND], envelopes[place])
                assert shuffler.accept([arrival])[0] in ("waiting", "known")
                told.write(f"{place}\n")
            shuffler.release()
            while (raw := shuffler.next()) is not None:
                shuffler.taken(analyser.keep(raw, shuffler=rooms.shuffler_key))
            analyser.open_kept(ledger["tea"], who="ana")


class Fate:
    """Kills this process when one of its databases is about to run a statement."""

    def __init__(self, fatal: int) -> None:
        self._left = fatal

    def watch(self, state: StateFile) -> None:
        state._connection.set_trace_callback(self._count)

    def _count(self, _: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def check(folder: Path, *, is_done: bool = False) -> None:
    """What was acknowledged is somewhere, all once; batches are large enough, and paid once."""
    rooms, reports, _ = prepared(folder)
    acknowledged = {int(line) for line in (folder / "acknowledged").read_text().split()}
    found, opened = reports_in(rooms)
    assert max(found.values(), default=1) == 1
    assert {reports[place] for place in acknowledged} <= set(found)
    if is_done:
        assert set(found) == set(reports)
    with rooms.ledger() as ledger:
        entries = [one["kind"] for one in ledger.history("tea")]
    assert opened <= entries.count("charge") <= opened + (not is_done)


def reports_in(rooms: Rooms) -> tuple[Counter[bytes], int]:
    """Return the reports that wait, that are in batches and that were opened; and the opened."""
    envelopes = Envelopes.of(rooms.parameters)
    with rooms.shuffler() as shuffler, rooms.analyser() as analyser:
        raws = [raw for (raw,) in shuffler._state.rows("SELECT batch FROM batches")]
        sealed = [one for (one,) in shuffler._state.rows("SELECT envelope FROM waiting")]
        known = dict(analyser._state.rows("SELECT number, envelopes FROM batches"))
        for raw in raws:
            facts = read_batch(raw, key=read_vouching_key(rooms.shuffler_key)).facts
            assert facts.senders >= shuffler.settings.minimum
            if facts.number not in known:  # else it is on its way from one to the other
                sealed += in_batch(raw, rooms.shuffler_key)
        for body in known.values():
            step = envelopes.length
            sealed += [body[i : i + step] for i in range(0, len(body or b""), step)]
        assert [one.dropped for one in analyser.opened if one.dropped] == []  # none left twice
        opened = [envelopes.open(one, key=analyser._key) for one in sealed]
        return Counter([*opened, *analyser._reports()]), len(analyser.opened)
