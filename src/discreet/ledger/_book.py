"""Carry out requests: decide, chain, hash, sign, and write, in one transaction.

A request proposes an entry. Whoever holds the store's lock runs :meth:`Book.work` on everything
that waits. A request that is refused leaves no trace; one that was carried out before, recognised
by its key, gets the answer it got then.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any, Final

from discreet.accounting import FilterRules
from discreet.accounting.filter_rules import Sums
from discreet.errors import (
    AccountNotFound,
    BudgetExceeded,
    DiscreetError,
    LedgerError,
    ParameterError,
    TamperingFound,
)
from discreet.ledger import _entries as entries
from discreet.ledger._balances import read_sums
from discreet.ledger._entries import Entry, decode, encode
from discreet.ledger._keys import SigningKey
from discreet.ledger._notes import sign_checkpoint
from discreet.ledger._rules import RULES
from discreet.ledger._store import Head, Row, Transaction
from discreet.ledger._tree import append, root
from discreet.ledger._view import View, price
from discreet.ledger.verifier import leaf_hash

__all__ = ["Book", "read_answer"]

REFUSED: Final = b"!"  # the answer to a refused request begins with it; others are the entry
_REMEMBERED: Final = 100_000  # facts; the least recently used ones are not worth finding out
_IGNORED: Final = frozenset(("after", "holds", "index", "previous", "time"))


class Book:
    """Writes the log of one ledger. ``key`` finds the signing key that others know by a vkey."""

    def __init__(
        self, key: Callable[[str], SigningKey], *, clock: Callable[[], str] = entries.now
    ) -> None:
        self._key = key
        self._clock = clock
        self._view: View | None = None
        self._at: tuple[int, bytes] | None = None  # where the log ended when the view was read
        self._transaction: Transaction | None = None

    def work(self, transaction: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        """Carry out requests in one transaction; see :class:`discreet.ledger._store.Store`."""
        try:
            return self._work(transaction, [json.loads(request) for request in requests])
        except BaseException:
            self._view = None  # it may hold changes that will never be written
            raise

    def _work(self, transaction: Transaction, proposals: Sequence[dict[str, Any]]) -> list[bytes]:
        head = transaction.head()
        known = transaction.by_keys([proposal["entry"]["key"] for proposal in proposals])
        for row in known.values():
            if head is None or not 0 <= row.index < head.size:
                raise TamperingFound("an entry lies outside of the log.", entry=row.index)
        done = {key: row.body for key, row in known.items()}
        view = self._fresh_view(transaction, head)
        draft = _Draft(head, self._clock())
        answers: list[bytes] = []
        kept: list[tuple[int, bytes]] = []
        for proposal in proposals:
            size = draft.size
            try:
                answers.append(self._carry_out(proposal, view, draft, done).encode())
            except DiscreetError as refusal:
                answers.append(_write_refusal(refusal))
            if "answer" in proposal and draft.size > size:
                kept.append((size, b64decode(proposal["answer"])))
        if draft.rows:
            self._write(transaction, view, draft, kept)
        return answers

    def _fresh_view(self, transaction: Transaction, head: Head | None) -> View:
        self._transaction = transaction
        here = (head.size, head.last) if head else (0, b"")
        if self._view is None or self._at != here or len(self._view) > _REMEMBERED:
            self._view = View(
                read=lambda names: self._open().facts(names),
                under=lambda prefix: self._open().facts_under(prefix),
                entry=self._entry,
            )
            self._at = here
        return self._view

    def _open(self) -> Transaction:
        assert self._transaction is not None
        return self._transaction

    def _entry(self, index: int) -> Entry:
        row = self._open().row(index)
        if row is None:
            raise LedgerError("an entry refers to one that does not exist.")
        return decode(row.body)

    def _carry_out(
        self, proposal: dict[str, Any], view: View, draft: "_Draft", done: dict[str, str]
    ) -> str:
        entry: Entry = proposal["entry"]
        key = entry["key"]
        if key in done:
            return _same_request(entry, done[key])
        entry |= {"index": draft.size, "time": draft.time, "previous": draft.last.hex()}
        changes = RULES[entry["kind"]](entry, view, _cost_of(proposal, view))
        if changes.after:
            entry["after"] = {name: balance.text for name, balance in changes.after.items()}
        entry |= changes.fields
        body = encode(entry)
        view.put(changes.facts)
        draft.add(entry, body)
        done[key] = body
        return body

    def _write(
        self,
        transaction: Transaction,
        view: View,
        draft: "_Draft",
        kept: Sequence[tuple[int, bytes]],
    ) -> None:
        # Looked up each time: the ledger may have got another key, from us or from another process.
        key = self._key(json.loads(view.text("ledger") or "{}")["vkeys"][-1])
        transaction.append(draft.rows)
        transaction.put_facts(view.take())
        if kept:
            transaction.put_answers(kept)
        transaction.put_head(
            Head(
                size=draft.size,
                time=draft.time,
                last=draft.last,
                frontier=draft.frontier,
                note=sign_checkpoint(key, draft.size, root(draft.frontier)),
            )
        )
        self._at = (draft.size, draft.last)


class _Draft:
    """The end of the log, growing."""

    def __init__(self, head: Head | None, now: str) -> None:
        self.size = head.size if head else 0
        self.last = head.last if head else bytes(32)
        self.frontier = head.frontier if head else b""
        # A clock that was set back must not open a period again, so time stands still meanwhile.
        self.time = max(now, head.time) if head else now
        self.rows: list[Row] = []

    def add(self, entry: Entry, body: str) -> None:
        leaf = leaf_hash(body.encode())
        hashes, self.frontier = append(self.frontier, self.size, leaf)
        account = entry["name"] if entry["kind"] == "account" else entry.get("account")
        self.rows.append(Row(self.size, account, entry["key"], body, hashes))
        self.size += 1
        self.last = leaf


def _cost_of(proposal: dict[str, Any], view: View) -> Callable[[Entry, str, FilterRules], Sums]:
    """Use the prices that came with a request while the account's terms are still the same.

    Pricing a training run takes milliseconds; that must not happen while everybody waits.
    """
    costs = proposal.get("costs") or {}
    terms = proposal.get("terms")

    def cost(entry: Entry, line: str, rules: FilterRules) -> Sums:
        if line in costs and terms == view.definition(entry["account"]).version:
            return read_sums(costs[line])
        return price(entry["loss"], rules)

    return cost


def _same_request(entry: Entry, body: str) -> str:
    """Return the entry that was written for this key, unless it was for another request."""
    before = decode(body)
    mine = {name: value for name, value in entry.items() if name not in _IGNORED}
    theirs = {name: value for name, value in before.items() if name not in _IGNORED}
    if mine == theirs:
        return body
    if entry["kind"] == "release":
        raise LedgerError("this charge has paid for another answer already. Charge again.")
    raise ParameterError(
        "this key belongs to another request. Nothing was spent. Use a new key for each request, "
        "and the same one only to repeat it.",
        parameter="key",
    )


_REFUSALS: Final[dict[str, Callable[..., DiscreetError]]] = {
    "AccountNotFound": AccountNotFound,
    "BudgetExceeded": BudgetExceeded,
    "LedgerError": LedgerError,
    "ParameterError": ParameterError,
    "TamperingFound": TamperingFound,
}


def _write_refusal(refusal: DiscreetError) -> bytes:
    if isinstance(refusal, BudgetExceeded):
        names = ("used", "would_be", "budget", "account", "way_out")
        said: list[Any] = [[], {name: getattr(refusal, name) for name in names}]
    elif isinstance(refusal, ParameterError):
        said = [[str(refusal)], {"parameter": refusal.parameter}]
    else:
        said = [[str(refusal)], {}]
    name = type(refusal).__name__
    return REFUSED + json.dumps([name if name in _REFUSALS else "LedgerError", *said]).encode()


def read_answer(answer: bytes) -> str:
    """Return the entry that was written, or raise why none was."""
    if not answer.startswith(REFUSED):
        return answer.decode()
    name, positional, named = json.loads(answer[len(REFUSED) :])
    raise _REFUSALS[name](*positional, **named)
