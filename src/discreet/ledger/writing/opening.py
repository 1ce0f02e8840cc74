"""From what a user typed to an open store, its keys, and a first entry."""

import os
import secrets
from hashlib import sha256
from pathlib import Path

from discreet._json import read_json
from discreet.errors import LedgerError, LedgerUnavailable, ParameterError, TamperingFound
from discreet.ledger.log.anchor import FOLDER_VARIABLE, Anchor
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.rules.entry import FORMAT
from discreet.ledger.stores.protocol import Store
from discreet.ledger.stores.sqlite.store import SqliteStore
from discreet.ledger.verifier import Checkpoint, NotProven, parse_checkpoint
from discreet.ledger.writing.request import request
from discreet.ledger.writing.scribe import Scribe, read_answer

__all__ = [
    "KEY_VARIABLE",
    "anchor_at",
    "check_never_used",
    "checkpoint_at",
    "found",
    "keyring_at",
    "note_at",
    "store_at",
]

KEY_VARIABLE = "DISCREET_LEDGER_KEY"
_SERVERS = ("postgresql://", "postgres://")


def keyring_at(location: str, key: str | os.PathLike[str] | None) -> Keyring | None:
    """Return where the key of a ledger is kept: beside the file, or where the caller says."""
    if key is None and location.startswith(_SERVERS):
        said = os.environ.get(KEY_VARIABLE)
        return None if said is None else Keyring(_file(said))
    return Keyring(_file(f"{location}.key" if key is None else key))


def _file(key: str | os.PathLike[str]) -> Path:
    path = Path(key)
    if path.name in ("", "..") or path.is_dir():
        raise LedgerError(f"a key is a file, and {path} is a folder. Name the file.")
    return path


def anchor_at(keyring: Keyring, origin: str) -> Anchor:
    """Return where it is remembered how far a ledger had come: beside its key, or in a folder."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        return Anchor(Path(folder) / f"{sha256(origin.encode()).hexdigest()[:32]}.anchor")
    return Anchor(keyring.path.with_name(f"{keyring.path.name.removesuffix('.key')}.anchor"))


def store_at(location: str, keyring: Keyring | None, *, create: bool, read_only: bool) -> Store:
    """Open the store; make one only where no ledger was lost."""
    if location.startswith(_SERVERS):
        from discreet.ledger.stores.postgres.store import PostgresStore

        return PostgresStore(location, create=create, read_only=read_only)
    path = Path(location)
    if not path.exists():
        if not create or read_only:
            raise LedgerUnavailable(
                f"there is no ledger at {location}. Make one with: discreet ledger init "
                f"--ledger {location}"
            )
        if keyring is not None and keyring.exists:
            # Before a file is made: somebody who deletes one must not get a fresh budget for it.
            raise LedgerError(
                f"the ledger {location} is gone, but its key {keyring.path} is there. Restore the "
                "ledger from a backup. To begin a new one, for other people's data, move the key "
                "away first."
            )
    return SqliteStore(path, create=create, read_only=read_only)


def found(store: Store, keyring: Keyring, *, testing: bool, name: str | None) -> None:
    """Write the first entry of a new ledger."""
    key = keyring.make(name or f"discreet-ledger/{secrets.token_hex(8)}")
    entry = {
        "kind": "ledger",
        "format": FORMAT,
        "origin": key.name,
        "vkey": key.vkey,
        "testing": bool(testing),
        "key": "ledger",
    }
    asked = key.seal(request(entry))
    (answer,) = store.commit_together([asked], Scribe(keyring).work)
    read_answer(key, asked, answer)  # raises why it was refused
    with store.read() as snapshot:
        vkeys = read_json(snapshot.facts(["ledger"])["ledger"])["vkeys"]
    keyring.settle(vkeys[-1])  # ours, or that of who was faster


def check_never_used(store: Store, keyring: Keyring | None) -> None:
    """Refuse to found a ledger where there was one: that would be a fresh budget for old data."""
    is_keyed = keyring is not None and keyring.exists  # first: whoever founds it settles it last
    with store.read() as snapshot:
        if snapshot.facts(["ledger"]):
            return  # another process has just founded it
        if snapshot.head() is not None or any(snapshot.counts()):
            raise TamperingFound("this ledger has lost what it began with. Verify a backup of it.")
    if is_keyed:
        raise LedgerError(
            f"the ledger is empty, but its key {keyring.path} is there. Restore the ledger from a "  # type: ignore[union-attr]
            "backup. To begin a new one, for other people's data, move the key away first."
        )


def checkpoint_at(pinned: str | os.PathLike[str]) -> Checkpoint:
    """Return what a checkpoint, given itself or as the name of a file, says."""
    try:
        return parse_checkpoint(note_at(pinned))
    except NotProven as error:
        raise ParameterError(f"this is no checkpoint: {error}.", parameter="pinned") from error


def note_at(pinned: str | os.PathLike[str]) -> str:
    """Return a checkpoint that is given itself, or as the name of a file."""
    if isinstance(pinned, str) and "\n" in pinned:
        return pinned
    try:
        return Path(pinned).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"there is no checkpoint to read at {os.fspath(pinned)!r}.", parameter="pinned"
        ) from error
