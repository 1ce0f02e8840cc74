"""Find the key that a ledger is signed with now, also just after somebody rotated it."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import final

from discreet.errors import LedgerError, LedgerUnavailable
from discreet.ledger.log.keys import SigningKey, sync_folder

__all__ = ["Keyring"]


@final
class Keyring:
    """The key file of a ledger, and beside it, until the log names it, the next one.

    Several processes sign for one ledger. A new key waits under another name until the entry that
    names it is durable, and only then takes its place. So whoever finds a key in its place and no
    ledger knows that a ledger was lost; and a crash in between leaves both keys there, of which
    the log says which one is right.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.next_path = path.parent / f"{path.name}.next"
        self._lock = threading.Lock()
        self._keys: dict[str, SigningKey] = {}

    @property
    def exists(self) -> bool:
        """Whether there is a key of a ledger that was founded."""
        return self.path.exists()

    @property
    def is_empty(self) -> bool:
        """Whether there is no key at all."""
        return not (self.path.exists() or self.next_path.exists())

    def any(self) -> SigningKey:
        """Return a key of this ledger, old or new: they have the same name and salt."""
        if not self._keys:
            self._look()
        try:
            return next(iter(self._keys.values()))
        except StopIteration:
            raise LedgerUnavailable(f"there is no key at {self.path}.") from None

    def key(self, vkey: str) -> SigningKey:
        """Return the key that others know by ``vkey``."""
        known = self._keys.get(vkey)
        if known is not None:
            return known
        for _ in range(2):  # it may just be moving from one place to the other
            self._look()
            if vkey in self._keys:
                return self._keys[vkey]
        raise LedgerError(
            f"the key at {self.path} is not the one this ledger is signed with now. If it was "
            "rotated, put the new key there. Nothing was written."
        )

    def make(self, name: str) -> SigningKey:
        """Make the key of a new ledger, or take the one that somebody else is just making."""
        key = SigningKey.generate(name)
        if not self._save_next(key):
            key = SigningKey.load(self.next_path)
        self._keys[key.vkey] = key
        return key

    def begin_rotation(self, vkey: str) -> SigningKey:
        """Put a new key beside the present one, which others know by ``vkey``."""
        self.settle(vkey)
        new = self.key(vkey).rotated()
        if not self._save_next(new):
            # It may be somebody's who rotates at this moment: never overwrite a key.
            raise LedgerError(
                f"somebody is rotating the key, or was interrupted: {self.next_path} is there. If "
                "nobody is, remove that file; the ledger was never signed with it."
            )
        self._keys[new.vkey] = new
        return new

    def settle(self, vkey: str) -> None:
        """Put the next key in its place, if it is the one that the log names now."""
        with suppress(LedgerUnavailable):
            if SigningKey.load(self.next_path).vkey == vkey:
                with suppress(FileNotFoundError):  # somebody else was faster
                    os.replace(self.next_path, self.path)
                sync_folder(self.path.parent)

    def _look(self) -> None:
        with self._lock:
            for path in (self.next_path, self.path):
                if path.exists():
                    with suppress(LedgerUnavailable):  # gone since
                        key = SigningKey.load(path)
                        self._keys[key.vkey] = key

    def _save_next(self, key: SigningKey) -> bool:
        try:
            key.save(self.next_path)
        except LedgerUnavailable:
            raise
        except LedgerError:  # there is one
            return False
        return True
