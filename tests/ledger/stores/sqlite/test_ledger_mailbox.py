import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.sqlite import mailbox as _mailbox
from discreet.ledger.stores.sqlite.futex import Sleeper
from discreet.ledger.stores.sqlite.mailbox import AREA, SLOTS, Mailbox

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no mailbox on Windows")

LONG = 20.0  # seconds after which something that should happen will not


def upper(requests):
    return [request.upper() for request in requests]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "ledger.db"
    path.touch()
    return path


def make(database):
    """Open a mailbox that has a slot already."""
    box = Mailbox(database)
    box.commit_together([], upper)
    return box


def posted(box):
    page = box._page
    return page[_mailbox._POSTED :][:SLOTS] != page[_mailbox._DONE :][:SLOTS]


def wait_until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@contextmanager
def held(box, transact=upper):
    """Keep the lock in another thread, inside a transaction; give the list of all batches."""
    entered, leave, batches = threading.Event(), threading.Event(), []

    def work(requests):
        batches.append(list(requests))
        if len(batches) == 1:
            entered.set()
            assert leave.wait(LONG)
        return transact(requests)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(box.commit_together, [b"holder"], work)
        try:
            assert entered.wait(LONG)
            yield batches
        finally:
            leave.set()
        assert done.result(LONG) == [b"HOLDER"]


class Waiting:
    """A combine in another thread, expected to post and sleep."""

    def __init__(self, box, requests, transact):
        self.batches = []

        def work(given):
            self.batches.append(list(given))
            return transact(given)

        self._pool = ThreadPoolExecutor(1)
        self._result = self._pool.submit(box.commit_together, requests, work)

    def result(self):
        try:
            return self._result.result(LONG)
        finally:
            self._pool.shutdown()


def test_who_holds_the_lock_serves_those_who_wait(database):
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one) as batches:
            waiting = Waiting(two, [b"a", b"", b"b" * 5_000], upper)
            wait_until(lambda: posted(one))
        assert waiting.result() == [b"A", b"", b"B" * 5_000]
        assert batches == [[b"holder"], [b"a", b"", b"b" * 5_000]]
        assert waiting.batches == []


def test_all_who_wait_share_one_transaction(database):
    boxes = [make(database) for _ in range(9)]
    with held(boxes[0]) as batches:
        waiting = []
        for number, box in enumerate(boxes[1:]):
            waiting.append(Waiting(box, [b"%d" % number], upper))
            wait_until(lambda box=box: not box._is_done())
    assert [each.result() for each in waiting] == [[b"%d" % number] for number in range(8)]
    assert batches[0] == [b"holder"]
    assert sorted(batches[1]) == [b"%d" % number for number in range(8)]
    for box in boxes:
        box.close()


def test_one_transaction_takes_no_more_than_so_many(database, monkeypatch):
    monkeypatch.setattr(_mailbox, "MOST_REQUESTS", 5)
    boxes = [make(database) for _ in range(5)]
    with held(boxes[0]) as batches:
        waiting = []
        for box in boxes[1:]:
            waiting.append(Waiting(box, [b"a", b"b"], upper))
            wait_until(lambda box=box: not box._is_done())
        too_many = Waiting(Mailbox(database), [b"x"] * 6, upper)
    assert [each.result() for each in waiting] == [[b"A", b"B"]] * 4
    assert too_many.result() == [b"X"] * 6
    assert max(map(len, batches)) <= 5
    for box in boxes:
        box.close()


@pytest.mark.parametrize("size", [AREA - 100, AREA, 3 * AREA])
def test_requests_and_answers_of_any_size_arrive(database, size):
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one):
            waiting = Waiting(two, [b"x" * size], upper)
            time.sleep(0.01)
        assert waiting.result() == [b"X" * size]
        with held(
            one, lambda requests: [b"HOLDER" if r == b"holder" else r * size for r in requests]
        ):
            waiting = Waiting(two, [b"y"], lambda requests: [b"y" * size for _ in requests])
            wait_until(lambda: posted(one))
        assert waiting.result() == [b"y" * size]


@pytest.mark.parametrize("at", [0, 16, 20, 24, 28, 30])
def test_a_post_with_a_wrong_byte_is_left_to_its_owner(database, at):
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one) as batches:
            waiting = Waiting(two, [b"abcdefgh"], upper)
            wait_until(lambda: posted(one))
            place = _mailbox._PAGE + two._slot * 2 * AREA + at
            byte = os.pread(two._file, 1, place)
            os.pwrite(two._file, bytes([byte[0] ^ 0x41]), place)
        assert waiting.result() == [b"ABCDEFGH"]
        assert waiting.batches == [[b"abcdefgh"]]
        assert not any(b"abcdefgh" in batch for batch in batches)


def test_an_answer_to_somebody_else_is_not_believed(database):
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one):
            waiting = Waiting(two, [b"mine"], upper)
            wait_until(lambda: posted(one))
            two._write_area(two._slot, AREA, os.urandom(16), [b"forged"])
            os.pwrite(two._file, bytes([two._number]), _mailbox._DONE + two._slot)
        assert waiting.result() == [b"MINE"]
        assert waiting.batches == [[b"mine"]]


def test_a_poisonous_request_harms_only_who_asked(database):
    def work(requests):
        if b"poison" in requests:
            raise ZeroDivisionError
        return upper(requests)

    boxes = [make(database) for _ in range(3)]
    with held(boxes[0], work) as batches:
        good = Waiting(boxes[1], [b"good"], work)
        bad = Waiting(boxes[2], [b"poison"], work)
        wait_until(lambda: not boxes[1]._is_done() and not boxes[2]._is_done())
    assert good.result() == [b"GOOD"]
    with pytest.raises(ZeroDivisionError):
        bad.result()
    tried = [batch for batch in batches + good.batches + bad.batches if b"poison" in batch]
    assert len(tried) == 2  # by the holder, then by who asked, and not by others in between
    assert boxes[0].commit_together([b"next"], work) == [b"NEXT"]
    for box in boxes:
        box.close()


def test_own_requests_are_carried_out_when_a_joint_batch_fails(database):
    batches = []

    def work(requests):
        batches.append(list(requests))
        if b"poison" in requests:
            raise ZeroDivisionError
        return upper(requests)

    with closing(make(database)) as one, closing(make(database)) as two:
        two._post([b"poison"])
        assert one.commit_together([b"mine"], work) == [b"MINE"]
        assert one.commit_together([b"again"], work) == [b"AGAIN"]
    assert batches == [[b"mine", b"poison"], [b"mine"], [b"again"]]


def test_a_storage_that_fails_is_reported_and_posts_stay(database):
    def fail(requests):
        raise LedgerUnavailable("full")

    with closing(make(database)) as one, closing(make(database)) as two:
        ticket = two._post([b"theirs"])
        with pytest.raises(LedgerUnavailable):
            one.commit_together([b"mine"], fail)
        assert posted(one)
        assert one.commit_together([b"mine"], upper) == [b"MINE"]
        assert two._collect(ticket, 1) == [b"THEIRS"]


def test_serving_others_never_costs_the_own_answer(database):
    calls = []

    def fail_later(requests):
        calls.append(list(requests))
        if len(calls) == 1:
            two._post([b"late"])
            return upper(requests)
        raise LedgerUnavailable("full")

    with closing(make(database)) as one, closing(make(database)) as two:
        two._post([b"early"])
        assert one.commit_together([b"mine"], fail_later) == [b"MINE"]
        assert calls == [[b"mine", b"early"], [b"late"]]


def test_without_a_free_slot_one_waits_for_the_lock(database):
    with closing(make(database)) as one:
        os.pwrite(one._file, _mailbox._WORD.pack(os.getpid()) * SLOTS, _mailbox._PIDS)
        with closing(make(database)) as two:
            assert two._slot is None
            with held(one) as batches:
                waiting = Waiting(two, [b"late"], upper)
                time.sleep(0.02)
            assert waiting.result() == [b"LATE"]
            assert waiting.batches == [[b"late"]]
            assert batches == [[b"holder"]]


def test_slots_of_the_dead_and_of_the_closed_are_used_again(database):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(LONG)
    with closing(make(database)) as one:
        alive = _mailbox._WORD.pack(os.getpid()) * SLOTS
        os.pwrite(one._file, alive, _mailbox._PIDS)
        os.pwrite(one._file, _mailbox._WORD.pack(gone.pid), _mailbox._PIDS + 4 * 17)
        os.pwrite(one._file, b"\x07", _mailbox._POSTED + 17)  # it died waiting
        two = make(database)
        assert two._slot == 17
        assert not posted(two)
        two.close()
        with closing(make(database)) as three:
            assert three._slot == 17


def test_what_the_dead_left_is_forgotten_when_all_are_gone(database):
    box = make(database)
    box._post([b"of another time"])
    os.close(box._file)  # as if it had been killed
    box._file = -1
    box._slot = None
    box.close()
    batches = []
    with closing(Mailbox(database)) as later:
        later.commit_together(
            [b"now"], lambda requests: batches.append(requests) or upper(requests)
        )
    assert batches == [[b"now"]]


@pytest.mark.parametrize("content", [b"", b"something else entirely", os.urandom(100_000)])
def test_a_strange_file_in_its_place_is_no_obstacle(database, content):
    path = database.with_name("ledger.db-mailbox")
    path.write_bytes(content)
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one):
            waiting = Waiting(two, [b"a"], upper)
            wait_until(lambda: posted(one))
        assert waiting.result() == [b"A"]


def test_a_link_in_its_place_is_not_followed(database, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("keep")
    database.with_name("ledger.db-mailbox").symlink_to(precious)
    with closing(make(database)) as box:
        assert box._slot is None
        assert box.commit_together([b"a"], upper) == [b"A"]
    assert precious.read_text() == "keep"


def test_both_files_may_be_deleted(database):
    with closing(make(database)) as one:
        for name in ("ledger.db-mailbox", "ledger.db-lock"):
            database.with_name(name).unlink()
        with closing(make(database)) as two:
            assert (
                one.commit_together([b"a"], upper) == two.commit_together([b"a"], upper) == [b"A"]
            )


def test_the_files_are_for_those_who_may_write_the_database(database):
    database.chmod(0o660)
    with closing(make(database)):
        for name in ("ledger.db-mailbox", "ledger.db-lock"):
            assert database.with_name(name).stat().st_mode & 0o777 == 0o660


def test_without_a_futex_sleepers_queue_for_the_lock(database, monkeypatch):
    monkeypatch.setattr(Sleeper, "over", staticmethod(lambda page, place: None))
    with closing(make(database)) as one, closing(make(database)) as two:
        with held(one) as batches:
            waiting = Waiting(two, [b"a"], upper)
            wait_until(lambda: posted(one))
        assert waiting.result() == [b"A"]
        assert batches == [[b"holder"], [b"a"]]


@pytest.mark.parametrize("has_futex", [True, False])
def test_racing_threads_all_get_their_own_answers(database, monkeypatch, has_futex):
    if not has_futex:
        monkeypatch.setattr(Sleeper, "over", staticmethod(lambda page, place: None))
    busy = threading.Lock()

    def work(requests):
        assert busy.acquire(blocking=False)  # one at a time
        time.sleep(0.0003)
        busy.release()
        return upper(requests)

    def race(number):
        with closing(Mailbox(database)) as box:
            for turn in range(60):
                request = b"%d-%d-x" % (number, turn)
                assert box.commit_together([request], work) == [request.upper()]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(race, range(8)))


def test_ctrl_c_while_waiting_leaves_all_in_order(database):
    script = """
import signal, sys
from pathlib import Path
from discreet.ledger.stores.sqlite.mailbox import Mailbox
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
box = Mailbox(Path(sys.argv[1]))
box.commit_together([], lambda requests: [])
print("ready", flush=True)
sys.stdin.readline()
try:
    box.commit_together([b"never"], lambda requests: [b"done"])
except KeyboardInterrupt:
    print("stopped", flush=True)
sys.stdin.readline()
print(box.commit_together([b"later"], lambda requests: [b"well"]), flush=True)
"""
    with closing(make(database)) as box:
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout.readline() == "ready\n"
        with held(box):
            child.stdin.write("go\n")
            child.stdin.flush()
            wait_until(lambda: posted(box))
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "stopped\n"
            assert not posted(box)
        out, _ = child.communicate("go\n", timeout=LONG)
        assert out == "[b'well']\n"
        assert child.returncode == 0


def test_a_child_keeps_neither_slot_nor_lock_of_its_parent(database):
    script = """
import os, sys, time
from pathlib import Path
from discreet.ledger.stores.sqlite.mailbox import Mailbox
box = Mailbox(Path(sys.argv[1]))
box.commit_together([], lambda requests: [])
def fork(requests):
    if os.fork() == 0:
        box.close()
        print("child", flush=True)
        sys.stdin.readline()
        os._exit(0)
    os.kill(os.getpid(), 9)
box.commit_together([b"x"], fork)
"""
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "child\n"
    child.wait(LONG)
    # The grandchild lives; the lock of its dead parent is free all the same.
    with closing(make(database)) as box:
        assert box.commit_together([b"a"], upper) == [b"A"]
    child.communicate("done\n")


def test_no_content_of_the_first_page_stops_anybody(database):
    with closing(make(database)) as one, closing(make(database)) as two:
        for _ in range(20):
            size = _mailbox._PAGE - _mailbox._TURN
            os.pwrite(one._file, os.urandom(size), _mailbox._TURN)
            assert one.commit_together([b"a"], upper) == [b"A"]
            with held(one):
                waiting = Waiting(two, [b"b"], upper)
            assert waiting.result() == [b"B"]
            with closing(make(database)) as three:
                assert three.commit_together([b"c"], upper) == [b"C"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=2_000), max_size=40), st.binary(min_size=16, max_size=16))
def test_whatever_is_written_is_read_again(tmp_path_factory, items, ticket):
    path = tmp_path_factory.getbasetemp() / "area.db"
    path.touch()
    with closing(make(path)) as box:
        fits = box._write_area(3, AREA, ticket, items)
        assert fits == (sum(4 + len(item) for item in items) <= AREA - 24)
        if fits:
            assert box._read_area(3, AREA) == (ticket, items)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a small disk")
def test_a_full_disk_never_kills(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]).returncode:
        pytest.skip("may not mount a small disk")
    try:
        database = place / "ledger.db"
        database.touch()
        with closing(make(database)) as one, closing(make(database)) as two:
            with pytest.raises(OSError, match="No space"):
                (place / "filler").write_bytes(bytes(1 << 20))
            with held(one):
                waiting = Waiting(two, [b"a" * 20_000], upper)
                time.sleep(0.02)
            assert waiting.result() == [b"A" * 20_000]
        database.with_name("ledger.db-mailbox").unlink()
        (place / "filler").write_bytes(bytes(60 << 10))
        with closing(make(database)) as one:
            assert one.commit_together([b"a"], upper) == [b"A"]
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
