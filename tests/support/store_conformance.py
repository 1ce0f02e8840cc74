"""What every store must do, whatever database it keeps its rows in: one suite, many stores.

A store's own test file subclasses ``StoreConformance`` under a name that begins with ``Test`` and
says how its stores are made. Cases that only make sense for one database live in that file.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.protocol import Head, Row, Snapshot, Store, Transaction

NODE = bytes(range(32))
# A prefix of another, signs that LIKE and globs give a meaning to, and letters that collations
# of natural languages sort differently from code points, up to the highest one.
AWKWARD = [
    "a",
    "a/",
    "a/1",
    "a/10",
    "a/2",
    "a/B",
    "a/_",
    "a/a",
    "a/\u00e9",
    "a/\uffff",
    "a/\U0001f600",
    "a/\U0010ffff",
    "a/\U0010ffffz",
    "a0",
    "a%",
    "a_",
    "A/1",
    "b'\"\\*?[a]",
    "\u00e4",
]


def row(index: int, *, key: str | None = None, account: str | None = None, body: str = "") -> Row:
    """Return an entry that can be told from all others."""
    return Row(index, account, key, body or f'{{"index":{index}}}', NODE * (1 + index % 3))


def head(size: int) -> Head:
    """Return a head with all kinds of bytes in it."""
    return Head(
        size=size,
        time=f"2026-11-15T13:20:00.{size:06d}Z",
        last=b"\x00\xff" + NODE[2:],
        frontier=NODE * (size % 4),
        note=f"origin\n{size}\nroot=\n\n\u2014 name c2lnbmF0dXJl\n",
    )


def size_of(view: Snapshot) -> int:
    """Return how long the log is."""
    found = view.head()
    return 0 if found is None else found.size


def note_down(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
    """Append one entry per request, named by it, once: the smallest honest ``Work``.

    The answer is where the entry stands. A request ``poison`` is refused by raising.
    """
    keys = [request.decode() for request in requests]
    if "poison" in keys:
        raise ValueError("refused")
    places = {key: found.index for key, found in tx.by_keys(keys).items()}
    size, new = size_of(tx), []
    for key in keys:
        if key not in places:
            places[key] = size + len(new)
            new.append(row(places[key], key=key, account=key[:1]))
    if new:
        tx.append(new)
        tx.put_facts(
            {"size": str(size + len(new))} | {f"at/{key}": str(places[key]) for key in keys}
        )
        tx.put_head(head(size + len(new)))
    return [str(places[key]).encode() for key in keys]


def write(store: Store, *rows: Row, **facts: str | None) -> None:
    """Append rows and set facts in one transaction."""

    def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        tx.append(rows)
        tx.put_facts(facts)
        tx.put_head(head(size_of(tx) + len(rows)))
        return [b"" for _ in requests]

    store.commit_together([b"write"], work)


def put(store: Store, facts: dict[str, str | None]) -> None:
    """Set facts whose names are no identifiers."""

    def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        tx.put_facts(facts)
        return [b"" for _ in requests]

    store.commit_together([b"put"], work)


class StoreConformance:
    """The cases. ``make_store`` opens the same database whenever it gets the same folder."""

    def make_store(self, tmp_path: Path) -> Store:
        """Open the store that belongs to this folder, creating it when there is none yet."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        made = self.make_store(tmp_path)
        yield made
        made.close()

    # A new store

    def test_a_new_store_is_empty(self, store):
        with store.read() as view:
            assert view.head() is None
            assert view.facts(["a"]) == {}
            assert list(view.facts_under("")) == []
            assert list(view.rows(0, 10)) == []
            assert list(view.rows(0, 10, account="a")) == []
            assert view.row(0) is None
            assert view.by_keys(["a"]) == {}
            assert view.answer(0) is None
            assert list(view.answers()) == []

    def test_empty_questions_have_empty_answers(self, store):
        write(store, row(0, key="k"), fact="x")
        with store.read() as view:
            assert view.facts([]) == {}
            assert view.by_keys([]) == {}
            assert list(view.rows(1, 1)) == []
            assert list(view.rows(1, 0)) == []

    # Entries

    def test_entries_come_back_as_they_were(self, store):
        rows = [
            row(0),
            row(1, account="salaries", key="k-1"),
            row(2, account="", key="", body='{"quote":"\\"\u00e9\U0001f600\'"}'),
            row(3, account="\u00e9", key="\U0010ffff", body="x" * 100_000),
        ]
        write(store, *rows)
        with store.read() as view:
            assert list(view.rows(0, 4)) == rows
            assert [view.row(index) for index in range(4)] == rows
            assert all(isinstance(each, Row) for each in view.rows(0, 4))
            assert isinstance(view.row(1), Row)
            assert type(view.row(1).hashes) is bytes
            assert view.row(4) is None

    def test_a_range_of_entries_has_both_ends(self, store):
        rows = [row(index) for index in range(10)]
        write(store, *rows)
        with store.read() as view:
            assert list(view.rows(3, 7)) == rows[3:7]
            assert list(view.rows(8, 1000)) == rows[8:]
            assert list(view.rows(10, 1000)) == []

    def test_entries_of_one_account_come_in_order(self, store):
        rows = [row(index, account=("a", "b", None, "ab")[index % 4]) for index in range(40)]
        write(store, *rows)
        with store.read() as view:
            assert list(view.rows(0, 40, account="a")) == rows[::4]
            assert list(view.rows(2, 7, account="b")) == [rows[5]]
            assert list(view.rows(0, 40, account="c")) == []

    def test_many_entries_come_in_order_and_may_be_left_in_the_middle(self, store):
        rows = [row(index, account="a" if index % 2 else "b") for index in range(5_000)]
        write(store, *rows)
        with store.read() as view:
            assert list(view.rows(0, 5_000)) == rows
            assert list(view.rows(17, 4_321, account="a")) == rows[17:4_321:2]
            left = view.rows(0, 5_000)
            assert next(left) == rows[0]
        write(store, row(5_000))

    def test_two_walks_do_not_disturb_each_other(self, store):
        rows = [row(index) for index in range(1_500)]
        write(store, *rows)
        put(store, {f"f/{index:04}": "" for index in range(1_500)})
        with store.read() as view:
            seen = []
            for one, two, (name, _) in zip(
                view.rows(0, 1_500), view.rows(0, 1_500), view.facts_under("f/"), strict=True
            ):
                assert one == two
                assert view.row(one.index) == one
                seen.append(name)
            assert seen == [f"f/{index:04}" for index in range(1_500)]

    def test_entries_are_found_by_key(self, store):
        rows = [row(index, key=f"key {index}") for index in range(3_000)]
        write(store, *rows)
        with store.read() as view:
            assert view.by_keys(["key 7", "nobody", "key 7"]) == {"key 7": rows[7]}
            asked = [f"key {index}" for index in range(4_000)]
            assert view.by_keys(asked) == {each.key: each for each in rows}

    def test_a_key_is_never_used_twice(self, store):
        write(store, row(0, key="k"))
        with pytest.raises(Exception):  # noqa: B017
            write(store, row(1, key="other"), row(2, key="k"))
        with store.read() as view:
            assert list(view.rows(0, 9)) == [row(0, key="k")]
            assert size_of(view) == 1

    def test_an_index_is_never_used_twice(self, store):
        write(store, row(0, body="first"))
        with pytest.raises(Exception):  # noqa: B017
            write(store, row(0, body="second"))
        with store.read() as view:
            assert view.row(0) == row(0, body="first")

    # Facts

    def test_facts_are_set_replaced_and_removed(self, store):
        write(store, a="1", b="2", c="3")
        write(store, a="4", b=None, nobody=None, empty="")
        with store.read() as view:
            assert view.facts(["a", "b", "c", "nobody", "empty"]) == {
                "a": "4",
                "c": "3",
                "empty": "",
            }
            assert list(view.facts_under("")) == [("a", "4"), ("c", "3"), ("empty", "")]

    def test_facts_come_in_code_point_order(self, store):
        put(store, {name: name for name in reversed(AWKWARD)})
        with store.read() as view:
            assert [name for name, _ in view.facts_under("")] == sorted(AWKWARD)

    @pytest.mark.parametrize("prefix", [*AWKWARD, "nobody", "a/\U0010ffff\U0010ffff"])
    def test_a_prefix_is_taken_literally(self, store, prefix):
        put(store, dict.fromkeys(AWKWARD, "x"))
        with store.read() as view:
            found = [name for name, _ in view.facts_under(prefix)]
        assert found == sorted(name for name in AWKWARD if name.startswith(prefix))

    def test_many_facts_are_read_at_once(self, store):
        facts = {f"fact {index}": "\u00e9" * (index % 7) for index in range(3_000)}
        put(store, facts)
        with store.read() as view:
            assert view.facts([*facts, "nobody", *facts]) == facts
            assert dict(view.facts_under("fact ")) == facts

    # Head and answers

    def test_the_head_is_replaced(self, store):
        for size in (1, 2, 7):
            store.commit_together([b""], lambda tx, _, size=size: tx.put_head(head(size)) or [b""])
            with store.read() as view:
                assert view.head() == head(size)
                assert type(view.head().last) is bytes
                assert type(view.head().frontier) is bytes

    def test_answers_are_kept(self, store):
        answers = {5: b"", 2: bytes(range(256)), 900: b"\x00" * 1_000_000}
        store.commit_together([b""], lambda tx, _: tx.put_answers(answers.items()) or [b""])
        with store.read() as view:
            assert list(view.answers()) == sorted(answers.items())
            assert view.answer(5) == b""
            assert view.answer(2) == answers[2]
            assert type(view.answer(900)) is bytes
            assert view.answer(3) is None

    def test_many_answers_come_in_order(self, store):
        answers = [(index * 3, str(index).encode()) for index in range(300)]
        store.commit_together([b""], lambda tx, _: tx.put_answers(iter(answers)) or [b""])
        with store.read() as view:
            assert list(view.answers()) == answers

    # Transactions

    def test_answers_to_requests_come_in_order(self, store):
        assert store.commit_together([b"x", b"y"], note_down) == [b"0", b"1"]
        assert store.commit_together([b"z", b"x"], note_down) == [b"2", b"0"]
        assert store.commit_together([], note_down) == []

    def test_requests_of_any_size_arrive_whole(self, store):
        requests = [b"", bytes(range(256)), b"\x00" * 300_000, b"x"]

        def echo(_: Transaction, requests: Sequence[bytes]) -> list[bytes]:
            assert all(type(request) is bytes for request in requests)
            return list(requests)

        assert store.commit_together(requests, echo) == requests

    def test_a_transaction_sees_what_it_writes(self, store):
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

    def test_facts_may_change_while_going_through_them(self, store):
        put(store, {f"f/{index:04}": "old" for index in range(1_200)})

        def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
            for name, value in tx.facts_under("f/"):
                assert value == "old"
                tx.put_facts({name: None, f"g{name[1:]}": "new"})
            return [b"" for _ in requests]

        store.commit_together([b""], work)
        with store.read() as view:
            assert {value for _, value in view.facts_under("")} == {"new"}
            assert len(list(view.facts_under("g/"))) == 1_200

    @pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
    def test_work_that_raises_leaves_nothing(self, store, error):
        write(store, row(0), a="1")

        def work(tx: Transaction, _: Sequence[bytes]) -> list[bytes]:
            tx.append([row(1)])
            tx.put_facts({"a": "2"})
            tx.put_head(head(2))
            tx.put_answers([(1, b"x")])
            raise error

        with pytest.raises(type(error)) as caught:
            store.commit_together([b""], work)
        assert caught.value is error
        with store.read() as view:
            assert view.head() == head(1)
            assert view.row(1) is None
            assert view.answer(1) is None
            assert view.facts(["a"]) == {"a": "1"}
        write(store, row(1), a="3")

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_work_must_answer_every_request(self, store, count):
        def work(tx: Transaction, _: Sequence[bytes]) -> list[bytes]:
            tx.append([row(0)])
            return [b""] * count

        with pytest.raises(Exception):  # noqa: B017
            store.commit_together([b"one", b"two"], work)
        with store.read() as view:
            assert view.row(0) is None
        write(store, row(0))

    # Views

    def test_a_view_does_not_move(self, store):
        write(store, row(0), a="1")
        with store.read() as view:
            # Nothing was looked at yet: the view dates from its opening, not from its first use.
            write(store, row(1, key="k"), a="2")
            assert size_of(view) == 1
            assert list(view.rows(0, 9)) == [row(0)]
            assert view.facts(["a"]) == {"a": "1"}
            assert view.by_keys(["k"]) == {}
            with store.read() as later:
                assert size_of(later) == 2
                assert later.facts(["a"]) == {"a": "2"}
            write(store, a="3")
            assert dict(view.facts_under("")) == {"a": "1"}

    def test_a_long_walk_does_not_hold_up_writers(self, store):
        rows = [row(index) for index in range(1_200)]
        write(store, *rows)
        with store.read() as view:
            for seen in view.rows(0, 10_000):
                if seen.index % 100 == 0:
                    write(store, row(1_200 + seen.index // 100))
            assert seen == rows[-1]
        with store.read() as view:
            assert len(list(view.rows(0, 10_000))) == 1_212

    def test_an_error_while_reading_leaves_the_store_usable(self, store):
        write(store, row(0))
        for _ in range(20):
            with pytest.raises(ZeroDivisionError), store.read() as view:
                assert size_of(view) / 0
        write(store, row(1))
        with store.read() as view:
            assert size_of(view) == 2

    def test_threads_read_while_one_writes(self, store):
        stop = threading.Event()

        def look() -> int:
            looks = 0
            while not stop.is_set() or looks == 0:
                with store.read() as view:
                    size = size_of(view)
                    # Entries, facts and head all come from the same moment.
                    assert len(list(view.rows(0, 10_000))) == size
                    assert view.facts(["size"]).get("size", "0") == str(size)
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

    # Several handles, and later

    def test_what_one_wrote_another_sees(self, store, tmp_path):
        other = self.make_store(tmp_path)
        try:
            assert store.commit_together([b"x"], note_down) == [b"0"]
            assert other.commit_together([b"y", b"x"], note_down) == [b"1", b"0"]
            with store.read() as one, other.read() as two:
                assert list(one.rows(0, 9)) == list(two.rows(0, 9))
                assert size_of(one) == 2
        finally:
            other.close()

    def test_what_was_written_is_there_later(self, tmp_path):
        first = self.make_store(tmp_path)
        first.commit_together([b"x", b"y"], note_down)
        first.commit_together([b""], lambda tx, _: tx.put_answers([(1, b"kept")]) or [b""])
        first.close()
        second = self.make_store(tmp_path)
        try:
            with second.read() as view:
                assert view.head() == head(2)
                assert [each.key for each in view.rows(0, 9)] == ["x", "y"]
                assert view.facts(["size"]) == {"size": "2"}
                assert view.answer(1) == b"kept"
            assert second.commit_together([b"y", b"z"], note_down) == [b"1", b"2"]
        finally:
            second.close()

    def test_racing_writers_lose_and_double_nothing(self, tmp_path):
        writers, rounds = 6, 40
        start = threading.Barrier(writers)

        def race(writer: int) -> dict[str, bytes]:
            mine = self.make_store(tmp_path)
            try:
                start.wait()
                given = {}
                for turn in range(rounds):
                    # Every second request is also made by the next writer.
                    keys = [f"{writer}-{turn}", f"{(writer + turn % 2) % writers}-{turn}-both"]
                    asked = [key.encode() for key in keys]
                    given.update(zip(keys, mine.commit_together(asked, note_down), strict=True))
                return given
            finally:
                mine.close()

        self.make_store(tmp_path).close()
        with ThreadPoolExecutor(writers) as pool:
            answers = list(pool.map(race, range(writers)))
        store = self.make_store(tmp_path)
        try:
            with store.read() as view:
                rows = list(view.rows(0, 100_000))
                assert [each.index for each in rows] == list(range(size_of(view)))
                places = {each.key: str(each.index).encode() for each in rows}
                assert len(places) == len(rows)
            for given in answers:
                assert given.items() <= places.items()
            assert set(places) == {key for given in answers for key in given}
        finally:
            store.close()

    def test_a_refused_request_hurts_nobody_else(self, tmp_path):
        start = threading.Barrier(4)

        def race(writer: int) -> int:
            mine = self.make_store(tmp_path)
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

        self.make_store(tmp_path).close()
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(race, range(4))) == [25, 25, 0, 0]
        store = self.make_store(tmp_path)
        try:
            with store.read() as view:
                assert size_of(view) == 50
        finally:
            store.close()

    # The end

    def test_closing_twice_does_no_harm(self, store):
        write(store, row(0))
        store.close()
        store.close()

    def test_a_closed_store_says_so(self, store):
        write(store, row(0))
        store.close()
        with pytest.raises(LedgerUnavailable, match="closed"):
            store.commit_together([b"x"], note_down)
        with pytest.raises(LedgerUnavailable, match="closed"), store.read():
            pass
