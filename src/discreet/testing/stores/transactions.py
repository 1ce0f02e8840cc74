"""Transactions: all of it or nothing."""

from collections.abc import Sequence

from discreet.ledger.stores.protocol import Transaction
from discreet.testing.stores.made_up import head, note_down, put, raises, row, write
from discreet.testing.stores.one_store import OneStore


class Transactions(OneStore):
    """Work sees what it writes, and leaves nothing where it fails."""

    def test_answers_to_requests_come_in_order(self) -> None:
        store = self.store
        assert store.commit_together([b"x", b"y"], note_down) == [b"0", b"1"]
        assert store.commit_together([b"z", b"x"], note_down) == [b"2", b"0"]
        assert store.commit_together([], note_down) == []

    def test_requests_of_any_size_arrive_whole(self) -> None:
        store = self.store
        requests = [b"", bytes(range(256)), b"\x00" * 300_000, b"x"]

        def echo(_: Transaction, requests: Sequence[bytes]) -> list[bytes]:
            assert all(type(request) is bytes for request in requests)
            return list(requests)

        assert store.commit_together(requests, echo) == requests

    def test_a_transaction_sees_what_it_writes(self) -> None:
        store = self.store
        write(store, row(0, key="old"), a="1", b="2")

        def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
            assert tx.head() == head(1)
            assert tx.by_keys(["old"]) == {"old": row(0, key="old")}
            tx.append([row(1, key="new", account="n")])
            tx.put_facts({"a": None, "c": "3"})
            tx.put_head(head(2))
            tx.put_answers([(1, b"kept")])
            assert tx.head() == head(2)
            assert tx.row(1) == row(1, key="new", account="n")
            assert list(tx.rows(0, 9, account="n")) == [tx.row(1)]
            assert list(tx.by_keys(["old", "new"])) in (["old", "new"], ["new", "old"])
            assert tx.facts(["a", "b", "c"]) == {"b": "2", "c": "3"}
            assert list(tx.facts_under("")) == [("b", "2"), ("c", "3")]
            assert tx.answer(1) == b"kept"
            return [b"seen" for _ in requests]

        assert store.commit_together([b"look"], work) == [b"seen"]

    def test_facts_may_change_while_going_through_them(self) -> None:
        store = self.store
        put(store, {f"f/{index:04}": "old" for index in range(1_200)})

        def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
            for name, value in tx.facts_under("f/"):
                assert value == "old"
                tx.put_facts({name: None, f"g{name[1:]}": "new"})
            return [b"" for _ in requests]

        store.commit_together([b""], work)
        with store.read() as snapshot:
            assert {value for _, value in snapshot.facts_under("")} == {"new"}
            assert len(list(snapshot.facts_under("g/"))) == 1_200

    def test_work_that_raises_leaves_nothing(self) -> None:
        self._break_with(ValueError("no"))

    def test_work_that_is_interrupted_leaves_nothing(self) -> None:
        self._break_with(KeyboardInterrupt())

    def test_work_that_ends_the_program_leaves_nothing(self) -> None:
        self._break_with(SystemExit(3))

    def _break_with(self, error: BaseException) -> None:
        store = self.store
        write(store, row(0), a="1")

        def work(tx: Transaction, _: Sequence[bytes]) -> list[bytes]:
            tx.append([row(1)])
            tx.put_facts({"a": "2"})
            tx.put_head(head(2))
            tx.put_answers([(1, b"x")])
            raise error

        with raises(type(error)) as caught:
            store.commit_together([b""], work)
        assert caught == [error]
        with store.read() as snapshot:
            assert snapshot.head() == head(1)
            assert snapshot.row(1) is None
            assert snapshot.answer(1) is None
            assert snapshot.facts(["a"]) == {"a": "1"}
        write(store, row(1), a="3")

    def test_work_must_answer_every_request(self) -> None:
        store = self.store
        for count in (0, 1, 3):

            def work(tx: Transaction, _: Sequence[bytes], count: int = count) -> list[bytes]:
                tx.append([row(0)])
                return [b""] * count

            with raises(Exception):
                store.commit_together([b"one", b"two"], work)
            with store.read() as snapshot:
                assert snapshot.row(0) is None
        write(store, row(0))
