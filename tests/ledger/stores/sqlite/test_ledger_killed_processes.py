"""Processes that are killed lose nothing that they acknowledged."""

import subprocess
import sys
import textwrap
import time

import pytest
from ledger_crashes import check, found, kill_rounds, killed

from discreet.ledger import Ledger

pytestmark = pytest.mark.lengthy


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path, rng):
    found(tmp_path / "budget.db")
    kill_rounds(tmp_path / "budget.db", tmp_path / "budget.db.key", rng, rounds=20)


@pytest.mark.slow
def test_a_process_killed_200_times_loses_nothing(tmp_path, rng):
    found(tmp_path / "budget.db")
    kill_rounds(tmp_path / "budget.db", tmp_path / "budget.db.key", rng, rounds=200)


def test_a_killed_process_leaves_the_others_working(tmp_path, rng):
    """It may die while it holds the lock, and with requests of others in its hands."""
    place, key = tmp_path / "budget.db", tmp_path / "budget.db.key"
    found(place)
    with killed(place, key) as survivor, killed(place, key) as victim:
        survivor.start()
        for _ in range(6):
            victim.start()
            victim.hear(rng.randrange(10))
            time.sleep(rng.random() * 0.01)
            victim.kill()
            survivor.hear(20)
        survivor.kill()
        acknowledged = survivor.acknowledged + victim.acknowledged
        check(place, acknowledged, touched=survivor.touched + victim.touched, key=key)
        assert survivor.lost == []


def test_a_founding_that_was_killed_can_be_repeated(tmp_path, rng):
    """Whenever it was killed, the next one to come gets a sound ledger, and the right one."""
    code = """
        import sys, os
        from discreet.ledger import Ledger
        os.write(1, b"x")
        ledger = Ledger.open(sys.argv[1])
        os.write(1, b"y")
        ledger.close()
    """
    for number in range(6):
        place = tmp_path / f"{number}.db"
        command = [sys.executable, "-c", textwrap.dedent(code), str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            child.stdout.read(1)
            time.sleep(rng.random() * 0.03)
            child.kill()
            was_made = child.stdout.read() == b"y"
        with Ledger.open(place, create=not was_made) as ledger:
            assert ledger.verify().size == 1
