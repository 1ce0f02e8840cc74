"""Carry out requests: decide, chain, hash, sign, and write, in one transaction.

A request proposes an entry. Whoever holds the store's lock runs :meth:`Scribe.work` on everything
that waits. A request that is refused leaves no trace; one that was carried out before, recognised
by its key, gets the answer it got then.

Requests and answers may pass through a mailbox that others can write. So both are sealed with the
ledger's secret, and an answer together with its request: without the key nobody can have something
signed, or make somebody believe that a charge was made.
"""

import json
import logging
import math
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from discreet._json import read_json
from discreet._version import __version__
from discreet.accounting import FilterRules
from discreet.accounting.filters import PRICING, FilterSums
from discreet.errors import (
    AccountNotFound,
    BudgetExceeded,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    TamperingFound,
)
from discreet.ledger.log.anchor import Anchor
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.log.state_tree import EMPTY, StateTree
from discreet.ledger.log.tree import append, root
from discreet.ledger.rules import entry as entries
from discreet.ledger.rules.balance import read_sums, unreadable
from discreet.ledger.rules.entry import Entry, decode, encode
from discreet.ledger.rules.entry_forms import check_form
from discreet.ledger.rules.state import State, price
from discreet.ledger.rules.table import RULES
from discreet.ledger.stores.protocol import Head, Row, Snapshot, Transaction
from discreet.ledger.verifier import leaf_hash
from discreet.ledger.writing import recognising
from discreet.ledger.writing.sealed import SEAL, check_entry, open_tree, seal_of

__all__ = ["Scribe", "account_of", "read_answer"]

_WRITTEN, _REPEATED, _REFUSED = b"+", b"=", b"!"
_REMEMBERED: Final = 100_000  # facts kept between transactions
_IGNORED: Final = frozenset(
    ("after", "call", "holds", "index", "matches", "once", "previous", "pricing", "time")
)
_MARKED: Final = {"once": True}  # a release that marks its charge as used up; older ones did not
Verified = Callable[[Snapshot], Mapping[str, str]]  # the state, once all was verified
_logger = logging.getLogger("discreet.ledger")


def account_of(entry: Entry) -> str | None:
    """Return the account that an entry is filed under."""
    name: str | None = entry["name"] if entry["kind"] == "account" else entry.get("account")
    return name


class Scribe:
    """Writes the log of one ledger."""

    def __init__(
        self,
        keyring: Keyring,
        *,
        clock: Callable[[], str] = entries.now,
        verified: Verified | None = None,
        anchor: Anchor | None = None,
    ) -> None:
        self._keyring = keyring
        self._anchor = anchor
        self._is_anchored = False  # whether the log was compared with the anchor
        self._clock = clock
        self._verified = verified
        self._state: State | None = None
        self._tree = StateTree(lambda names: {}, EMPTY)
        self._at: Head | None = None  # where the log ended when the state was read
        self._transaction: Transaction | None = None
        self._note: str | None = None  # the checkpoint of the present transaction
        self._unsettled: list[tuple[list[bytes], str]] = []  # what may be durable, with its answers
        self._paid: str | None = None  # the entry that pays for the present request, if it says so

    def work(self, transaction: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        """Carry out requests in one transaction; see ``stores.protocol.Store``."""
        try:
            answers = self._work(transaction, requests)
        except BaseException as error:
            self._state = self._note = None  # it may hold changes that will never be written
            is_ours = isinstance(error, DiscreetError)
            if not is_ours and isinstance(error, LookupError | ValueError | TypeError):
                raise unreadable("") from error
            raise
        note, self._note = self._note, None
        if note is not None and self._anchor is not None:
            self._unsettled.append((answers, note))
        return answers

    def _work(self, transaction: Transaction, requests: Sequence[bytes]) -> list[bytes]:
        head = transaction.head()
        state = self._fresh_state(transaction, head)
        seal = self._key(state)
        proposals = [_opened(seal.unsealed(request)) for request in requests]
        done = self._done(transaction, head, proposals)
        draft = _Draft(head, self._clock())
        answers: list[bytes] = []
        kept: list[tuple[int, bytes]] = []
        for request, proposal in zip(requests, proposals, strict=True):
            size = draft.size
            answer = self._answer(proposal, state, draft, done)
            if proposal and "answer" in proposal and draft.size > size:
                kept.append((size, b64decode(proposal["answer"])))
            answers.append(seal.seal(answer, to=request))
        if draft.rows or self._tree.is_changed:
            self._write(transaction, state, draft, kept)
        return answers

    def _done(
        self,
        transaction: Transaction,
        head: Head | None,
        proposals: Sequence[dict[str, Any] | None],
    ) -> dict[str, str]:
        """Return the entries that were written for these requests before, by their keys."""
        keys = [proposal["entry"]["key"] for proposal in proposals if proposal]
        found = transaction.by_keys(keys)
        for key, row in found.items():
            if head is None or not 0 <= row.index < head.size:
                raise TamperingFound("an entry lies outside of the log.", entry=row.index)
            check_entry(transaction, head, row)
            if decode(row.body)["key"] != key:
                raise TamperingFound("an entry is filed under another key.", entry=row.index)
        return {key: row.body for key, row in found.items()}

    def _fresh_state(self, transaction: Transaction, head: Head | None) -> State:
        self._transaction = transaction
        if self._state is None or self._at != head or len(self._state) > _REMEMBERED:
            self._check_anchor(transaction, head)
            self._tree = open_tree(self._stored, head, self._keyring.any(), self._verify)
            self._state = State(read=self._read, entry=self._entry)
            self._at = head
        return self._state

    def _check_anchor(self, transaction: Transaction, head: Head | None) -> None:
        if self._anchor is None or head is None:
            return
        if self._is_anchored:
            self._anchor.check_size(head)
        else:
            self._anchor.check(transaction, self._anchor.seen())  # nobody else writes meanwhile
            self._is_anchored = True

    def settle(self, answers: Sequence[bytes]) -> None:
        """Remember the checkpoint that these answers came with: whoever has them, it is durable.

        What was written after it was written for others, and may have failed without a word.
        """
        unsettled, self._unsettled = self._unsettled, []
        for given, note in unsettled:
            if self._anchor is not None and answers and answers[0] in given:
                self._anchor.write(note)

    def _stored(self, names: Sequence[str]) -> dict[str, str]:
        return self._open().facts(names)

    def _read(self, names: Sequence[str]) -> dict[str, str]:
        """Fetch facts, unless they are not what was written last."""
        found = self._stored(names)
        for name in names:
            self._tree.check(name, found.get(name))
        return found

    def _verify(self) -> Mapping[str, str]:
        if self._verified is None:
            raise TamperingFound("the seal of the stored state is gone.")
        return self._verified(self._open())

    def _key(self, state: State) -> SigningKey:
        """Return the key that the log names now; another process may have rotated it."""
        known = state.text("ledger")
        if known is None:
            return self._keyring.any()
        return self._keyring.key(read_json(known)["vkeys"][-1])

    def _open(self) -> Transaction:
        assert self._transaction is not None
        return self._transaction

    def _entry(self, index: int) -> Entry:
        row, head = self._open().row(index), self._at
        if head is None or not 0 <= index < head.size:
            raise LedgerError("an entry refers to one that does not exist.")
        if row is None:
            raise TamperingFound(f"entry {index} is gone.", entry=index)
        if row.body != self._paid:  # else whoever has the key says that it was written so
            check_entry(self._open(), head, row)
        return decode(row.body)

    def _answer(
        self, proposal: dict[str, Any] | None, state: State, draft: "_Draft", done: dict[str, str]
    ) -> bytes:
        """Carry out one request, whatever is wrong with it; nobody else's must suffer."""
        try:
            if proposal is None:
                raise LedgerError("this request was not made by somebody who has the key.")
            entry: Entry = proposal["entry"]
            if entry["key"] in done:
                body = _same_request(entry, done[entry["key"]])
                return (_WRITTEN if _is_same_call(entry, body) else _REPEATED) + body.encode()
            return _WRITTEN + self._carry_out(proposal, state, draft, done).encode()
        except LedgerUnavailable:
            raise
        except DiscreetError as refusal:
            return _write_refusal(refusal)
        except Exception as error:
            _logger.warning(json.dumps({"event": "failed", "error": type(error).__name__}))
            return _write_refusal(LedgerError("this request could not be carried out."))

    def _carry_out(
        self, proposal: dict[str, Any], state: State, draft: "_Draft", done: dict[str, str]
    ) -> str:
        entry: Entry = proposal["entry"]
        self._paid = proposal.get("paid")
        cost = _cost_of(proposal, state)  # before the entry gets our own pricing
        kept = proposal.get("answer")
        if kept is not None and sha256(b64decode(kept)).hexdigest() != entry.get("answer"):
            raise LedgerError("this is not the answer that the entry commits to.")
        time = draft.time_of(entry["kind"])
        entry |= {"index": draft.size, "time": time, "previous": draft.last.hex()}
        if not entry.keys().isdisjoint(("after", "holds", "matches")):
            raise LedgerError("a request does not say what comes out of it.")
        if "pricing" in entry:
            entry["pricing"] = PRICING
        if entry["kind"] == "release":
            entry |= _MARKED
        check_form(entry, is_new=True)
        sketches = recognising.sketches_of(proposal)
        matches = recognising.matches(entry, sketches, state, self._read)
        if matches:
            entry["matches"] = matches
        effects = RULES[entry["kind"]](entry, state, cost)
        if effects.after:
            entry["after"] = {name: balance.text for name, balance in effects.after.items()}
        entry |= effects.fields
        body = encode(entry)
        draft.add(entry, body)
        state.put(effects.facts)
        state.put(recognising.kept(entry, sketches))
        done[entry["key"]] = body
        return body

    def _write(
        self,
        transaction: Transaction,
        state: State,
        draft: "_Draft",
        kept: Sequence[tuple[int, bytes]],
    ) -> None:
        key = self._key(state)  # again: the draft may have rotated it
        head = self._at
        if draft.rows or head is None:
            note = sign_checkpoint(key, draft.size, root(draft.frontier))
            head = draft.head(note)
            transaction.append(draft.rows)
            transaction.put_head(head)
            self._note = note
        changes = state.take()
        self._tree.put(changes)
        nodes = self._tree.take()
        seal = seal_of(key, self._tree.root, head)
        transaction.put_facts({**changes, **nodes, SEAL: seal})
        if kept:
            transaction.put_answers(kept)
        self._at = head


class _Draft:
    """The end of the log, growing."""

    def __init__(self, head: Head | None, now: str) -> None:
        self.size = head.size if head else 0
        self.last = head.last if head else bytes(32)
        self.frontier = head.frontier if head else b""
        # A clock that was set back must not open a period again, so time stands still meanwhile.
        self.time = head.time if head else now
        self._now = max(now, self.time)
        self._is_far = head is not None and self._now > entries.latest(head.time)
        self.rows: list[Row] = []

    def head(self, note: str) -> Head:
        """Return where the log ends now, with its checkpoint."""
        return Head(
            size=self.size, time=self.time, last=self.last, frontier=self.frontier, note=note
        )

    def time_of(self, kind: str) -> str:
        """Return the time of an entry that is written now."""
        if self._is_far and kind != "clock":
            raise LedgerError(
                f"the last entry is more than {entries.LONGEST_SILENCE} days older than this "
                "machine's clock. If the clock is right, confirm it with: discreet ledger clock"
            )
        return self._now

    def add(self, entry: Entry, body: str) -> None:
        leaf = leaf_hash(body.encode())
        hashes, self.frontier = append(self.frontier, self.size, leaf)
        self.rows.append(Row(self.size, account_of(entry), entry["key"], body, hashes))
        self.size += 1
        self.last = leaf
        self.time, self._is_far = self._now, False


def _opened(request: bytes | None) -> dict[str, Any] | None:
    """Return what a request proposes, or None where nobody who may ask has written it."""
    if request is None:
        return None
    try:
        proposal: dict[str, Any] = read_json(request)
        return proposal if type(proposal["entry"]["key"]) is str else None
    except (ValueError, LookupError, TypeError):
        return None  # of a program that writes other requests


def _cost_of(
    proposal: dict[str, Any], state: State
) -> Callable[[Entry, str, FilterRules], FilterSums]:
    """Use the prices that came with a request while account and program are still the same.

    Pricing a training run takes milliseconds; that must not happen while everybody waits.
    """
    costs = proposal.get("costs") or {}
    # Entries say by which formulas they were priced: ours, since we write them.
    is_ours = proposal.get("code") == __version__ and proposal["entry"].get("pricing") == PRICING
    version = proposal.get("terms")

    def cost(entry: Entry, line: str, rules: FilterRules) -> FilterSums:
        if is_ours and line in costs and version == state.definition(entry["account"]).version:
            found = read_sums(costs[line])
            if len(found) == len(rules.units) and all(_is_price(one) for one in found):
                return found
        return price(entry["loss"], rules)

    return cost


def _is_price(amount: int | float) -> bool:
    return amount == math.inf or (type(amount) is int and amount >= 0)


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


def _is_same_call(entry: Entry, body: str) -> bool:
    """Say whether it was this call that had the entry written, and that was not told."""
    return "call" in entry and decode(body).get("call") == entry["call"]


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
    return _REFUSED + json.dumps([name if name in _REFUSALS else "LedgerError", *said]).encode()


def read_answer(key: SigningKey, request: bytes, answer: bytes) -> tuple[str, bool] | None:
    """Return the entry that was written and whether that was before, or raise why none was.

    None says that whoever answered has another key.
    """
    found = key.unsealed(answer, to=request)
    if found is None:
        return None
    if found.startswith(_REFUSED):
        name, positional, named = read_json(found[1:])
        raise _REFUSALS[name](*positional, **named)
    return found[1:].decode(), found.startswith(_REPEATED)
