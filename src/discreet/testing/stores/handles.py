"""Several handles of one database, at once and one after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor

from discreet.testing.stores.made_up import head, keep, note_down, size_of
from discreet.testing.stores.one_store import OneStore


class Handles(OneStore):
    """What one has written another sees; racing writers lose and double nothing."""

    def test_what_one_wrote_another_sees(self) -> None:
        store = self.store
        other = self.make_store(self.folder)
        try:
            assert store.commit_together([b"x"], note_down) == [b"0"]
            assert other.commit_together([b"y", b"x"], note_down) == [b"1", b"0"]
            with store.read() as one, other.read() as two:
                assert list(one.rows(0, 9)) == list(two.rows(0, 9))
                assert size_of(one) == 2
        finally:
            other.close()

    def test_what_was_written_is_there_later(self) -> None:
        first = self.make_store(self.folder)
        first.commit_together([b"x", b"y"], note_down)
        keep(first, [(1, b"kept")])
        first.close()
        second = self.make_store(self.folder)
        try:
            with second.read() as snapshot:
                assert snapshot.head() == head(2)
                assert [each.key for each in snapshot.rows(0, 9)] == ["x", "y"]
                assert snapshot.facts(["size"]) == {"size": "2"}
                assert snapshot.answer(1) == b"kept"
            assert second.commit_together([b"y", b"z"], note_down) == [b"1", b"2"]
        finally:
            second.close()

    def test_racing_writers_lose_and_double_nothing(self) -> None:
        writers, rounds = 6, 40
        start = threading.Barrier(writers)

        def race(writer: int) -> dict[str, bytes]:
            mine = self.make_store(self.folder)
            try:
                start.wait()
                given: dict[str, bytes] = {}
                for turn in range(rounds):
                    # Every second request is also made by the next writer.
                    keys = [f"{writer}-{turn}", f"{(writer + turn % 2) % writers}-{turn}-both"]
                    asked = [key.encode() for key in keys]
                    given.update(zip(keys, mine.commit_together(asked, note_down), strict=True))
                return given
            finally:
                mine.close()

        self.make_store(self.folder).close()
        with ThreadPoolExecutor(writers) as pool:
            answers = list(pool.map(race, range(writers)))
        store = self.make_store(self.folder)
        try:
            with store.read() as snapshot:
                rows = list(snapshot.rows(0, 100_000))
                assert [each.index for each in rows] == list(range(size_of(snapshot)))
                places = {each.key: str(each.index).encode() for each in rows}
                assert len(places) == len(rows)
            for given in answers:
                assert given.items() <= places.items()
            assert set(places) == {key for given in answers for key in given}
        finally:
            store.close()

    def test_a_refused_request_hurts_nobody_else(self) -> None:
        start = threading.Barrier(4)

        def race(writer: int) -> int:
            mine = self.make_store(self.folder)
            try:
                start.wait()
                refused = 0
                for turn in range(25):
                    request = b"poison" if writer < 2 else f"{writer}-{turn}".encode()
                    try:
                        mine.commit_together([request], note_down)
                    except ValueError:
                        refused += 1
                return refused
            finally:
                mine.close()

        self.make_store(self.folder).close()
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(race, range(4))) == [25, 25, 0, 0]
        store = self.make_store(self.folder)
        try:
            with store.read() as snapshot:
                assert size_of(snapshot) == 50
        finally:
            store.close()
