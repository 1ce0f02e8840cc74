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
from discreet.ledger.rules.entry_forms import ACCOUNT_NAME, REASON, SUBJECT, is_act
from discreet.ledger.session import LedgerSession
from discreet.ledger.verifier import (
    NotProven,
    check_cosignatures,
    parse_checkpoint,
    rotation_text,
)
from discreet.ledger.writing import opening
from discreet.ledger.writing.request import new_key, text

__all__ = ["LedgerCustody", "accept_rollback", "imported"]

Progress = Callable[[int, int], None]


class LedgerCustody:
    """The half of :class:`discreet.ledger.Ledger` that keeps it, and spends nothing."""

    def __init__(self, session: LedgerSession) -> None:
        self._session = session

    def rotate(self) -> Receipt:
        """Sign with a new key from now on. The entry is signed by the old one and the new one.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     old = ledger.vkey
        ...     receipt = ledger.rotate()
        ...     old != ledger.vkey
        True
        """
        return rotate(self._session)

    def witness(self, witness: Witness) -> str:
        """Let a witness cosign the log as it is now; return the checkpoint with its signature.

        The witness asks for a proof that nothing it has seen before was changed. Its statement
        becomes an entry.

        >>> import tempfile
        >>> from discreet.testing import temporary_ledger
        >>> witness = Witness.create(tempfile.mkdtemp(), name="witness.example/w1")
        >>> with temporary_ledger() as ledger:
        ...     ledger.witness(witness).count("witness.example/w1")
        1
        """
        return cosign(self._session, witness)

    def add_cosignature(self, note: str, *, vkey: str) -> str:
        """Put a checkpoint that a witness cosigned elsewhere into the log.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.add_cosignature(ledger.checkpoint(), vkey=ledger.vkey)
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: ...
        """
        return add_cosignature(self._session, note, vkey=vkey)

    def export(
        self, path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Write the whole log to a new text file that verifies on its own.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.export(os.path.join(tempfile.mkdtemp(), "ledger.ndjson"))
        1
        """
        return export(self._session, path, progress=progress)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a ledger that is a file, while it is in use, to a new file.

        The key is not copied: keep it elsewhere. A server has its own backups; or use export.

        >>> import os, tempfile
        >>> from discreet.ledger import Ledger
        >>> from discreet.testing import temporary_ledger
        >>> copy = os.path.join(tempfile.mkdtemp(), "copy.db")
        >>> with temporary_ledger() as ledger:
        ...     ledger.backup(copy)
        >>> Ledger.open(copy, create=False).size
        1
        """
        self._session.store.backup(path)

    def accept_clock(self, *, who: str, reason: str) -> Receipt:
        """Confirm this machine's clock after a long silence.

        A clock that jumps far ahead would open allowances of the future, so nothing is written
        when the last entry is too old, until somebody says that the clock is right.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.accept_clock(who="chris", reason="back from the archive").index
        1
        """
        entry = {
            "kind": "clock",
            "who": text(who, name="who"),
            "reason": text(reason, name="reason", longest=REASON),
            "key": new_key(),
        }
        return self._session.submit(entry)

    def act(
        self,
        act: str,
        *,
        who: str,
        subject: str,
        reason: str | None = None,
        account: str | None = None,
    ) -> Receipt:
        """Put on record what a custodian did that changes no budget, such as ``"key.revoked"``.

        ``act`` is two words of small letters with a dot between: what it was about, and what was
        done. ``subject`` names which one, in at most 128 characters that everybody may read who
        reads the log: a name or a number, never a secret. With an ``account`` it is part of the
        history of that one.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     _ = ledger.act("key.revoked", who="chris", subject="ana-2", reason="a lost laptop")
        ...     ledger.history()[-1]["subject"]
        'ana-2'
        """
        return put_act(self._session, act, who=who, subject=subject, reason=reason, account=account)


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


def cosign(session: LedgerSession, witness: Witness) -> str:
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


def put_act(
    session: LedgerSession,
    act: str,
    *,
    who: str,
    subject: str,
    reason: str | None,
    account: str | None,
) -> Receipt:
    """See :meth:`discreet.ledger.Ledger.act`."""
    if not is_act(act):
        raise ParameterError(
            "act must be two words of small letters with a dot between, such as key.revoked, of at "
            "most 40 characters.",
            parameter="act",
        )
    entry = {
        "kind": "act",
        "act": act,
        "who": text(who, name="who"),
        "subject": text(subject, name="subject", longest=SUBJECT),
        "key": new_key(),
    }
    if reason is not None:
        entry["reason"] = text(reason, name="reason", longest=REASON)
    if account is not None:
        entry["account"] = text(account, name="account", longest=ACCOUNT_NAME)
    return session.submit(entry)
