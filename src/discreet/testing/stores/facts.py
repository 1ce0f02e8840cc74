"""Facts, the head of the log, and answers that were kept."""

from discreet.testing.stores.made_up import AWKWARD, head, keep, put, put_head, write
from discreet.testing.stores.one_store import OneStore


class Facts(OneStore):
    """What is set is found, by name and by prefix."""

    def test_facts_are_set_replaced_and_removed(self) -> None:
        store = self.store
        write(store, a="1", b="2", c="3")
        write(store, a="4", b=None, nobody=None, empty="")
        with store.read() as snapshot:
            assert snapshot.facts(["a", "b", "c", "nobody", "empty"]) == {
                "a": "4",
                "c": "3",
                "empty": "",
            }
            assert list(snapshot.facts_under("")) == [("a", "4"), ("c", "3"), ("empty", "")]

    def test_facts_come_in_code_point_order(self) -> None:
        store = self.store
        put(store, {name: name for name in reversed(AWKWARD)})
        with store.read() as snapshot:
            assert [name for name, _ in snapshot.facts_under("")] == sorted(AWKWARD)

    def test_a_prefix_is_taken_literally(self) -> None:
        store = self.store
        put(store, dict.fromkeys(AWKWARD, "x"))
        for prefix in [*AWKWARD, "nobody", "a/\U0010ffff\U0010ffff"]:
            with store.read() as snapshot:
                found = [name for name, _ in snapshot.facts_under(prefix)]
            assert found == sorted(name for name in AWKWARD if name.startswith(prefix))

    def test_many_facts_are_read_at_once(self) -> None:
        store = self.store
        facts = {f"fact {index}": "\u00e9" * (index % 7) for index in range(3_000)}
        put(store, facts)
        with store.read() as snapshot:
            assert snapshot.facts([*facts, "nobody", *facts]) == facts
            assert dict(snapshot.facts_under("fact ")) == facts

    def test_the_head_is_replaced(self) -> None:
        store = self.store
        for size in (1, 2, 7):
            put_head(store, size)
            with store.read() as snapshot:
                found = snapshot.head()
                assert found == head(size)
                assert type(found.last) is bytes
                assert type(found.frontier) is bytes

    def test_answers_are_kept(self) -> None:
        store = self.store
        answers = {5: b"", 2: bytes(range(256)), 900: b"\x00" * 1_000_000}
        keep(store, answers.items())
        with store.read() as snapshot:
            assert list(snapshot.answers()) == sorted(answers.items())
            assert snapshot.answer(5) == b""
            assert snapshot.answer(2) == answers[2]
            assert type(snapshot.answer(900)) is bytes
            assert snapshot.answer(3) is None

    def test_many_answers_come_in_order(self) -> None:
        store = self.store
        answers = [(index * 3, str(index).encode()) for index in range(300)]
        keep(store, iter(answers))
        with store.read() as snapshot:
            assert list(snapshot.answers()) == answers
