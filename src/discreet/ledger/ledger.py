"""The ledger: accounts in one signed, append-only log."""

import json
import logging
import os
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, final

from discreet._exact import whole
from discreet.accounting import FilterRules, Loss
from discreet.accounting.filters import FilterKind
from discreet.errors import (
    AccountNotFound,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    TamperingFound,
)
from discreet.ledger.accounts import Account
from discreet.ledger.checking import exports
from discreet.ledger.checking.verification import Verification, verify
from discreet.ledger.checking.witness import Witness
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.notes import add_signature
from discreet.ledger.log.proofs import Log
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.balance import unreadable
from discreet.ledger.rules.definition import POLICIES, Definition, Policy
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.stores.protocol import Snapshot, Store
from discreet.ledger.stores.sqlite.store import SqliteStore
from discreet.ledger.verifier import (
    NotProven,
    check_cosignatures,
    parse_checkpoint,
    rotation_text,
)
from discreet.ledger.writing import opening
from discreet.ledger.writing import request as requests
from discreet.ledger.writing.group_commit import GroupCommit
from discreet.ledger.writing.scribe import Scribe, read_answer
from discreet.privacy import Guarantee, Neighbours, Unit

if TYPE_CHECKING:
    from discreet.ledger.log.keys import SigningKey

__all__ = ["Ledger"]

_logger = logging.getLogger("discreet.ledger")
_FRESH = 1.0  # seconds for which an account is believed unchanged when pricing a charge


@final
class Ledger:
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

    def __init__(self, store: Store, keyring: Keyring | None, *, read_only: bool) -> None:
        self._store = store
        self._keyring = keyring
        self._is_read_only = read_only
        self._can_write = keyring is not None and not keyring.is_empty and not read_only
        self._known: dict[str, tuple[float, Definition]] = {}
        self._sealing: SigningKey | None = None
        self._start()

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
        place = os.fspath(location)
        keyring = opening.keyring_at(place, key)
        store = opening.store_at(place, keyring, create=create, read_only=read_only)
        try:
            with store.read() as snapshot:
                known = snapshot.facts(["ledger"])
            if not known:
                opening.check_never_used(store, keyring)
                if read_only or keyring is None or not create:
                    raise LedgerUnavailable(
                        "this ledger is empty. Open it once for writing, and say where its key "
                        f"shall be kept: key=... or {opening.KEY_VARIABLE}."
                    )
                opening.found(store, keyring, testing=testing, name=name)
            ledger = cls(store, keyring, read_only=read_only)
            ledger._check(testing=testing, pinned=pinned)
        except BaseException:
            store.close()
            raise
        return ledger

    @property
    def origin(self) -> str:
        """The name that its checkpoints begin with; no two ledgers share one."""
        return str(self._known_of("origin"))

    @property
    def vkey(self) -> str:
        """The public key that signs now: ``discreet verify`` needs it."""
        return str(self._known_of("vkeys", -1))

    @property
    def is_testing(self) -> bool:
        """Whether it takes charges for seeded noise, so that its budgets protect nobody."""
        return bool(self._known_of("testing"))

    @property
    def size(self) -> int:
        """How many entries it has."""
        with self._read() as snapshot:
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
    ) -> Account:
        """Open an account for a population of units.

        ``kind`` is that of its filter. ``policy`` says what happens at exhaustion: ``deny``;
        ``degrade`` offers the least noise that still fits; ``wait`` points to the next period, for
        units that have one. ``sources`` are registered with it: mappings of name, version and
        identities, as for :meth:`Account.register`.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.create("visits", unit=Unit.column("user").per("day"), policy="wait",
        ...                   neighbours="add_remove", guarantee=Guarantee(epsilon=1))
        Account('visits', Guarantee(epsilon=1, delta=0), used=0)
        """
        protected = Unit.of(unit)
        if policy not in POLICIES:
            raise ParameterError(
                f"policy must be one of {', '.join(POLICIES)}.", parameter="policy"
            )
        if policy == "wait" and protected.period is None:
            raise ParameterError(
                "waiting for the next period helps only where a person is protected in each "
                "period by itself, such as Unit.column('user_id').per('day'). Otherwise periods "
                "add up.",
                parameter="policy",
            )
        rules = FilterRules(guarantee, kind=kind, neighbours=neighbours)
        if rules.neighbours is None:
            raise ParameterError(
                "say which neighbours: add_remove is usual.", parameter="neighbours"
            )
        entry = {
            "kind": "account",
            "name": _account_name(name),
            "unit": protected.to_dict(),
            "neighbours": rules.neighbours.value,
            "policy": policy,
            "filter": rules.settings,
            "sources": [self._source_of(source) for source in sources],
            "key": requests.new_key(),
        }
        self._submit(entry)
        return Account(self, name)

    def __getitem__(self, name: str) -> Account:
        self._definition(name, fresh=True)
        return Account(self, name)

    def __contains__(self, name: object) -> bool:
        return any(account.name == name for account in self)

    def __iter__(self) -> Iterator[Account]:
        with self._read() as snapshot:
            names = [name.partition("/")[2] for name, _ in snapshot.facts_under("account/")]
        return iter([Account(self, name) for name in names])

    def history(self, account: str | None = None, *, last: int | None = None) -> list[Entry]:
        """Return entries, oldest first: all, those of one account, or only the last few.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     [entry["kind"] for entry in ledger.history()]
        ['ledger']
        """
        with self._read() as snapshot:
            size = Log(snapshot).head().size
            if last is not None:
                last = whole(last, name="last", minimum=0)
            start = 0 if last is None or account is not None else max(0, size - last)
            rows = deque(snapshot.rows(start, size, account=account), maxlen=last)
            return [decode(row.body) for row in rows]

    def checkpoint(self) -> str:
        """Return the signed checkpoint of the log as it is now. Keep it somewhere else.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.checkpoint().splitlines()[1]  # how many entries it signs
        '1'
        """
        with self._read() as snapshot:
            return Log(snapshot).head().note

    def prove(self, receipt: Receipt | int, *, witnessed: bool = False) -> Receipt:
        """Return a receipt, or an entry, with the proof that it is in the log.

        ``witnessed`` proves it in the last checkpoint that a witness cosigned.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.prove(0).is_proven
        True
        """
        with self._read() as snapshot:
            log = Log(snapshot)
            if isinstance(receipt, Receipt):
                indices = [int(entry["index"]) for entry in receipt.entries]
            else:
                indices = self._with_its_charge(log, receipt)
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
        with self._read() as snapshot:
            kept = snapshot.answer(index) if index < Log(snapshot).head().size else None
        if kept is None:
            raise LedgerError(f"entry {index} is no release, so no answer was kept with it.")
        return kept

    def witnessed(self) -> list[tuple[str, str]]:
        """Return the checkpoints that witnesses cosigned, and the key of each, oldest first.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.witnessed()
        []
        """
        with self._read() as snapshot:
            log = Log(snapshot)
            found = [log.entry(index) for index in log.witnessed()]
            return [(str(entry["note"]), str(entry["vkey"])) for entry in found]

    def consistency(self, old: int) -> list[bytes]:
        """Return the proof that the first ``old`` entries are still what they were.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.consistency(1)  # nothing to prove: it has one entry still
        []
        """
        old = whole(old, name="old", minimum=0)
        with self._read() as snapshot:
            log = Log(snapshot)
            return log.consistency(old, log.head().size)

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
        with self._read() as snapshot:
            return verify(snapshot, pinned=notes, vkey=vkey, since=since, progress=progress)

    def rotate(self) -> Receipt:
        """Sign with a new key from now on. The entry is signed by the old one and the new one.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     old = ledger.vkey
        ...     receipt = ledger.rotate()
        ...     old != ledger.vkey
        True
        """
        keyring = self._writing()
        old = keyring.key(self.vkey)
        new = keyring.begin_rotation(old.vkey)
        for _ in range(100):
            index = self.size
            said = rotation_text(old.name, index, new.vkey)
            entry = {
                "kind": "rotate",
                "vkey": new.vkey,
                "by_old": b64encode(old.sign(said)).decode(),
                "by_new": b64encode(new.sign(said)).decode(),
                "key": requests.new_key(),
            }
            try:
                receipt = self._submit(entry)
            except LedgerError:
                if self.size == index:
                    raise
                continue  # somebody wrote meanwhile, and the signatures are for one place only
            keyring.settle(new.vkey)
            return receipt
        raise LedgerUnavailable("the ledger is too busy to rotate its key. Try again later.")

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
        self._writing()
        seen = witness.last(self.origin)
        with self._read() as snapshot:
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
        return self.add_cosignature(add_signature(head.note, line), vkey=witness.vkey)

    def add_cosignature(self, note: str, *, vkey: str) -> str:
        """Put a checkpoint that a witness cosigned elsewhere into the log.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.add_cosignature(ledger.checkpoint(), vkey=ledger.vkey)
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: ...
        """
        try:
            is_signed = bool(check_cosignatures(note, [vkey]))
            checkpoint = parse_checkpoint(note)
        except NotProven as error:
            why = f"this is no cosigned checkpoint: {error}."
            raise ParameterError(why, parameter="note") from error
        if not is_signed:
            raise ParameterError("this key has not signed this checkpoint.", parameter="vkey")
        with self._read() as snapshot:
            Log(snapshot).extends(checkpoint)
        self._submit({"kind": "witness", "note": note, "vkey": vkey, "key": requests.new_key()})
        return note

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
        try:
            with self._read() as snapshot, Path(path).open("xb") as out:
                return exports.write(snapshot, out, progress=progress)
        except FileExistsError:
            raise ParameterError(f"{path} exists already.", parameter="path") from None
        except OSError as error:
            raise LedgerUnavailable(f"{path} cannot be written ({error.strerror}).") from error

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
        export = exports.Export(path)
        notes = [] if pinned is None else [opening.note_at(pinned)]
        verified = export.verify(vkey=vkey, pinned=notes, progress=progress)
        store = opening.store_at(os.fspath(location), None, create=True, read_only=False)
        try:
            exports.load_into(store, export, verified)
        finally:
            store.close()
        return cls.open(location, key=key, create=False)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a ledger that is a file, while it is in use, to a new file.

        The key is not copied: keep it elsewhere. A server has its own backups; or use export.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> copy = os.path.join(tempfile.mkdtemp(), "copy.db")
        >>> with temporary_ledger() as ledger:
        ...     ledger.backup(copy)
        >>> Ledger.open(copy, create=False).size
        1
        """
        if not isinstance(self._store, SqliteStore):
            raise LedgerError("back up a server's database with pg_dump, or export the ledger.")
        self._store.backup(path)

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
            "who": requests.text(who, name="who"),
            "reason": requests.text(reason, name="reason", longest=REASON),
            "key": requests.new_key(),
        }
        return self._submit(entry)

    def close(self) -> None:
        """Let go of the database. Calling it twice does no harm.

        >>> from discreet.testing import temporary_ledger
        >>> with temporary_ledger() as ledger:
        ...     ledger.close()
        """
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.origin!r}, {self.size} entries)"

    # What follows is for this room only.

    def _start(self) -> None:
        self._pid = os.getpid()
        self._scribe = None if self._keyring is None else Scribe(self._keyring)
        self._group = GroupCommit(self._carry_out)

    def _check(self, *, testing: bool, pinned: str | os.PathLike[str] | None) -> None:
        if testing and not self.is_testing:
            raise ParameterError(
                "this ledger counts real budgets, so it cannot be opened for testing. Make "
                "another one for tests.",
                parameter="testing",
            )
        if self._keyring is not None and self._can_write:
            self._sealing = self._keyring.key(self.vkey)
            self._keyring.settle(self.vkey)  # a crash may have kept it from its place
        if pinned is not None:
            with self._read() as snapshot:
                Log(snapshot).extends(opening.checkpoint_at(pinned))

    @contextmanager
    def _read(self) -> Iterator[Snapshot]:
        """Open a snapshot; what is stored in it and makes no sense was not put there by us."""
        with self._store.read() as snapshot:
            try:
                yield snapshot
            except DiscreetError:
                raise
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                raise unreadable("") from error

    def _time(self) -> str:
        with self._read() as snapshot:
            return str(max("", Log(snapshot).head().time))  # raises here if it is no text

    def _known_of(self, *path: str | int) -> Any:
        with self._read() as snapshot:
            found = json.loads(snapshot.facts(["ledger"])["ledger"])
            for step in path:
                found = found[step]
            return found

    def _definition(self, name: str, *, fresh: bool = False) -> Definition:
        at, known = self._known.get(name, (0.0, None))
        if known is not None and not fresh and time.monotonic() - at < _FRESH:
            return known
        fact = f"account/{name}"
        with self._read() as snapshot:
            text = snapshot.facts([fact]).get(fact)
        if text is None:
            raise AccountNotFound(
                f"this ledger has no account {name!r}. List them with: discreet ledger accounts"
            )
        found = Definition.read(text)
        self._known[name] = (time.monotonic(), found)
        return found

    def _source_of(self, source: object) -> dict[str, Any]:
        if not isinstance(source, Mapping) or source.keys() != {"name", "version", "identities"}:
            raise ParameterError(
                "a source is a mapping of name, version and identities.", parameter="sources"
            )
        return self._source(**source)

    def _source(self, name: str, *, version: str, identities: Sequence[str]) -> dict[str, Any]:
        if not identities or isinstance(identities, str):
            raise ParameterError(
                "a source needs at least one identity, such as where it lies or a digest of it: "
                "otherwise it could be registered twice and get two budgets.",
                parameter="identities",
            )
        return {
            "name": requests.text(name, name="name"),
            "version": requests.text(version, name="version"),
            "identities": sorted({self._fingerprint("source", str(one)) for one in identities}),
        }

    def _fingerprint(self, domain: str, text: str) -> str:
        try:
            return self._writing().any().fingerprint(text, domain=domain)
        except UnicodeEncodeError:
            raise ParameterError(
                f"{domain} has characters that are none.", parameter=domain
            ) from None

    def _writing(self) -> Keyring:
        if self._keyring is None or not self._can_write:
            why = "to be read only" if self._is_read_only else "without its key"
            raise LedgerError(f"this ledger was opened {why}. Nothing was written.")
        return self._keyring

    def _submit(
        self,
        entry: Entry,
        *,
        definition: Definition | None = None,
        loss: Loss | None = None,
        answer: bytes | None = None,
    ) -> Receipt:
        keyring = self._writing()
        if os.getpid() != self._pid:
            self._start()  # in the child of a fork: threads that led here are not here
        request = requests.request(entry, definition=definition, loss=loss, answer=answer)
        try:
            body, is_repeated = self._ask(keyring, request)
        except DiscreetError as refusal:
            _tell(entry, refused=type(refusal).__name__)
            raise
        receipt = Receipt(bodies=(body,), is_repeated=is_repeated)
        if _logger.isEnabledFor(logging.INFO):
            _tell(entry, entry=receipt.index)
        return receipt

    def _ask(self, keyring: Keyring, request: bytes) -> tuple[str, bool]:
        for _ in range(3):
            key = self._sealing = self._sealing or keyring.key(self.vkey)
            sealed = key.seal(request)
            found = read_answer(key, sealed, self._group.submit(sealed))
            if found is not None:
                return found
            self._sealing = None  # somebody has rotated it
        raise TamperingFound("answers come from somebody who does not have the ledger's key.")

    def _carry_out(self, batch: Sequence[bytes]) -> list[bytes]:
        assert self._scribe is not None
        return self._store.commit_together(batch, self._scribe.work)

    def _with_its_charge(self, log: Log, index: int) -> list[int]:
        """Return the entry itself, and before it the charge that paid for it."""
        if type(index) is not int or not 0 <= index < 2**63:
            raise ParameterError("prove a receipt, or the number of an entry.", parameter="receipt")
        entry = decode(log.row(index).body)
        return [int(entry["charge"]), index] if entry["kind"] == "release" else [index]


def _tell(request: Entry, **facts: object) -> None:
    """Log what happened, as JSON. Numbers and kinds only: names and texts may say too much."""
    _logger.info(json.dumps({"event": request["kind"], **facts}, sort_keys=True))


def _account_name(name: object) -> str:
    found = requests.text(name, name="name", longest=100)
    if "/" in found:
        raise ParameterError("the name of an account must not contain '/'.", parameter="name")
    return found
