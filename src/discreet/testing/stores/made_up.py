"""Entries, heads and the smallest honest work, for stores that never see a budget."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from discreet.ledger.stores.protocol import Head, Row, Snapshot, Store, Transaction

__all__ = [
    "AWKWARD",
    "head",
    "keep",
    "note_down",
    "put",
    "put_head",
    "raises",
    "row",
    "size_of",
    "write",
]

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
    size = size_of(tx)
    new: list[Row] = []
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


def put(store: Store, facts: Mapping[str, str | None]) -> None:
    """Set facts whose names are no identifiers."""

    def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        tx.put_facts(facts)
        return [b"" for _ in requests]

    store.commit_together([b"put"], work)


def put_head(store: Store, size: int) -> None:
    """Say where the log ends."""

    def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        tx.put_head(head(size))
        return [b"" for _ in requests]

    store.commit_together([b"head"], work)


def keep(store: Store, answers: Iterable[tuple[int, bytes]]) -> None:
    """Keep answers."""

    def work(tx: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        tx.put_answers(answers)
        return [b"" for _ in requests]

    store.commit_together([b"keep"], work)


@contextmanager
def raises(kind: type[BaseException], *, saying: str = "") -> Iterator[list[BaseException]]:
    """Demand that the block raises; a suite for others does without pytest itself."""
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    if not caught or saying not in str(caught[0]):
        raise AssertionError(f"{kind.__name__} was to be raised, saying {saying!r}")
