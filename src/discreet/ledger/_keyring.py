"""Find the key that a ledger is signed with now, also just after somebody rotated it."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import final

from discreet.errors import LedgerError, LedgerUnavailable
from discreet.ledger._keys import SigningKey, sync_folder

__all__ = ["Keyring"]


@final
class Keyring:
    """The key file of a ledger, and beside it, while the key is being rotated, the next one.

    Several processes sign for one ledger. When one of them rotates the key, the others find the
    new one here the next time they sign.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.next_path = path.with_name(path.name + ".next")
        self._lock = threading.Lock()
        self._keys: dict[str, SigningKey] = {}

    @property
    def exists(self) -> bool:
        """Whether there is a key of a ledger that was founded."""
        return self.path.exists()

    def any(self) -> SigningKey:
        """Return a key of this ledger, old or new: they have the same name and salt."""
        if not self._keys:
            path = self.path if self.path.exists() else self.next_path
            key = SigningKey.load(path)
            self._keys[key.vkey] = key
        return next(iter(self._keys.values()))

    def key(self, vkey: str) -> SigningKey:
        """Return the key that others know by ``vkey``."""
        known = self._keys.get(vkey)
        if known is not None:
            return known
        with self._lock:
            for path in (self.path, self.next_path):
                if path.exists():
                    key = SigningKey.load(path)
                    self._keys[key.vkey] = key
        if vkey not in self._keys:
            raise LedgerError(
                f"the key at {self.path} is not the one this ledger is signed with now. If it was "
                "rotated, put the new key there. Nothing was written."
            )
        return self._keys[vkey]

    def make(self, name: str) -> SigningKey:
        """Make the key of a new ledger, or take the one that somebody else is just making.

        It takes its place by :meth:`settle`, once the ledger is there. So a key in its place
        without a ledger tells of a ledger that was lost.
        """
        key = SigningKey.generate(name)
        try:
            key.save(self.next_path)
        except LedgerUnavailable:
            raise
        except LedgerError:
            key = SigningKey.load(self.next_path)
        self._keys[key.vkey] = key
        return key

    def begin_rotation(self, old: SigningKey) -> SigningKey:
        """Put the next key beside the present one."""
        new = old.rotated()
        new.save(self.next_path, replace=True)
        self._keys[new.vkey] = new
        return new

    def settle(self) -> None:
        """Put the next key in its place, unless another process has done so."""
        with suppress(FileNotFoundError):
            os.replace(self.next_path, self.path)
        sync_folder(self.path.parent)
