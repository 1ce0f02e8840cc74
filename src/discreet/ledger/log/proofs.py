"""Read proofs out of the log: which hashes lie where, and what they prove."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, final

from discreet._json import read_json
from discreet.errors import LedgerError, ParameterError, TamperingFound
from discreet.ledger.log.tree import consistency, inclusion, root
from discreet.ledger.rules.balance import unreadable
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.stores.protocol import Head, Row, Snapshot
from discreet.ledger.verifier import Checkpoint, parse_checkpoint

__all__ = ["Log"]

RECEIPT = "discreet-receipt/1"


@final
class Log:
    """The log as a snapshot shows it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def head(self) -> Head:
        """Return where the log ends."""
        head = self._snapshot.head()
        if head is None:
            raise LedgerError("this ledger is empty.")
        return head

    def row(self, index: int) -> Row:
        """Return one entry."""
        row = self._snapshot.row(index)
        if row is None:
            raise LedgerError(f"this ledger has no entry {index}; it has {self.head().size}.")
        return row

    def entry(self, index: int) -> Entry:
        """Return one entry, read."""
        return decode(self.row(index).body)

    def node(self, level: int, k: int) -> bytes:
        """Return the hash of a complete subtree."""
        index = ((k + 1) << level) - 1
        found = (self.row(index).hashes or b"")[32 * level : 32 * level + 32]
        if len(found) != 32:
            raise TamperingFound(f"entry {index} lacks a hash of the tree.", entry=index)
        return found

    def root_at(self, size: int) -> bytes:
        """Return the root of the first ``size`` entries."""
        peaks, start = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                peaks.append(self.node(level, start >> level))
                start += 1 << level
        return root(b"".join(peaks))

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the first ``old`` entries are still what they were."""
        if not 0 <= old <= new <= self.head().size:
            raise ParameterError(
                f"sizes must grow and end at {self.head().size} entries.", parameter="size"
            )
        return consistency(old, new, self.node)

    def extends(self, checkpoint: Checkpoint) -> None:
        """Raise unless this log is the one of the checkpoint, with perhaps more behind it."""
        head = self.head()
        here = parse_checkpoint(head.note)
        if here.origin != checkpoint.origin:
            raise TamperingFound(
                f"the checkpoint is of the ledger {checkpoint.origin!r}, and this one is "
                f"{here.origin!r}."
            )
        if checkpoint.size > head.size:
            raise TamperingFound(
                f"the ledger was rolled back: it has {head.size} entries and once had at least "
                f"{checkpoint.size}. This is an old copy, or its end was cut off.",
                entry=head.size,
            )
        if self.root_at(checkpoint.size) != checkpoint.root:
            raise TamperingFound(
                f"the first {checkpoint.size} entries are not those of the checkpoint: the ledger "
                "was rewritten, or it is a fork."
            )

    def proven(self, index: int, size: int) -> dict[str, Any]:
        """Return an entry with its proof, as receipts write it."""
        row = self.row(index)
        proof = inclusion(index, size, self.node)
        return {"index": index, "body": row.body, "proof": [b64encode(h).decode() for h in proof]}

    def receipt(self, indices: Sequence[int], *, witnessed: bool) -> dict[str, Any]:
        """Return a receipt for these entries; ``witnessed`` for a checkpoint that was cosigned."""
        note = self.witnessed_note() if witnessed else self.head().note
        size = parse_checkpoint(note).size
        if max(indices) >= size:
            raise LedgerError(
                "no witness has cosigned these entries yet. Run: discreet ledger witness"
            )
        return {
            "format": RECEIPT,
            "checkpoint": note,
            "entries": [self.proven(index, size) for index in indices],
            "rotations": [self.proven(index, size) for index in self.rotations() if index < size],
        }

    def with_its_charge(self, index: int) -> list[int]:
        """Return the entry itself, and before it what it hands on and the charge that paid."""
        if type(index) is not int or not 0 <= index < 2**63:
            raise ParameterError("prove a receipt, or the number of an entry.", parameter="receipt")
        entry = self.entry(index)
        if entry["kind"] == "reask":
            return [*self.with_its_charge(int(entry["release"])), index]
        return [int(entry["charge"]), index] if entry["kind"] == "release" else [index]

    def rotations(self) -> list[int]:
        """Return the entries that rotated the key."""
        return self._indices("rotations")

    def witnessed(self) -> list[int]:
        """Return the entries in which witnesses cosigned."""
        return self._indices("witnessed")

    def _indices(self, fact: str) -> list[int]:
        found = read_json(self._snapshot.facts([fact]).get(fact, "[]"))
        if type(found) is not list or not all(type(one) is int and one >= 0 for one in found):
            raise unreadable(fact)
        return found

    def witnessed_note(self) -> str:
        """Return the last checkpoint that a witness cosigned."""
        indices = self.witnessed()
        if not indices:
            raise LedgerError("no witness has cosigned this ledger. Run: discreet ledger witness")
        return str(self.entry(indices[-1])["note"])
