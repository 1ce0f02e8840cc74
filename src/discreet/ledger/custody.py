"""What custodians do with a whole ledger: rotate its key, have it witnessed, bring it elsewhere."""

import os
from base64 import b64encode
from collections.abc import Callable

from discreet.errors import LedgerError, LedgerUnavailable, ParameterError, TamperingFound
from discreet.ledger.checking import exports
from discreet.ledger.checking.witness import Witness
from discreet.ledger.log.notes import add_signature
from discreet.ledger.log.proofs import Log
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.entry import NOTHING_BEFORE, decode
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.session import LedgerSession
from discreet.ledger.verifier import (
    NotProven,
    check_cosignatures,
    parse_checkpoint,
    rotation_text,
)
from discreet.ledger.writing import opening
from discreet.ledger.writing.request import new_key, text

__all__ = ["accept_rollback", "add_cosignature", "export", "imported", "rotate", "witness"]

Progress = Callable[[int, int], None]


def rotate(session: LedgerSession) -> Receipt:
    """See :meth:`discreet.ledger.Ledger.rotate`."""
    keyring = session.keyring()
    old = keyring.key(str(session.known("vkeys", -1)))
    new = keyring.begin_rotation(old.vkey)
    for _ in range(100):
        index = _size(session)
        said = rotation_text(old.name, index, new.vkey)
        entry = {
            "kind": "rotate",
            "vkey": new.vkey,
            "by_old": b64encode(old.sign(said)).decode(),
            "by_new": b64encode(new.sign(said)).decode(),
            "key": new_key(),
        }
        try:
            receipt = session.submit(entry)
        except LedgerError:
            if _size(session) == index:
                raise
            continue  # somebody wrote meanwhile, and the signatures are for one place only
        keyring.settle(new.vkey)
        return receipt
    raise LedgerUnavailable("the ledger is too busy to rotate its key. Try again later.")


def _size(session: LedgerSession) -> int:
    with session.read() as snapshot:
        return Log(snapshot).head().size


def witness(session: LedgerSession, witness: Witness) -> str:
    """See :meth:`discreet.ledger.Ledger.witness`."""
    session.keyring()  # refuses where nothing may be written
    seen = witness.last(str(session.known("origin")))
    with session.read() as snapshot:
        log = Log(snapshot)
        head = log.head()
        old = seen.size if seen is not None and seen.size <= head.size else 0
        proof = log.consistency(old, head.size)
        rotations = [log.proven(index, head.size) for index in log.rotations()]
        first = str(decode(log.row(0).body)["vkey"])
    # A witness that meets this log for the first time believes the key that it is shown.
    vkey = first if seen is None else None
    try:
        line = witness.cosign(head.note, proof, vkey=vkey, rotations=rotations)
    except NotProven as error:
        raise LedgerError(f"the witness did not sign: {error}.") from error
    return add_cosignature(session, add_signature(head.note, line), vkey=witness.vkey)


def add_cosignature(session: LedgerSession, note: str, *, vkey: str) -> str:
    """See :meth:`discreet.ledger.Ledger.add_cosignature`."""
    try:
        is_signed = bool(check_cosignatures(note, [vkey]))
        checkpoint = parse_checkpoint(note)
    except NotProven as error:
        why = f"this is no cosigned checkpoint: {error}."
        raise ParameterError(why, parameter="note") from error
    if not is_signed:
        raise ParameterError("this key has not signed this checkpoint.", parameter="vkey")
    with session.read() as snapshot:
        Log(snapshot).extends(checkpoint)
    session.submit({"kind": "witness", "note": note, "vkey": vkey, "key": new_key()})
    return note


def accept_rollback(session: LedgerSession, *, who: str, reason: str) -> Receipt:
    """See :meth:`discreet.ledger.Ledger.accept_rollback`."""
    session.keyring()  # refuses where nothing may be written
    assert session.anchor is not None
    seen = None
    try:
        seen = session.anchor.seen()
        with session.read() as snapshot:
            session.anchor.check(snapshot, seen)
    except TamperingFound:
        pass
    else:
        raise ParameterError("nothing was rolled back, as far as this host knows.", parameter="who")
    entry = {
        "kind": "rollback",
        "who": text(who, name="who"),
        "reason": text(reason, name="reason", longest=REASON),
        "size": 0 if seen is None else seen.size,
        "root": NOTHING_BEFORE if seen is None else seen.root.hex(),
        "key": new_key(),
    }
    receipt = session.submit(entry)
    with session.read() as snapshot:
        session.anchor.write(Log(snapshot).head().note)
    return receipt


def export(
    session: LedgerSession, path: str | os.PathLike[str], *, progress: Progress | None
) -> int:
    """See :meth:`discreet.ledger.Ledger.export`."""
    try:
        with session.read() as snapshot, open(path, "xb", opener=_for_the_owner) as out:
            return exports.write(snapshot, out, progress=progress)
    except FileExistsError:
        raise ParameterError(f"{path} exists already.", parameter="path") from None
    except OSError as error:
        raise LedgerUnavailable(f"{path} cannot be written ({error.strerror}).") from error


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # answers and names are in it


def imported(
    path: str | os.PathLike[str],
    location: str | os.PathLike[str],
    *,
    vkey: str | None,
    pinned: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> None:
    """Fill a new store from an export; see :meth:`discreet.ledger.Ledger.imported`."""
    found = exports.Export(path)
    notes = [] if pinned is None else [opening.note_at(pinned)]
    verified = found.verify(vkey=vkey, pinned=notes, progress=progress)
    store = opening.store_at(os.fspath(location), None, create=True, read_only=False)
    try:
        exports.load_into(store, found, verified)
    finally:
        store.close()
