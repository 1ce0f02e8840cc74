"""Replay a log: every entry against the rules, every hash, signature and balance."""

import math
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final

from discreet._json import read_json
from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterSums
from discreet.errors import DiscreetError, LedgerError, ParameterError, TamperingFound
from discreet.ledger.checking.replay_cache import ReplayCache
from discreet.ledger.checking.verification import Verification
from discreet.ledger.log.tree import Tree, inclusion, root
from discreet.ledger.rules.balance import Balance, write_sums
from discreet.ledger.rules.effects import Effects
from discreet.ledger.rules.entry import NOTHING_BEFORE, Entry, decode, encode, latest
from discreet.ledger.rules.entry_forms import check_form, is_time
from discreet.ledger.rules.hold import is_priced
from discreet.ledger.rules.state import State, price
from discreet.ledger.rules.table import RULES
from discreet.ledger.stores.protocol import Row
from discreet.ledger.verifier import (
    NotProven,
    check_checkpoint,
    check_cosignatures,
    check_inclusion,
    leaf_hash,
    parse_checkpoint,
)
from discreet.ledger.writing.scribe import account_of

__all__ = ["Replay", "rolled_back"]

_REMEMBERED: Final = 2048  # entries back to which a reference needs no second reading
_PROGRESS: Final = 10_000


class Replay:
    """Read entries one after the other, as if each had just been asked for."""

    def __init__(
        self,
        row: Callable[[int], Row | None],
        *,
        pinned: Sequence[str] = (),
        vkey: str | None = None,
        since: Verification | None = None,
    ) -> None:
        self._row = row
        self._vkey = vkey
        self._since = since
        facts = since.facts if since else {}
        self.state = State(
            read=lambda names: {name: facts[name] for name in names if name in facts},
            entry=self._entry,
        )
        self._tree = Tree(bytes.fromhex(since.frontier), since.size) if since else Tree()
        self._last = since.last if since else NOTHING_BEFORE
        self._time = since.time if since else ""
        self._recent: dict[int, str] = {}
        self._roots: dict[int, bytes | None] = {}  # of the sizes that witnesses have signed
        self._releases = since.releases if since else 0
        self._cache = ReplayCache(self.state)
        self._pins = _pins(pinned, since)
        self._check_pin()

    def watch(self, size: int, root: bytes | None = None) -> None:
        """Remember the root of the first ``size`` entries, for a witness who speaks of it later."""
        self._roots[size] = root

    @property
    def size(self) -> int:
        """How many entries were read, and verified."""
        return self._tree.size

    def facts(self) -> dict[str, str]:
        """Return the state that the entries lead to."""
        before = self._since.facts if self._since else {}
        now = {**before, **self.state.pending()}
        return {name: value for name, value in now.items() if value is not None}

    def add_all(
        self,
        rows: Iterable[Row],
        *,
        size: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Read entries up to the end of the log."""
        add = self.add
        for row in rows:
            add(row)
            if progress is not None and self._tree.size % _PROGRESS == 0:
                progress(self._tree.size, size)
        if self.size < size:
            raise TamperingFound(
                f"entry {self.size} is missing: the log ends there and must have {size} entries.",
                entry=self.size,
            )
        if self.size > size:
            raise TamperingFound(
                f"entry {size} lies behind the end of the log, where nothing was signed.",
                entry=size,
            )
        if progress is not None:
            progress(size, size)

    def add(self, row: Row) -> None:
        """Check the next entry."""
        tree = self._tree
        index = tree.size
        number, _, _, body, stored = row
        if number != index:
            raise TamperingFound(f"entry {index} is missing, or out of its place.", entry=index)
        try:
            leaf = sha256(b"\x00" + body.encode()).digest()
        except (AttributeError, UnicodeEncodeError):
            raise TamperingFound(f"entry {index} is no text.", entry=index) from None
        if tree.add(leaf) != stored and stored is not None:
            raise TamperingFound(f"entry {index} is not what was hashed.", entry=index)
        time = self._cache.replay(row, self._last, self._time)
        if time is None:
            time = self._replay(index, row)
        elif time[:10] != self._time[:10] and time > latest(self._time):
            raise _unconfirmed(index)
        self._last, self._time = leaf.hex(), time
        if len(self._recent) >= _REMEMBERED:
            self._recent.clear()
        self._recent[index] = body
        if index + 1 in self._roots:
            self._roots[index + 1] = tree.root()
        if index + 1 in self._pins:
            self._check_pin()

    def _replay(self, index: int, row: Row) -> str:
        """Replay an entry by the rules, and return its time."""
        try:
            entry = decode(row.body)
            if (entry["index"], entry["key"], account_of(entry)) != (index, row.key, row.account):
                raise TamperingFound(f"entry {index} is filed under another name.", entry=index)
            if encode(entry) != row.body:
                raise LedgerError("it is not written the one way that entries are.")
            self._check_place(index, entry)
            self._apply(index, entry)
            if entry["kind"] == "charge":
                self._cache.learn(entry, row, self._last)
            return str(entry["time"])
        except TamperingFound as error:
            if error.entry is None:
                raise TamperingFound(f"entry {index}: {error}", entry=index) from error
            raise
        except (DiscreetError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TamperingFound(
                f"entry {index} should never have been written: {error}", entry=index
            ) from error

    def _apply(self, index: int, entry: Entry) -> None:
        """Let the rules decide anew about an entry, and compare what they say with the record."""
        check_form(entry, is_new=False)
        effects = RULES[entry["kind"]](entry, self.state, _cost)
        self._check_after(entry, effects)
        self.state.put(effects.facts)
        if entry["kind"] == "release":
            self._releases += 1
        elif entry["kind"] == "witness":
            self._check_witness(index, entry)

    def finish(self, note: str) -> Verification:
        """Compare the end of the log with what was signed."""
        last = max(self.size - 1, 0)
        if not self.size:
            raise TamperingFound("there is no entry in it, not even the first.", entry=0)
        known = read_json(self.state.text("ledger") or "{}")
        if self._vkey not in (None, *known["vkeys"]):
            raise TamperingFound(
                "this ledger was never signed with the public key that was given.", entry=0
            )
        try:
            signed = check_checkpoint(note, known["vkeys"][-1])
        except NotProven as error:
            raise TamperingFound(f"the checkpoint is not signed: {error}", entry=last) from error
        if (signed.origin, signed.size, signed.root) != (
            known["origin"],
            self.size,
            self._tree.root(),
        ):
            raise TamperingFound(
                "the log is not the one that was signed: an entry up to the last was altered and "
                "all hashes after it were made to fit.",
                entry=last,
            )
        if self._pins:
            raise rolled_back(self.size, max(self._pins))
        return Verification(
            checkpoint=note,
            size=self.size,
            time=self._time,
            frontier=self._tree.frontier.hex(),
            last=self._last,
            facts=self.facts(),
            releases=self._releases,
            start=self._since.size if self._since else 0,
        )

    def _check_place(self, index: int, entry: Entry) -> None:
        if entry["previous"] != self._last:
            # Its own hash was right, so the one before was altered together with its hash.
            raise TamperingFound(
                f"entry {index - 1} is not what entry {index} follows.", entry=max(index - 1, 0)
            )
        if entry["time"] != self._time:
            self._check_time(index, entry)
        if (index == 0) != (entry["kind"] == "ledger"):
            raise LedgerError("a ledger is founded by its first entry.")

    def _check_time(self, index: int, entry: Entry) -> None:
        time = entry["time"]
        if not is_time(time):
            raise LedgerError("its time is none.")
        if time < self._time:
            raise TamperingFound(f"entry {index} is older than the one before it.", entry=index)
        is_new_day = index > 0 and time[:10] != self._time[:10]
        if is_new_day and entry["kind"] != "clock" and time > latest(self._time):
            raise _unconfirmed(index)

    def _check_after(self, entry: Entry, effects: Effects) -> None:
        """Compare the balances on record with those that the rules lead to."""
        recorded = entry.get("after", {})
        if recorded.keys() != effects.after.keys():
            raise LedgerError("it draws on other budgets than it should.")
        for budget, balance in effects.after.items():
            text = recorded[budget]
            if text == balance.text:
                continue
            name = f"budget/{entry['account']}/{budget}"
            before = self.state.text(name) or write_sums((0,) * len(balance.spent))
            if not _covers(entry, Balance.read(before), Balance.read(text), balance):
                raise LedgerError(f"its balance of {budget!r} is wrong.")
            effects.facts[name] = Balance.read(text)

    def _entry(self, index: int) -> Entry:
        recent = self._recent.get(index)
        if recent is not None:
            return decode(recent)
        row = self._row(index)
        if row is None:
            raise LedgerError("an entry refers to one that does not exist.")
        if self._since is not None and index < self._since.size:
            self._check_still_there(row)
        return decode(row.body)

    def _check_still_there(self, row: Row) -> None:
        """Prove an entry that was verified earlier and is read again, perhaps altered since."""
        assert self._since is not None
        size, frontier = self._since.size, bytes.fromhex(self._since.frontier)

        def node(level: int, k: int) -> bytes:
            holder = self._row(((k + 1) << level) - 1)
            return b"" if holder is None else (holder.hashes or b"")[32 * level : 32 * level + 32]

        try:
            proof = inclusion(row.index, size, node)
            check_inclusion(leaf_hash(row.body.encode()), row.index, size, proof, root(frontier))
        except NotProven as error:
            raise TamperingFound(f"entry {row.index} was altered.", entry=row.index) from error

    def _check_pin(self) -> None:
        for pinned in self._pins.pop(self.size, ()):
            if pinned != self._tree.root():
                raise TamperingFound(
                    f"the first {self.size} entries are not those of the checkpoint: the ledger "
                    "was rewritten, or it is a fork.",
                    entry=max(self.size - 1, 0),
                )

    def _check_witness(self, index: int, entry: Entry) -> None:
        try:
            seen = check_cosignatures(entry["note"], [entry["vkey"]])
            checkpoint = parse_checkpoint(entry["note"])
        except NotProven as error:
            raise TamperingFound(
                f"entry {index} is no statement of a witness: {error}", entry=index
            ) from error
        if not seen or self._roots.get(checkpoint.size) != checkpoint.root:
            raise TamperingFound(
                f"entry {index} has a witness of another history than this one.", entry=index
            )


def _unconfirmed(index: int) -> TamperingFound:
    return TamperingFound(
        f"entry {index} comes long after the one before it, and nobody has confirmed the clock.",
        entry=index,
    )


def _cost(entry: Entry, line: str, rules: FilterRules) -> FilterSums:
    return price(entry["loss"], rules)


def _covers(entry: Entry, before: Balance, recorded: Balance, computed: Balance) -> bool:
    """Say whether the change of a balance on record is what the entry costs."""
    if entry["kind"] not in ("charge", "reask") or recorded.held != computed.held:
        return False
    return all(
        is_priced(
            now if now == math.inf else now - was,
            due if due == math.inf else due - was,
            pricing=entry["pricing"],
        )
        for was, now, due in zip(before.spent, recorded.spent, computed.spent, strict=True)
        if was != math.inf or now != math.inf
    )


def _pins(pinned: Sequence[str], since: Verification | None) -> dict[int, list[bytes]]:
    pins: dict[int, list[bytes]] = {}
    for note in [*pinned, *([since.checkpoint] if since else [])]:
        try:
            checkpoint = parse_checkpoint(note)
        except NotProven as error:
            raise ParameterError(f"this is no checkpoint: {error}.", parameter="pinned") from error
        if since and checkpoint.size < since.size:
            raise ParameterError(
                "the pinned checkpoint is older than what was verified before. Verify everything.",
                parameter="pinned",
            )
        pins.setdefault(checkpoint.size, []).append(checkpoint.root)
    return pins


def rolled_back(size: int, once: int) -> TamperingFound:
    """Build the error for a log that is shorter than it once was."""
    return TamperingFound(
        f"the ledger was rolled back: it has {size} entries and once had at least {once}. This is "
        "an old copy, or its end was cut off.",
        entry=size,
    )
