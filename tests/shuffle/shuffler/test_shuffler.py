"""The shuffler: who counts, what is dropped, what leaves, and what is left of it."""

import os
import sqlite3

import numpy as np
import pytest
from shuffle_rooms import LAW, Rooms, counted, in_batch, sealed

from discreet.errors import ParameterError
from discreet.shuffle import Arrival, Envelopes, Verdict, read_batch, read_vouching_key
from discreet.shuffle.batches.batch import BatchFacts


def facts(raw: bytes, rooms: Rooms) -> BatchFacts:
    return read_batch(raw, key=read_vouching_key(rooms.shuffler_key)).facts


def test_a_batch_waits_for_its_minimum_of_senders_and_has_every_envelope_once(rooms):
    arrivals = rooms.arrivals(6)
    with rooms.shuffler() as shuffler:
        shuffler.accept(arrivals[:4])
        assert shuffler.release() is None
        assert shuffler.next() is None
        shuffler.accept(arrivals[4:])
        assert shuffler.waiting == (6, 6)
        assert shuffler.release() == 1
        assert shuffler.waiting == (0, 0)
        assert shuffler.release() is None
        raw = shuffler.next()
        assert shuffler.next() == raw  # until it is taken
        assert sorted(in_batch(raw, rooms.shuffler_key)) == sorted(one.envelope for one in arrivals)
        shuffler.taken(1)
        assert shuffler.next() is None


def test_one_sender_cannot_fill_a_batch_whatever_it_sends(rooms):
    """The n - 1 attack by flooding: who sends all but one envelope would know the one left."""
    victim, flooder = rooms.tokens[:2]
    flood = [Arrival(flooder, one) for one in sealed(rooms.parameters, [0] * 50, key=rooms.key)]
    (report,) = sealed(rooms.parameters, [3], key=rooms.key)
    with rooms.shuffler() as shuffler:
        assert shuffler.accept([Arrival(victim, report)]) == [Verdict.waiting]
        assert counted(shuffler.accept(flood)) == {"waiting": 1, "excess": 49}
        assert shuffler.waiting == (2, 2)
        assert shuffler.release() is None
        # Nor with tokens that it makes up, or with the victim's own envelope.
        made_up = [Arrival(f"ds_{'a' * 16}_{i:043}", one.envelope) for i, one in enumerate(flood)]
        assert counted(shuffler.accept(made_up)) == {"stranger": 50}
        assert shuffler.accept([Arrival(rooms.tokens[2], report)]) == [Verdict.known]
        assert shuffler.release() is None
        assert shuffler.counts["excess"] == 49
        # A batch leaves once enough others came, and the flooder is one of them.
        shuffler.accept(rooms.arrivals(3, first=2))
        assert shuffler.release() == 1
        assert facts(shuffler.next(), rooms).senders == 5


def test_each_verdict_is_told_and_counted(rooms):
    good = rooms.arrivals(3)
    other = Envelopes(collection=bytes(8), digest=bytes(8), report=34)
    foreign = other.seal(bytes(34), key=rooms.key)
    with rooms.shuffler() as shuffler:
        assert shuffler.accept(
            [
                good[0],
                good[0],
                Arrival("", good[1].envelope),
                Arrival(good[1].token, good[1].envelope[:-1]),
                Arrival(good[1].token, b""),
                Arrival(good[1].token, b"\2" + good[1].envelope[1:]),
                Arrival(good[1].token, foreign),
                Arrival(good[0].token, good[1].envelope),
                good[1],
            ]
        ) == [
            "waiting",
            "known",
            "stranger",
            "malformed",
            "malformed",
            "malformed",
            "foreign",
            "excess",
            "waiting",
        ]
        assert shuffler.counts == {
            "waiting": 2,
            "known": 1,
            "stranger": 1,
            "malformed": 3,
            "foreign": 1,
            "excess": 1,
            "full": 0,
        }


def test_an_envelope_is_known_after_it_left_and_the_sender_may_send_another(rooms):
    arrivals = rooms.arrivals(5)
    with rooms.shuffler() as shuffler:
        shuffler.accept(arrivals)
        shuffler.release()
        assert counted(shuffler.accept(arrivals)) == {"known": 5}
        assert shuffler.waiting == (0, 0)
        assert counted(shuffler.accept(rooms.arrivals(5))) == {"waiting": 5}
        assert shuffler.release() == 2


def test_a_larger_limit_takes_more_of_each_and_counts_senders_all_the_same(tmp_path):
    rooms = Rooms.make(tmp_path, limit=3)
    with rooms.shuffler() as shuffler:
        for _ in range(4):
            shuffler.accept(rooms.arrivals(4))
        assert shuffler.waiting == (12, 4)
        assert shuffler.release() is None
        shuffler.accept(rooms.arrivals(1, first=4))
        assert shuffler.release() == 1
        told = facts(shuffler.next(), rooms)
        assert (told.senders, told.envelopes, told.limit) == (5, 13, 3)


def test_dummies_look_like_everybody_and_open_like_them(tmp_path):
    rooms = Rooms.make(tmp_path, dummies=7)
    with rooms.shuffler() as shuffler:
        shuffler.accept(rooms.arrivals(5))
        shuffler.release()
        raw = shuffler.next()
    assert facts(raw, rooms).dummies == 7
    assert len({len(one) for one in in_batch(raw, rooms.shuffler_key)}) == 1
    with rooms.open_all() as analyser:
        assert [one.accepted for one in analyser.opened] == [12]
        assert analyser.estimate().n == 5


def test_when_too_many_wait_senders_are_asked_to_come_later(rooms, monkeypatch):
    monkeypatch.setattr("discreet.shuffle.shuffler.settings._MOST", 6)
    with rooms.shuffler() as shuffler:
        assert counted(shuffler.accept(rooms.arrivals(8))) == {"waiting": 6, "full": 2}


@pytest.mark.slow
def test_the_order_of_a_batch_tells_nothing_of_the_order_of_arrival(tmp_path):
    """Where the first envelope to come ends up, over many batches, is uniform."""
    n, rounds = 8, 400
    rooms = Rooms.make(tmp_path, senders=n, minimum=n)
    places = []
    with rooms.shuffler() as shuffler:
        for number in range(1, rounds + 1):
            arrivals = list(map(Arrival, rooms.tokens, unsealed(rooms, n)))
            shuffler.accept(arrivals)
            assert shuffler.release() == number
            places.append(in_batch(shuffler.next(), rooms.shuffler_key).index(arrivals[0].envelope))
            shuffler.taken(number)
    counts = np.bincount(places, minlength=n)
    expected = rounds / n
    assert ((counts - expected) ** 2 / expected).sum() < 60  # chance below 1e-9 at 7 degrees


def unsealed(rooms: Rooms, n: int) -> list[bytes]:
    """Return envelopes with nothing in them, which the shuffler cannot tell from others."""
    envelopes = Envelopes.of(rooms.parameters)
    return [envelopes.header + os.urandom(envelopes.length - 17) for _ in range(n)]


def test_the_file_never_has_a_sender_beside_an_envelope_and_forgets_both(rooms):
    arrivals = rooms.arrivals(5)
    place = rooms.folder / "shuffler.db"
    with rooms.shuffler() as shuffler:
        shuffler.accept(arrivals)
        with sqlite3.connect(place) as look:
            columns = {
                table: {row[1] for row in look.execute(f"PRAGMA table_info({table})")}
                for (table,) in look.execute("SELECT name FROM sqlite_master")
                if not table.startswith("sqlite_")
            }
            hashes = [row[0] for row in look.execute("SELECT sender FROM senders")]
            (first_key,) = look.execute("SELECT value FROM about WHERE name = 'round'").fetchone()
        look.close()
        assert [table for table, named in columns.items() if "sender" in named] == ["senders"]
        assert [t for t, named in columns.items() if "envelope" in named] == ["waiting"]
        shuffler.release()
        shuffler.taken(1)
        left = b"".join(file.read_bytes() for file in rooms.folder.glob("shuffler.db*"))
        assert first_key not in left
        for one in (*hashes, *(arrival.envelope[17:82] for arrival in arrivals)):
            assert one not in left
        for arrival in arrivals:
            assert arrival.token.split("_")[1].encode() not in left


def test_a_sender_has_another_hash_in_every_batch(rooms):
    def hashes():
        return {row[0] for row in shuffler._state.rows("SELECT sender FROM senders")}

    with rooms.shuffler() as shuffler:
        shuffler.accept(rooms.arrivals(5))
        before = hashes()
        shuffler.release()
        shuffler.accept(rooms.arrivals(5))
        assert hashes().isdisjoint(before)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"minimum": 1}, "minimum"),
        ({"limit": 0}, "limit"),
        ({"dummies": -1}, "dummies"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"minimum": 1 << 30}, "minimum"),
    ],
)
def test_settings_that_protect_nobody_are_refused(tmp_path, options, named):
    with pytest.raises(ParameterError) as refused:
        Rooms.make(tmp_path, **options)
    assert refused.value.parameter == named


def test_dummies_need_a_domain(rooms):
    from types import SimpleNamespace

    from discreet.shuffle import ShufflerSettings

    parameters = SimpleNamespace(randomiser=SimpleNamespace(loss=LAW.loss))
    settings = {"analyser": rooms.key, "minimum": 5}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShufflerSettings, "most", 100)
        with pytest.raises(ParameterError, match="only a known domain has"):
            ShufflerSettings(parameters=parameters, dummies=1, **settings)
