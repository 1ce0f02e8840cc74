"""Witnesses: parties of their own who remember how far a log had come, and vouch for it.

A custodian who restores an old copy of a ledger, or keeps two of them, can make every copy look
sound in itself. It shows only to somebody who remembers. A witness does, and cosigns a checkpoint
only if the log continues the last one that it cosigned. It is worth as much as it is independent:
run it on another machine, in the hands of somebody else.
"""

import base64
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

from discreet._json import read_json
from discreet.errors import LedgerError, LedgerUnavailable, TamperingFound
from discreet.ledger.log.keys import WitnessKey, sync_folder, write_file
from discreet.ledger.log.notes import cosign
from discreet.ledger.verifier import (
    LARGEST,
    Checkpoint,
    NotProven,
    check_checkpoint,
    check_consistency,
    follow_rotations,
    parse_checkpoint,
)

__all__ = ["Witness", "WitnessRequest"]

_FORMAT = "discreet-witness-state/1"


@final
class Witness:
    """Keep a witness's key and memory in a folder of its own.

    Lose the folder and you lose the memory: a witness that starts anew believes the first
    checkpoint it is shown. Restoring an old copy of the folder is as bad.

    >>> import tempfile
    >>> from discreet.ledger.log.keys import SigningKey
    >>> from discreet.ledger.log.notes import sign_checkpoint
    >>> witness = Witness.create(tempfile.mkdtemp() + "/w1", name="witness.example/w1")
    >>> log = SigningKey.generate("example.com/ledger")
    >>> line = witness.cosign(sign_checkpoint(log, 7, bytes(32)), [], vkey=log.vkey)
    >>> witness.last("example.com/ledger").size
    7
    >>> line = witness.cosign(sign_checkpoint(log, 6, bytes(32)), [])
    Traceback (most recent call last):
    discreet.errors.TamperingFound: the log example.com/ledger had 7 entries when this witness last
    saw it and now shows 6. An old copy was restored, or this is an old request. Not cosigned.
    """

    __slots__ = ("_folder", "_key")

    def __init__(self, folder: Path, key: WitnessKey) -> None:
        self._folder, self._key = folder, key

    @classmethod
    def create(cls, folder: str | os.PathLike[str], *, name: str) -> "Witness":
        """Make a witness with a fresh key in a new or empty folder.

        ``witness.pub`` in it is the public key to give to everybody.

        >>> import tempfile
        >>> Witness.create(tempfile.mkdtemp(), name="witness.example/w1").vkey[:19]
        'witness.example/w1+'
        """
        place, key = Path(folder), WitnessKey.generate(name)
        try:
            (place / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerUnavailable(f"{place} cannot be made ({error.strerror}).") from error
        key.save(place / "witness.key")  # refuses where there is one
        write_file(place / "witness.pub", f"{key.vkey}\n".encode(), replace=True, mode=0o644)
        sync_folder(place.absolute().parent)
        return cls(place, key)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Witness":
        """Return the witness that lives in a folder.

        >>> import tempfile
        >>> there = tempfile.mkdtemp()
        >>> made = Witness.create(there, name="witness.example/w1")
        >>> Witness.open(there).vkey == made.vkey
        True
        """
        place = Path(folder)
        key = WitnessKey.load(place / "witness.key")
        if not (place / "logs").is_dir():
            raise LedgerError(f"{place} has a key, but its memory, the folder logs, is gone.")
        return cls(place, key)

    @property
    def vkey(self) -> str:
        """The public key that others check cosignatures with."""
        return self._key.vkey

    def last(self, origin: str) -> Checkpoint | None:
        """Return the last checkpoint of a log that was cosigned.

        >>> import tempfile
        >>> witness = Witness.create(tempfile.mkdtemp(), name="witness.example/w1")
        >>> print(witness.last("example.com/ledger"))
        None
        """
        known = self._remembered(origin)
        return None if known is None else parse_checkpoint(known.note)

    def origins(self) -> tuple[str, ...]:
        """Return the names of all logs this witness knows.

        >>> import tempfile
        >>> Witness.create(tempfile.mkdtemp(), name="witness.example/w1").origins()
        ()
        """
        files = (self._folder / "logs").glob("*.json")
        return tuple(sorted(parse_checkpoint(_read(file).note).origin for file in files))

    def cosign(
        self,
        note: str,
        consistency: Sequence[bytes],
        *,
        vkey: str | None = None,
        rotations: Sequence[object] = (),
        old: int | None = None,
        now: int | None = None,
    ) -> str:
        """Return a signature line for a checkpoint that continues the last one cosigned.

        ``consistency`` proves it, from the size of :meth:`last` to that of the note (nothing to
        prove for a log seen for the first time). Then ``vkey``, the log's public key, must be
        given: it is believed, so get it from where the custodian publishes it. If the log changed
        its key since, ``rotations`` has its ``rotate`` entries, as in a receipt. ``old`` is the
        size that the proof starts from, if the request says so.

        The checkpoint is remembered durably before the line is returned.

        >>> import tempfile
        >>> from discreet.ledger.log.keys import SigningKey
        >>> from discreet.ledger.log.notes import sign_checkpoint
        >>> from discreet.ledger.verifier import leaf_hash, node_hash
        >>> a, b = leaf_hash(b"a"), leaf_hash(b"b")
        >>> witness = Witness.create(tempfile.mkdtemp(), name="witness.example/w1")
        >>> log = SigningKey.generate("example.com/ledger")
        >>> first = witness.cosign(sign_checkpoint(log, 1, a), [], vkey=log.vkey)
        >>> second = witness.cosign(sign_checkpoint(log, 2, node_hash(a, b)), [b])
        >>> second[2:20]
        'witness.example/w1'
        """
        asked = parse_checkpoint(note)
        with self._alone():
            known = self._remembered(asked.origin)
            if known is None:
                if vkey is None:
                    raise NotProven(
                        f"this witness does not know the log {asked.origin}; give its public key"
                    )
                known = _Memory(note="", vkeys=(vkey,), time=0)
            elif vkey is not None and vkey not in known.vkeys:
                raise NotProven(
                    f"this witness knows the log {asked.origin} by another key than the one given"
                )
            signer = follow_rotations(known.vkeys[-1], rotations, asked)
            if known.note and any(_has_signed(note, old_key) for old_key in known.vkeys[:-1]):
                # An old copy, from before the key was rotated, deserves to be called that.
                _check_growth(parse_checkpoint(known.note), asked, consistency, old)
            check_checkpoint(note, signer)
            if known.note:
                _check_growth(parse_checkpoint(known.note), asked, consistency, old)
            elif consistency or old:
                raise NotProven(f"this witness has not seen {asked.origin}; prove it from size 0")
            # "As of this time I know of no larger tree" would turn false if time ran backwards.
            moment = max(int(time.time()) if now is None else now, known.time)
            line = cosign(self._key, note, moment)
            vkeys = known.vkeys if signer == known.vkeys[-1] else (*known.vkeys, signer)
            self._remember(asked.origin, _Memory(note=note, vkeys=vkeys, time=moment))
        return line

    def _file(self, origin: str) -> Path:
        # The name of a log has slashes, and may differ from another's in upper case only.
        return self._folder / "logs" / f"{hashlib.sha256(origin.encode()).hexdigest()}.json"

    def _remembered(self, origin: str) -> "_Memory | None":
        file = self._file(origin)
        return _read(file) if file.exists() else None

    def _remember(self, origin: str, memory: "_Memory") -> None:
        text = json.dumps({"format": _FORMAT, **memory._asdict()}, indent=1)
        write_file(self._file(origin), f"{text}\n".encode(), replace=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads and processes out between looking and remembering."""
        try:
            handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerUnavailable(
                f"{self._folder} cannot be written ({error.strerror})."
            ) from error
        try:
            _lock(handle)
            yield
        finally:
            os.close(handle)  # which lets go of the lock, as does a crash


class _Memory(NamedTuple):
    """What a witness knows about one log: its last checkpoint, its keys in order, the time."""

    note: str
    vkeys: tuple[str, ...]
    time: int


def _read(file: Path) -> _Memory:
    try:
        found: dict[str, Any] = read_json(file.read_bytes(), strict=True)
        if found.pop("format") != _FORMAT or type(found["time"]) is not int:
            raise ValueError
        memory = _Memory(**{**found, "vkeys": tuple(found["vkeys"])})
        check_checkpoint(memory.note, memory.vkeys[-1])
    except OSError as error:
        raise LedgerUnavailable(f"{file} cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise TamperingFound(f"{file} is not what this witness wrote.") from error
    return memory


def _has_signed(note: str, vkey: str) -> bool:
    try:
        check_checkpoint(note, vkey)
    except NotProven:
        return False
    return True


def _check_growth(
    last: Checkpoint, asked: Checkpoint, consistency: Sequence[bytes], old: int | None
) -> None:
    if asked.size < last.size:
        raise TamperingFound(
            f"the log {asked.origin} had {last.size} entries when this witness last saw it and now "
            f"shows {asked.size}. An old copy was restored, or this is an old request. "
            "Not cosigned."
        )
    if asked.size == last.size and asked.root != last.root:
        raise TamperingFound(
            f"the log {asked.origin} has shown two different histories of {asked.size} entries, "
            "both signed by its key. Not cosigned."
        )
    if old is not None and old != last.size:
        raise NotProven(f"the proof starts from size {old}; it must start from {last.size}")
    try:
        check_consistency(last.size, last.root, asked.size, asked.root, consistency)
    except NotProven as error:
        raise TamperingFound(
            f"the log {asked.origin} of {asked.size} entries does not continue the one of "
            f"{last.size} that this witness cosigned, or the proof is not about these sizes. "
            "Not cosigned."
        ) from error


class WitnessRequest(NamedTuple):
    """What a log sends to a witness: the size to start from, the proof and the checkpoint.

    As text (C2SP tlog-witness) it may be sent in any way.

    >>> print(WitnessRequest(old=1, consistency=(bytes(32),), note="(signed note)"))
    old 1
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
    <BLANKLINE>
    (signed note)
    """

    old: int
    consistency: Sequence[bytes]
    note: str

    def __str__(self) -> str:
        proof = [base64.b64encode(item).decode() for item in self.consistency]
        return "\n".join([f"old {self.old}", *proof]) + f"\n\n{self.note}"

    @classmethod
    def parse(cls, text: str) -> "WitnessRequest":
        """Read a request for a cosignature. Nothing in it is believed yet.

        >>> asked = WitnessRequest(old=1, consistency=(bytes(32),), note="(signed note)")
        >>> WitnessRequest.parse(str(asked)) == asked
        True
        """
        head, gap, note = text.partition("\n\n")
        first, *rest = head.split("\n")
        old = re.fullmatch(r"old (0|[1-9][0-9]{0,18})", first)
        if not gap or old is None or int(old[1]) > LARGEST or len(rest) > 63:
            raise NotProven("this is not a request to a witness")
        if not all(re.fullmatch(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", line) for line in rest):
            raise NotProven("the request has a hash that is not one")
        return cls(int(old[1]), tuple(base64.b64decode(line) for line in rest), note)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)
