"""What the ledger asks of a database: rows to append, facts to replace, one durable step at a time.

The ledger's rules live elsewhere and never see SQL; a store never sees a budget. Requests and
answers are bytes, so that whoever holds the lock may carry out what other processes wait for, in
one transaction: a commit costs the same for one charge as for thirty.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

__all__ = ["Head", "Row", "Snapshot", "Store", "Transaction", "Work"]


class Row(NamedTuple):
    """One entry of the log.

    ``hashes`` are the hashes of all complete subtrees that end with this entry, from the leaf
    upwards, 32 bytes each: node k of level l is the l-th hash of row (k + 1) 2^l - 1. So a proof
    reads one row per hash and no tree is stored besides.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody misses
    account: str | None
    key: str | None
    body: str
    hashes: bytes | None  # None where whoever reads the entry works them out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the log ends: all that is needed to append to it."""

    size: int
    time: str  # of the last entry: the ledger's clock never runs backwards
    last: bytes  # hash of the last entry, which the next one names
    frontier: bytes  # roots of the complete subtrees from left to right, 32 bytes each
    note: str  # signed checkpoint of exactly this size


class Snapshot(Protocol):
    """A consistent snapshot of everything; later writes do not show in it."""

    def head(self) -> Head | None:
        """Return where the log ends, or None where nothing was ever written."""

    def facts(self, names: Sequence[str], /) -> dict[str, str]:
        """Return the facts of these names that exist."""

    def facts_under(self, prefix: str, /) -> Iterator[tuple[str, str]]:
        """Go through all facts whose name begins like this, by name in code point order."""

    def rows(self, start: int, stop: int, /, *, account: str | None = None) -> Iterator[Row]:
        """Go through entries start <= index < stop in order, in bounded memory."""

    def last_rows(self, stop: int, count: int, /, *, account: str | None = None) -> Sequence[Row]:
        """Return the last ``count`` entries with index < stop, in order, without reading others."""

    def row(self, index: int, /) -> Row | None:
        """Return one entry."""

    def by_keys(self, keys: Sequence[str], /) -> dict[str, Row]:
        """Return the entries with these idempotency keys."""

    def answer(self, index: int, /) -> bytes | None:
        """Return what was released with the release entry of this index, if it was kept."""

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """Go through all kept answers in order."""

    def counts(self) -> tuple[int, int]:
        """Return how many entries and how many answers there are, wherever they were put."""

    def check(self) -> None:
        """Raise :class:`TamperingFound` where the storage contradicts itself."""


class Transaction(Snapshot, Protocol):
    """A snapshot that also writes; all of it becomes durable together, or none of it."""

    def append(self, rows: Sequence[Row], /) -> None:
        """Add entries behind the last one."""

    def put_facts(self, facts: Mapping[str, str | None], /) -> None:
        """Set facts, and remove those whose value is None."""

    def put_head(self, head: Head, /) -> None:
        """Say where the log ends now."""

    def put_answers(self, answers: Iterable[tuple[int, bytes]], /) -> None:
        """Keep what was released."""


Work = Callable[[Transaction, Sequence[bytes]], list[bytes]]


class Store(Protocol):
    """A database that several threads, processes or hosts may use at once."""

    def commit_together(self, requests: Sequence[bytes], work: Work, /) -> list[bytes]:
        """Carry out requests in one durable transaction and return their answers in order.

        Where other processes wait for the lock, their requests may be carried out in the same
        transaction by whoever holds it, always by the same ``work``. When this returns, the
        answers are durable. A request may be carried out twice (its first answer may be lost in a
        crash), so ``work`` must recognise a request that it has seen. If it raises, nothing was
        written, and requests of others are left to them.

        One thread at a time calls this.
        """

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot. Any thread may, at any time."""

    def backup(self, path: str | os.PathLike[str], /) -> None:
        """Copy all of it, as it is at this moment, into a new file, or say how that is done."""

    def close(self) -> None:
        """Let go of everything. Calling it twice does no harm."""
