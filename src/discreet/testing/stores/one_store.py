"""A store to each case, in a folder that is gone afterwards."""

import tempfile
from pathlib import Path

from discreet.ledger.stores.protocol import Store

__all__ = ["OneStore"]


class OneStore:
    """Opens :attr:`store` when a case first asks for it, and closes it behind each case."""

    _folder: "tempfile.TemporaryDirectory[str] | None" = None
    _store: Store | None = None

    def make_store(self, folder: Path) -> Store:
        """Open the store that belongs to this folder, creating it when there is none yet."""
        raise NotImplementedError

    @property
    def folder(self) -> Path:
        """Whose store this case is about."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    @property
    def store(self) -> Store:
        """The store that this case is about."""
        if self._store is None:
            self._store = self.make_store(self.folder)
        return self._store

    def teardown_method(self) -> None:
        """Close what the case has opened."""
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
