"""Receipts: what was written to the log, and the proof that it is there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from discreet.accounting import Loss
from discreet.errors import LedgerError
from discreet.ledger.log.keys import write_file
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.rules.state import loss_of

__all__ = ["Receipt"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Hold the entries that a request was given: a charge, and once there is one its release.

    :meth:`discreet.ledger.Ledger.prove` returns the same receipt with its proof. Only that can be
    saved, since only that convinces somebody who has no access to the ledger.

    ``is_repeated`` says that another call carried out the request before, with the same key: this
    is the receipt of then, and whoever has used it already must not draw noise on it again.

    >>> charge = '{"account":"salaries","index":7,"kind":"charge","who":"ana"}'
    >>> receipt = Receipt(bodies=(charge,))
    >>> receipt.index, receipt.account, receipt.is_proven
    (7, 'salaries', False)
    """

    bodies: tuple[str, ...]
    proof: Mapping[str, Any] | None = None
    is_repeated: bool = field(default=False, compare=False)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries as JSON objects."""
        return tuple(decode(body) for body in self.bodies)

    @property
    def index(self) -> int:
        """Where the first entry is in the log."""
        return int(decode(self.bodies[0])["index"])

    @property
    def key(self) -> str:
        """The key that makes repeating the request safe."""
        return str(decode(self.bodies[0])["key"])

    @property
    def account(self) -> str:
        """Which account was charged."""
        return str(decode(self.bodies[0])["account"])

    @property
    def loss(self) -> Loss:
        """What was charged."""
        return loss_of(decode(self.bodies[0])["loss"])

    @property
    def is_proven(self) -> bool:
        """Whether it carries its proof."""
        return self.proof is not None

    def extended(self, body: str) -> "Receipt":
        """Return a receipt with one more entry, not yet proven.

        >>> Receipt(bodies=('{"index":1}',)).extended('{"index":2}').entries[1]
        {'index': 2}
        """
        return replace(self, bodies=(*self.bodies, body), proof=None)

    def to_json(self) -> str:
        """Return the document that ``discreet verify`` reads.

        >>> Receipt(bodies=('{"index":1}',)).to_json()
        Traceback (most recent call last):
            ...
        discreet.errors.LedgerError: this receipt has no proof yet. Get one with
        ledger.prove(receipt).
        """
        if self.proof is None:
            raise LedgerError("this receipt has no proof yet. Get one with ledger.prove(receipt).")
        return json.dumps(self.proof, indent=1, sort_keys=True, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the document to a file.

        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Receipt(bodies=("{}",), proof={}).save(os.path.join(folder, "receipt.json"))
        """
        write_file(Path(path), self.to_json().encode(), replace=True, mode=0o644)
