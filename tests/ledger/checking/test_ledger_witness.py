"""A witness cosigns what continues its memory, and nothing else, whoever asks at once."""

import base64
import json
import multiprocessing
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import LedgerError, LedgerUnavailable, ParameterError, TamperingFound
from discreet.ledger import Witness, WitnessRequest
from discreet.ledger.checking import witness as witness_module
from discreet.ledger.log import keys as _keys
from discreet.ledger.log import tree as _tree
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.verifier import NotProven, check_cosignatures, leaf_hash, rotation_text

ORIGIN = "example.com/ledger"


class Log:
    """A log that grows, and can be forked by copying what it holds."""

    def __init__(self, size=0, key=None, bodies=()):
        self.key = key or SigningKey.generate(ORIGIN)
        self.rows, self.bodies, self.frontiers = [], [], [b""]
        for body in bodies:
            self.append(body)
        while len(self.bodies) < size:
            self.append(json.dumps({"index": len(self.bodies), "kind": "charge"}))

    def append(self, body):
        hashes, frontier = _tree.append(
            self.frontiers[-1], len(self.bodies), leaf_hash(body.encode())
        )
        self.bodies.append(body)
        self.rows.append(hashes)
        self.frontiers.append(frontier)

    def node(self, level, k):
        return self.rows[((k + 1) << level) - 1][32 * level : 32 * (level + 1)]

    def note(self, size=None):
        size = len(self.bodies) if size is None else size
        return sign_checkpoint(self.key, size, _tree.root(self.frontiers[size]))

    def grown(self, old, new=None):
        return _tree.consistency(old, len(self.bodies) if new is None else new, self.node)

    def rotate(self):
        new, index = self.key.rotated(), len(self.bodies)
        told = rotation_text(ORIGIN, index, new.vkey)
        by_old, by_new = (base64.b64encode(k.sign(told)).decode() for k in (self.key, new))
        entry = {"index": index, "kind": "rotate", "vkey": new.vkey}
        self.append(json.dumps(entry | {"by_old": by_old, "by_new": by_new}))
        self.key = new
        return index

    def shown(self, index):
        proof = _tree.inclusion(index, len(self.bodies), self.node)
        hashes = [base64.b64encode(item).decode() for item in proof]
        return {"index": index, "body": self.bodies[index], "proof": hashes}


@pytest.fixture
def witness(tmp_path):
    return Witness.create(tmp_path / "w1", name="witness.example/w1")


def memory_of(witness):
    return {file.name: file.read_bytes() for file in (witness._folder / "logs").iterdir()}


def test_a_log_that_only_grows_is_cosigned_each_time(witness):
    log = Log(40)
    witness.cosign(log.note(0), [], vkey=log.key.vkey, now=100)
    for old, new in [(0, 3), (3, 3), (3, 4), (4, 39), (39, 40)]:
        note = log.note(new)
        line = witness.cosign(note, log.grown(old, new), now=100 + new)
        assert check_cosignatures(note + line, [witness.vkey]) == (
            ("witness.example/w1", 100 + new),
        )
        assert witness.last(ORIGIN).size == new
        assert Witness.open(witness._folder).last(ORIGIN) == witness.last(ORIGIN)
    assert witness.origins() == (ORIGIN,)


def test_rollback_fork_and_rewriting_are_refused_and_the_memory_stays(witness):
    log = Log(20)
    witness.cosign(log.note(), [], vkey=log.key.vkey)
    before = memory_of(witness)

    with pytest.raises(TamperingFound, match=r"20 entries .* shows 19"):
        witness.cosign(log.note(19), [])
    fork = Log(key=log.key, bodies=[*log.bodies[:-1], '{"index":19,"kind":"grant"}'])
    with pytest.raises(TamperingFound, match="two different histories"):
        witness.cosign(fork.note(), [])
    continued = Log(25, key=log.key, bodies=fork.bodies)
    with pytest.raises(TamperingFound, match="does not continue"):
        witness.cosign(continued.note(), continued.grown(20))
    honest = Log(25, key=log.key, bodies=log.bodies)
    for proof in ([], honest.grown(19), [*honest.grown(20), bytes(32)], honest.grown(20)[::-1]):
        with pytest.raises(TamperingFound, match="does not continue"):
            witness.cosign(honest.note(), proof)
    with pytest.raises(NotProven, match="must start from 20"):
        witness.cosign(honest.note(), honest.grown(19), old=19)

    assert memory_of(witness) == before
    assert witness.cosign(honest.note(), honest.grown(20), old=20)


def test_only_the_known_key_counts(witness):
    log, stranger = Log(5), SigningKey.generate(ORIGIN)
    with pytest.raises(NotProven, match="does not know"):
        witness.cosign(log.note(), [])
    with pytest.raises(NotProven, match="not signed"):
        witness.cosign(log.note(), [], vkey=stranger.vkey)
    with pytest.raises(NotProven, match="from size 0"):
        witness.cosign(log.note(), log.grown(3), vkey=log.key.vkey)
    with pytest.raises(NotProven, match="from size 0"):
        witness.cosign(log.note(), [], vkey=log.key.vkey, old=3)
    assert witness.last(ORIGIN) is None
    witness.cosign(log.note(), [], vkey=log.key.vkey)
    with pytest.raises(NotProven, match="another key"):
        witness.cosign(log.note(), [], vkey=stranger.vkey)
    forged = Log(key=stranger, bodies=log.bodies)
    with pytest.raises(NotProven, match="not signed"):
        witness.cosign(forged.note(), [])


def test_a_rotated_key_is_followed_and_the_old_one_forgotten(witness):
    log = Log(5)
    first = log.key
    witness.cosign(log.note(), [], vkey=first.vkey)
    rotation = log.rotate()
    with pytest.raises(NotProven, match="not signed"):
        witness.cosign(log.note(), log.grown(5))
    witness.cosign(log.note(), log.grown(5), rotations=[log.shown(rotation)])
    witness.cosign(log.note(), [], vkey=first.vkey)  # the key one has from the beginning still does
    old_again = Log(8, key=first, bodies=log.bodies)
    with pytest.raises(NotProven, match="not signed"):
        witness.cosign(old_again.note(), old_again.grown(6))
    again = log.rotate()
    rotations = [log.shown(rotation), log.shown(again)]
    witness.cosign(log.note(), log.grown(6), rotations=rotations)
    stranger = Log(10, key=SigningKey.generate(ORIGIN), bodies=log.bodies)
    stranger.rotate()
    with pytest.raises(NotProven, match="does not lead"):
        witness.cosign(stranger.note(), stranger.grown(7), rotations=[stranger.shown(10)])


def test_time_never_runs_backwards(witness):
    log = Log(5)
    witness.cosign(log.note(3), [], vkey=log.key.vkey, now=1000)
    line = witness.cosign(log.note(5), log.grown(3), now=10)
    assert check_cosignatures(log.note(5) + line, [witness.vkey])[0].time == 1000
    with pytest.raises(ParameterError):
        witness.cosign(log.note(5), [], now=2**63)
    assert witness.cosign(log.note(5), [], now=1001)


def test_logs_of_several_names_do_not_mix(witness):
    logs = [Log(n, key=SigningKey.generate(f"example.com/{n}")) for n in range(1, 4)]
    for log in logs:
        witness.cosign(log.note(), [], vkey=log.key.vkey)
    assert [witness.last(f"example.com/{n}").size for n in range(1, 4)] == [1, 2, 3]
    assert witness.origins() == ("example.com/1", "example.com/2", "example.com/3")


def test_nothing_is_signed_unless_it_is_remembered(witness, monkeypatch):
    log = Log(5)
    witness.cosign(log.note(3), [], vkey=log.key.vkey)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_keys.os, "fsync", full)
    with pytest.raises(LedgerUnavailable):
        witness.cosign(log.note(5), log.grown(3))
    monkeypatch.undo()
    assert witness.last(ORIGIN).size == 3
    assert witness.cosign(log.note(5), log.grown(3))


def test_an_altered_memory_is_not_believed(witness):
    log = Log(5)
    witness.cosign(log.note(), [], vkey=log.key.vkey)
    (file,) = (witness._folder / "logs").iterdir()
    good = json.loads(file.read_text())
    stranger = Log(4)
    for bad in [
        "",
        "[]",
        "{}",
        good | {"format": "x"},
        good | {"time": "now"},
        good | {"vkeys": []},
        good | {"note": stranger.note()},
        good | {"vkeys": [stranger.key.vkey]},
        good | {"extra": 1},
    ]:
        file.write_text(bad if isinstance(bad, str) else json.dumps(bad))
        with pytest.raises(TamperingFound, match="not what this witness wrote"):
            witness.cosign(log.note(), [], vkey=log.key.vkey)


def test_a_folder_holds_one_witness_that_can_be_opened(tmp_path):
    made = Witness.create(tmp_path / "deep" / "w1", name="w1")
    assert (tmp_path / "deep" / "w1" / "witness.pub").read_text() == made.vkey + "\n"
    assert Witness.open(tmp_path / "deep" / "w1").vkey == made.vkey
    with pytest.raises(LedgerError, match="exists already"):
        Witness.create(tmp_path / "deep" / "w1", name="w1")
    assert Witness.open(tmp_path / "deep" / "w1").vkey == made.vkey
    with pytest.raises(LedgerUnavailable):
        Witness.open(tmp_path / "nowhere")
    with pytest.raises(ParameterError):
        Witness.create(tmp_path / "w2", name="a b")
    assert not (tmp_path / "w2").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnavailable):
        Witness.create(tmp_path / "file" / "w3", name="w3")
    (tmp_path / "deep" / "w1" / "logs").rmdir()
    with pytest.raises(LedgerError, match="memory"):
        Witness.open(tmp_path / "deep" / "w1")


# --- many at once ---


def test_threads_cannot_take_the_memory_back(witness, monkeypatch):
    """Of all lines handed out, later ones are never about smaller trees."""
    log = Log(30)
    witness.cosign(log.note(1), [], vkey=log.key.vkey)
    written = []
    remember = Witness._remember

    def watched(self, origin, memory):
        remember(self, origin, memory)
        written.append(int(memory.note.split("\n")[1]))

    monkeypatch.setattr(Witness, "_remember", watched)

    def ask(sizes):
        for size in sizes:
            last = witness.last(ORIGIN).size
            if size > last:
                try:
                    witness.cosign(log.note(size), log.grown(last, size))
                except TamperingFound:
                    continue  # somebody was faster

    threads = [threading.Thread(target=ask, args=(range(n, 31, 3),)) for n in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert written
    assert written == sorted(written)


def _ask_for_a_fork(folder, bodies, key_file, start, answers):
    log = Log(key=SigningKey.load(key_file), bodies=bodies)
    witness = Witness.open(folder)
    start.wait()
    try:
        answers.put(witness.cosign(log.note(), log.grown(3)))
    except TamperingFound:
        answers.put(None)


@pytest.mark.lengthy
@pytest.mark.skipif(os.name != "posix", reason="uses fork")
def test_of_two_forks_shown_by_two_processes_at_once_one_is_cosigned(witness, tmp_path):
    context = multiprocessing.get_context("spawn")
    log = Log(3)
    log.key.save(tmp_path / "log.key")
    witness.cosign(log.note(), [], vkey=log.key.vkey)
    start, answers = context.Event(), context.Queue()
    workers = []
    for name in ("one", "two"):
        bodies = [*log.bodies, json.dumps({"index": 3, "kind": name})]
        arguments = (witness._folder, bodies, tmp_path / "log.key", start, answers)
        workers.append(context.Process(target=_ask_for_a_fork, args=arguments))
        workers[-1].start()
    start.set()
    lines = [answers.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(line is not None for line in lines) == 1
    assert witness.last(ORIGIN).size == 4


def test_the_lock_is_held_from_looking_to_remembering(witness, monkeypatch):
    log, steps = Log(3), []
    lock, remember = witness_module._lock, Witness._remember
    monkeypatch.setattr(
        witness_module, "_lock", lambda handle: (steps.append("lock"), lock(handle))
    )

    def remembered(self, origin):
        steps.append("look")

    monkeypatch.setattr(Witness, "_remembered", remembered)
    monkeypatch.setattr(Witness, "_remember", lambda *a: (steps.append("remember"), remember(*a)))
    witness.cosign(log.note(), [], vkey=log.key.vkey)
    assert steps == ["lock", "look", "remember"]


# --- requests by mail ---


@settings(max_examples=50)
@given(st.integers(1, 60), st.data())
def test_a_request_arrives_as_it_was_sent(size, data):
    old = data.draw(st.integers(0, size))
    log = LONG
    sent = str(WitnessRequest(old, log.grown(old, size), log.note(size)))
    whole = WitnessRequest(old, tuple(log.grown(old, size)), log.note(size))
    assert WitnessRequest.parse(sent) == whole


LONG = Log(60)


def test_a_request_is_written_as_specified():
    a, b = leaf_hash(b"a"), leaf_hash(b"b")
    text = str(WitnessRequest(12, [a, b], LONG.note(20)))
    lines = text.split("\n")
    assert lines[0] == "old 12"
    assert [base64.b64decode(line) for line in lines[1:3]] == [a, b]
    assert lines[3:5] == ["", ORIGIN]
    assert str(WitnessRequest(0, [], LONG.note(20))) == f"old 0\n\n{LONG.note(20)}"


def test_requests_that_are_none_are_refused():
    good = str(WitnessRequest(12, LONG.grown(12, 20), LONG.note(20)))
    line = good.split("\n")[1]
    for bad in [
        "",
        good.replace("old 12", "old 012"),
        good.replace("old 12", "old -12"),
        good.replace("old 12", f"old {2**63}"),
        good.replace("old 12", "old 12 "),
        good.replace("old 12", "Old 12"),
        good.replace("old 12", "old １２"),  # noqa: RUF001
        good.replace("\n\n", "\n"),
        good.replace(line, line[:-1]),
        good.replace(line, line[:-2] + chr(ord(line[-2]) + 1) + "="),
        good.replace(line, line + "\r"),
        good.replace(line, "AAAA"),
        str(WitnessRequest(12, [bytes(32)] * 64, LONG.note(20))),
    ]:
        with pytest.raises(NotProven):
            WitnessRequest.parse(bad)
    longest = str(WitnessRequest(12, [bytes(32)] * 63, LONG.note(20)))
    assert len(WitnessRequest.parse(longest).consistency) == 63
