"""The ledger: accounts in one signed, append-only log."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

from discreet._exact import whole
from discreet.accounting.filters import FilterKind
from discreet.errors import LedgerError, ParameterError
from discreet.ledger.accounts.account import Account
from discreet.ledger.accounts.creation import account_entry
from discreet.ledger.checking.verification import Verification
from discreet.ledger.checking.verify import verify
from discreet.ledger.custody import LedgerCustody, accept_rollback, imported
from discreet.ledger.log.proofs import Log
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.definition import Policy
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.rules.entry_forms import ACCOUNT_NAME, is_name
from discreet.ledger.session import LedgerSession
from discreet.ledger.writing import opening
from discreet.privacy import Guarantee, Neighbours, Unit

__all__ = ["Ledger"]


@final
class Ledger(LedgerCustody):
    """Everything ever released about some populations, in a log that nobody can quietly change.

    Open one with :meth:`open`. Threads may share it; other processes and hosts open their own.

    >>> import tempfile, os
    >>> from discreet.accounting import LaplaceLoss
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(os.path.join(folder.name, "budget.db"))
    >>> account = ledger.create("salaries", unit=Unit.record(), neighbours="add_remove",
    ...                         guarantee=Guarantee(epsilon=5, delta=1e-6))
    >>> receipt = account.charge(LaplaceLoss(noise_multiplier=2), who="ana", purpose="report")
    >>> ledger.prove(receipt).is_proven
    True
    >>> print(ledger.verify())
    3 entries verified...
    >>> ledger.close(); folder.cleanup()
    """

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        key: str | os.PathLike[str] | None = None,
        create: bool = True,
        read_only: bool = False,
        testing: bool = False,
        name: str | None = None,
        pinned: str | os.PathLike[str] | None = None,
    ) -> "Ledger":
        """Open a ledger: a file, or a PostgreSQL database as ``postgresql://...``.

        A new one is made where there is none, unless ``create`` is false, together with its secret
        key: beside the file, with ``.key`` behind its name, or where ``key`` says. Without its key
        a ledger can be read and verified, not written. ``testing`` makes a ledger that takes
        charges for seeded noise, for ever marked as such; ``name`` becomes the origin of its
        checkpoints. ``pinned`` is a checkpoint, or a file with one, that the ledger must extend:
        then an old copy in the place of a newer one is noticed.

        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger.open(os.path.join(folder, "none.db"), create=False)
        Traceback (most recent call last):
            ...
        discreet.errors.LedgerUnavailable: there is no ledger at ...
        """
        if not isinstance(location, str | os.PathLike):
            raise ParameterError("location must be a path or an address.", parameter="location")
        session = LedgerSession.open(
            os.fspath(location),
            key=key,
            create=create,
            read_only=read_only,
            testing=testing,
            name=name,
            pinned=pinned,
        )
        return cls(session)

    @property
    def origin(self) -> str:
        """The name that its checkpoints begin with; no two ledgers share one."""
        return str(self._session.known("origin"))

    @property
    def vkey(self) -> str:
        """The public key that signs now: ``discreet verify`` needs it."""
        return str(self._session.known("vkeys", -1))

    @property
    def anchor(self) -> str | None:
        """The file in which this host remembers how far it had come; None for readers."""
        return None if self._session.anchor is None else str(self._session.anchor.path)

    @property
    def is_testing(self) -> bool:
        """Whether it takes charges for seeded noise, so that its budgets protect nobody."""
        return bool(self._session.known("testing"))

    @property
    def size(self) -> int:
        """How many entries it has."""
        with self._session.read() as snapshot:
            return Log(snapshot).head().size

    def create(
        self,
        name: str,
        *,
        unit: Unit | str,
        neighbours: Neighbours | str,
        guarantee: Guarantee,
        kind: FilterKind | None = None,
        policy: Policy = "deny",
        sources: Sequence[Mapping[str, Any]] = (),
        override: str | None = None,
        who: str | None = None,
    ) -> Account:
        """Open an account for a population of units.

        ``kind`` is that of its filter. ``policy`` says what happens at exhaustion: ``deny``;
        ``degrade`` offers the least noise that still fits; ``wait`` points to the next period, for
        units that have one. ``sources`` are registered with it: mappings of name, version,
        identities and, if wished, content and types, as for :meth:`Account.register`. ``who`` opens
        it is on record, where that is said.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.create("visits", unit=Unit.column("user").per("day"), policy="wait",
        ...                   neighbours="add_remove", guarantee=Guarantee(epsilon=1))
        Account('visits', Guarantee(epsilon=1, delta=0), used=0)
        """
        entry, sketches = account_entry(
            self._session,
            name,
            unit=Unit.of(unit),
            neighbours=neighbours,
            guarantee=guarantee,
            kind=kind,
            policy=policy,
            sources=sources,
            override=override,
            who=who,
        )
        self._session.submit(entry, sketches=sketches)
        return Account(self, name)

    def __getitem__(self, name: str) -> Account:
        self._session.definition(name, fresh=True)
        return Account(self, name)

    def __contains__(self, name: object) -> bool:
        if not is_name(name, ACCOUNT_NAME):
            return False
        with self._session.read() as snapshot:
            return bool(snapshot.facts([f"account/{name}"]))

    def __iter__(self) -> Iterator[Account]:
        with self._session.read() as snapshot:
            names = [name.partition("/")[2] for name, _ in snapshot.facts_under("account/")]
        return iter([Account(self, name) for name in names])

    def history(self, account: str | None = None, *, last: int | None = None) -> list[Entry]:
        """Return entries, oldest first: all, those of one account, or only the last few.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     [entry["kind"] for entry in ledger.history()]
        ['ledger']
        """
        with self._session.read() as snapshot:
            size = Log(snapshot).head().size
            count = size if last is None else whole(last, name="last", minimum=0)
            if count < size:
                rows = snapshot.last_rows(size, count, account=account)
            else:
                rows = list(snapshot.rows(0, size, account=account))
            return [decode(row.body) for row in rows]

    def checkpoint(self) -> str:
        """Return the signed checkpoint of the log as it is now. Keep it somewhere else.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.checkpoint().splitlines()[1]  # how many entries it signs
        '1'
        """
        with self._session.read() as snapshot:
            return Log(snapshot).head().note

    def prove(self, receipt: Receipt | int, *, witnessed: bool = False) -> Receipt:
        """Return a receipt, or an entry, with the proof that it is in the log.

        ``witnessed`` proves it in the last checkpoint that a witness cosigned.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.prove(0).is_proven
        True
        """
        with self._session.read() as snapshot:
            log = Log(snapshot)
            if isinstance(receipt, Receipt):
                indices = [int(entry["index"]) for entry in receipt.entries]
            else:
                indices = log.with_its_charge(receipt)
            bodies = tuple(log.row(index).body for index in indices)
            if isinstance(receipt, Receipt) and bodies != receipt.bodies:
                raise LedgerError("this receipt is of another ledger, or the ledger was altered.")
            proof = log.receipt(indices, witnessed=witnessed)
        return Receipt(bodies=bodies, proof=proof)

    def answer_of(self, release: int) -> bytes:
        """Return the answer that a release entry commits to, as it was kept.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=1), who="ana", purpose="report")
        ...     _ = account.release(receipt, b"42")
        ...     account.ledger.answer_of(3)
        b'42'
        """
        index = whole(release, name="release", minimum=0)
        with self._session.read() as snapshot:
            kept = snapshot.answer(index) if index < Log(snapshot).head().size else None
        if kept is None:
            raise LedgerError(f"entry {index} is no release, so no answer was kept with it.")
        return kept

    def fingerprint(self, text: str, *, domain: str) -> str:
        """Return what a text is known by again, which tells nothing of it to who has no key.

        The same text has another fingerprint in another ``domain``, and in another ledger.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     known = ledger.fingerprint("payroll 2026", domain="version")
        ...     known == ledger.fingerprint("payroll 2026", domain="version"), len(known)
        (True, 64)
        """
        return self._session.fingerprint(text, domain=domain)

    def witnessed(self) -> list[tuple[str, str]]:
        """Return the checkpoints that witnesses cosigned, and the key of each, oldest first.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.witnessed()
        []
        """
        with self._session.read() as snapshot:
            log = Log(snapshot)
            found = [log.entry(index) for index in log.witnessed()]
            return [(str(entry["note"]), str(entry["vkey"])) for entry in found]

    def consistency(self, old: int, new: int | None = None) -> list[bytes]:
        """Return the proof that the first ``old`` entries are still what they were.

        It is for the log as it is now, or as it was with ``new`` entries.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.consistency(1)  # nothing to prove: it has one entry still
        []
        """
        old = whole(old, name="old", minimum=0)
        new = None if new is None else whole(new, name="new", minimum=0)
        with self._session.read() as snapshot:
            log = Log(snapshot)
            return log.consistency(old, log.head().size if new is None else new)

    def verify(
        self,
        *,
        pinned: str | os.PathLike[str] | None = None,
        vkey: str | None = None,
        since: Verification | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Verification:
        """Check everything: chain, tree, signatures, arithmetic, balances, kept answers.

        Raises :class:`TamperingFound`, which names the first bad entry. ``pinned`` is a checkpoint
        from elsewhere that the log must extend, ``vkey`` a key that it was once signed with,
        ``since`` an earlier result to go on from.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     print(ledger.verify(pinned=ledger.checkpoint()))
        1 entries verified
        """
        notes = [] if pinned is None else [opening.note_at(pinned)]
        with self._session.read() as snapshot:
            return verify(snapshot, pinned=notes, vkey=vkey, since=since, progress=progress)

    @classmethod
    def imported(
        cls,
        path: str | os.PathLike[str],
        location: str | os.PathLike[str],
        *,
        key: str | os.PathLike[str] | None = None,
        vkey: str | None = None,
        pinned: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Ledger":
        """Make a ledger from an export, once every entry of it was verified.

        An old export would bring back a budget that is spent since: say which checkpoint it must
        extend with ``pinned``. To go on writing, its key must be in place: beside the new file, or
        where ``key`` says.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> folder = tempfile.mkdtemp()
        >>> file = os.path.join(folder, "ledger.ndjson")
        >>> with temporary_ledger() as ledger:
        ...     _ = ledger.export(file)
        >>> Ledger.imported(file, os.path.join(folder, "copy.db")).size
        1
        """
        imported(path, location, vkey=vkey, pinned=pinned, progress=progress)
        return cls.open(location, key=key, create=False)

    @classmethod
    def accept_rollback(
        cls,
        location: str | os.PathLike[str],
        *,
        who: str,
        reason: str,
        key: str | os.PathLike[str] | None = None,
    ) -> Receipt:
        """Go on with a copy that is older than this host has seen; an entry says what is gone.

        >>> Ledger.accept_rollback("none.db", who="chris", reason="the disk died")
        Traceback (most recent call last):
            ...
        discreet.errors.LedgerUnavailable: there is no ledger at none.db...
        """
        with cls(LedgerSession.trusting(os.fspath(location), key=key)) as ledger:
            return accept_rollback(ledger._session, who=who, reason=reason)

    def close(self) -> None:
        """Let go of the database. Calling it twice does no harm.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.close()
        """
        self._session.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.origin!r}, {self.size} entries)"
