"""Entries: in order, by place, by account and by key."""

from discreet.ledger.stores.protocol import Row
from discreet.testing.stores.made_up import put, raises, row, size_of, write
from discreet.testing.stores.one_store import OneStore


class Entries(OneStore):
    """What is appended comes back as it was."""

    def test_a_new_store_is_empty(self) -> None:
        store = self.store
        with store.read() as snapshot:
            assert snapshot.head() is None
            assert snapshot.facts(["a"]) == {}
            assert list(snapshot.facts_under("")) == []
            assert list(snapshot.rows(0, 10)) == []
            assert list(snapshot.rows(0, 10, account="a")) == []
            assert snapshot.row(0) is None
            assert snapshot.by_keys(["a"]) == {}
            assert snapshot.answer(0) is None
            assert list(snapshot.answers()) == []

    def test_empty_questions_have_empty_answers(self) -> None:
        store = self.store
        write(store, row(0, key="k"), fact="x")
        with store.read() as snapshot:
            assert snapshot.facts([]) == {}
            assert snapshot.by_keys([]) == {}
            assert list(snapshot.rows(1, 1)) == []
            assert list(snapshot.rows(1, 0)) == []

    def test_entries_come_back_as_they_were(self) -> None:
        store = self.store
        rows = [
            row(0),
            row(1, account="salaries", key="k-1"),
            row(2, account="", key="", body='{"quote":"\\"\u00e9\U0001f600\'"}'),
            row(3, account="\u00e9", key="\U0010ffff", body="x" * 100_000),
        ]
        write(store, *rows)
        with store.read() as snapshot:
            assert list(snapshot.rows(0, 4)) == rows
            assert [snapshot.row(index) for index in range(4)] == rows
            assert all(isinstance(each, Row) for each in snapshot.rows(0, 4))
            assert isinstance(snapshot.row(1), Row)
            found = snapshot.row(1)
            assert found is not None
            assert type(found.hashes) is bytes
            assert snapshot.row(4) is None

    def test_a_range_of_entries_has_both_ends(self) -> None:
        store = self.store
        rows = [row(index) for index in range(10)]
        write(store, *rows)
        with store.read() as snapshot:
            assert list(snapshot.rows(3, 7)) == rows[3:7]
            assert list(snapshot.rows(8, 1000)) == rows[8:]
            assert list(snapshot.rows(10, 1000)) == []

    def test_entries_of_one_account_come_in_order(self) -> None:
        store = self.store
        rows = [row(index, account=("a", "b", None, "ab")[index % 4]) for index in range(40)]
        write(store, *rows)
        with store.read() as snapshot:
            assert list(snapshot.rows(0, 40, account="a")) == rows[::4]
            assert list(snapshot.rows(2, 7, account="b")) == [rows[5]]
            assert list(snapshot.rows(0, 40, account="c")) == []
            assert list(snapshot.last_rows(40, 3, account="a")) == rows[::4][-3:]
            assert list(snapshot.last_rows(7, 99, account="b")) == rows[1:7:4]
            assert list(snapshot.last_rows(40, 3, account="c")) == []
            assert list(snapshot.last_rows(12, 2)) == rows[10:12]
            assert list(snapshot.last_rows(40, 0)) == []
            assert list(snapshot.last_rows(0, 2**62)) == []

    def test_many_entries_come_in_order_and_may_be_left_in_the_middle(self) -> None:
        store = self.store
        rows = [row(index, account="a" if index % 2 else "b") for index in range(5_000)]
        write(store, *rows)
        with store.read() as snapshot:
            assert list(snapshot.rows(0, 5_000)) == rows
            assert list(snapshot.rows(17, 4_321, account="a")) == rows[17:4_321:2]
            left = snapshot.rows(0, 5_000)
            assert next(left) == rows[0]
        write(store, row(5_000))

    def test_two_walks_do_not_disturb_each_other(self) -> None:
        store = self.store
        rows = [row(index) for index in range(1_500)]
        write(store, *rows)
        put(store, {f"f/{index:04}": "" for index in range(1_500)})
        with store.read() as snapshot:
            seen = []
            for one, two, (name, _) in zip(
                snapshot.rows(0, 1_500),
                snapshot.rows(0, 1_500),
                snapshot.facts_under("f/"),
                strict=True,
            ):
                assert one == two
                assert snapshot.row(one.index) == one
                seen.append(name)
            assert seen == [f"f/{index:04}" for index in range(1_500)]

    def test_entries_are_found_by_key(self) -> None:
        store = self.store
        rows = [row(index, key=f"key {index}") for index in range(3_000)]
        write(store, *rows)
        with store.read() as snapshot:
            assert snapshot.by_keys(["key 7", "nobody", "key 7"]) == {"key 7": rows[7]}
            asked = [f"key {index}" for index in range(4_000)]
            assert snapshot.by_keys(asked) == {each.key: each for each in rows}

    def test_a_key_is_never_used_twice(self) -> None:
        store = self.store
        write(store, row(0, key="k"))
        with raises(Exception):
            write(store, row(1, key="other"), row(2, key="k"))
        with store.read() as snapshot:
            assert list(snapshot.rows(0, 9)) == [row(0, key="k")]
            assert size_of(snapshot) == 1

    def test_an_index_is_never_used_twice(self) -> None:
        store = self.store
        write(store, row(0, body="first"))
        with raises(Exception):
            write(store, row(0, body="second"))
        with store.read() as snapshot:
            assert snapshot.row(0) == row(0, body="first")
