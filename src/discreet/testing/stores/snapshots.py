"""Snapshots: one moment, whatever is written meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor

from discreet.errors import LedgerUnavailable
from discreet.testing.stores.made_up import note_down, raises, row, size_of, write
from discreet.testing.stores.one_store import OneStore


class Snapshots(OneStore):
    """A reader sees one moment and holds nobody up."""

    def test_a_view_does_not_move(self) -> None:
        store = self.store
        write(store, row(0), a="1")
        with store.read() as snapshot:
            # Nothing was looked at yet: the view dates from its opening, not from its first use.
            write(store, row(1, key="k"), a="2")
            assert size_of(snapshot) == 1
            assert list(snapshot.rows(0, 9)) == [row(0)]
            assert snapshot.facts(["a"]) == {"a": "1"}
            assert snapshot.by_keys(["k"]) == {}
            with store.read() as later:
                assert size_of(later) == 2
                assert later.facts(["a"]) == {"a": "2"}
            write(store, a="3")
            assert dict(snapshot.facts_under("")) == {"a": "1"}

    def test_a_long_walk_does_not_hold_up_writers(self) -> None:
        store = self.store
        rows = [row(index) for index in range(1_200)]
        write(store, *rows)
        with store.read() as snapshot:
            for seen in snapshot.rows(0, 10_000):
                if seen.index % 100 == 0:
                    write(store, row(1_200 + seen.index // 100))
            assert seen == rows[-1]
        with store.read() as snapshot:
            assert len(list(snapshot.rows(0, 10_000))) == 1_212

    def test_an_error_while_reading_leaves_the_store_usable(self) -> None:
        store = self.store
        write(store, row(0))
        for _ in range(20):
            with raises(ZeroDivisionError), store.read() as snapshot:
                assert size_of(snapshot) / 0
        write(store, row(1))
        with store.read() as snapshot:
            assert size_of(snapshot) == 2

    def test_threads_read_while_one_writes(self) -> None:
        store = self.store
        stop = threading.Event()

        def look() -> int:
            looks = 0
            while not stop.is_set() or looks == 0:
                with store.read() as snapshot:
                    size = size_of(snapshot)
                    # Entries, facts and head all come from the same moment.
                    assert len(list(snapshot.rows(0, 10_000))) == size
                    assert snapshot.facts(["size"]).get("size", "0") == str(size)
                looks += 1
            return looks

        with ThreadPoolExecutor(4) as pool:
            looking = [pool.submit(look) for _ in range(4)]
            try:
                for index in range(60):
                    store.commit_together([f"request {index}".encode()], note_down)
            finally:
                stop.set()
            assert all(each.result() > 0 for each in looking)

    def test_closing_twice_does_no_harm(self) -> None:
        store = self.store
        write(store, row(0))
        store.close()
        store.close()

    def test_a_closed_store_says_so(self) -> None:
        store = self.store
        write(store, row(0))
        store.close()
        with raises(LedgerUnavailable, saying="closed"):
            store.commit_together([b"x"], note_down)
        with raises(LedgerUnavailable, saying="closed"), store.read():
            pass
