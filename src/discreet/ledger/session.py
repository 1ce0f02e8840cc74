"""One open ledger: its store and its keys, how it is read, and how an entry gets into it."""

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, final

from discreet._json import read_json
from discreet.accounting import Loss
from discreet.errors import (
    AccountNotFound,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    TamperingFound,
)
from discreet.ledger.checking.verify import verify
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.proofs import Log
from discreet.ledger.receipts import Receipt
from discreet.ledger.recognition.content import TableContent
from discreet.ledger.recognition.sketch import write_sketch
from discreet.ledger.rules.balance import unreadable
from discreet.ledger.rules.definition import Definition
from discreet.ledger.rules.entry import Entry
from discreet.ledger.stores.protocol import Snapshot, Store
from discreet.ledger.writing import opening
from discreet.ledger.writing import request as requests
from discreet.ledger.writing.group_commit import GroupCommit
from discreet.ledger.writing.scribe import Scribe, read_answer
from discreet.ledger.writing.sealed import check_facts

if TYPE_CHECKING:
    from discreet.ledger.log.anchor import Anchor
    from discreet.ledger.log.keys import SigningKey

__all__ = ["LedgerSession"]

_logger = logging.getLogger("discreet.ledger")
_FRESH = 1.0  # seconds for which an account is believed unchanged when pricing a charge


@final
class LedgerSession:
    """What a ledger and its accounts share. Threads may use it together."""

    def __init__(
        self, store: Store, keyring: Keyring | None, *, read_only: bool, trusting: bool = False
    ) -> None:
        self.store = store
        self._keyring = keyring
        self._is_read_only = read_only
        self._can_write = keyring is not None and not keyring.is_empty and not read_only
        self._known: dict[str, tuple[float, Definition]] = {}
        self._sealing: SigningKey | None = None
        self.anchor: Anchor | None = None
        if keyring is not None and self._can_write:
            self.anchor = opening.anchor_at(keyring, str(self.known("origin")))
        self._is_trusting = trusting
        self._start()

    @classmethod
    def open(
        cls,
        location: str,
        *,
        key: str | os.PathLike[str] | None,
        create: bool,
        read_only: bool,
        testing: bool,
        name: str | None,
        pinned: str | os.PathLike[str] | None,
        trusting: bool = False,
    ) -> "LedgerSession":
        """See :meth:`discreet.ledger.Ledger.open`; ``trusting`` leaves the anchor alone."""
        keyring = opening.keyring_at(location, key)
        store = opening.store_at(location, keyring, create=create, read_only=read_only)
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
            session = cls(store, keyring, read_only=read_only, trusting=trusting)
            session._check(testing=testing, pinned=pinned)
        except BaseException:
            store.close()
            raise
        return session

    @classmethod
    def trusting(cls, location: str, *, key: str | os.PathLike[str] | None) -> "LedgerSession":
        """Open a ledger that exists to write to it, whatever its anchor says."""
        return cls.open(
            location,
            key=key,
            create=False,
            read_only=False,
            testing=False,
            name=None,
            pinned=None,
            trusting=True,
        )

    def _start(self) -> None:
        self._pid = os.getpid()
        if self._keyring is not None:
            anchor = None if self._is_trusting else self.anchor
            self._scribe = Scribe(self._keyring, verified=_verified, anchor=anchor)
        self._group = GroupCommit(self._carry_out)

    def _check(self, *, testing: bool, pinned: str | os.PathLike[str] | None) -> None:
        if testing and not self.known("testing"):
            raise ParameterError(
                "this ledger counts real budgets, so it cannot be opened for testing. Make "
                "another one for tests.",
                parameter="testing",
            )
        if self._keyring is not None and self._can_write:
            vkey = str(self.known("vkeys", -1))
            self._sealing = self._keyring.key(vkey)
            self._keyring.settle(vkey)  # a crash may have kept it from its place
        anchor = None if self._is_trusting else self.anchor
        seen = None if anchor is None else anchor.seen()
        with self.read() as snapshot:
            if pinned is not None:
                Log(snapshot).extends(opening.checkpoint_at(pinned))
            if anchor is not None:
                anchor.check(snapshot, seen)
                anchor.write(Log(snapshot).head().note)

    def close(self) -> None:
        """Let go of the database and of the anchor."""
        self.store.close()
        if self.anchor is not None:
            self.anchor.close()

    # Reading

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a snapshot; what is stored in it and makes no sense was not put there by us."""
        with self.store.read() as snapshot:
            try:
                yield snapshot
            except DiscreetError:
                raise
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                raise unreadable("") from error

    def time(self) -> str:
        """Return the time of the last entry."""
        with self.read() as snapshot:
            return str(max("", Log(snapshot).head().time))  # raises here if it is no text

    def known(self, *path: str | int) -> Any:
        """Return something that the ledger says about itself."""
        with self.read() as snapshot:
            found = read_json(snapshot.facts(["ledger"])["ledger"])
            for step in path:
                found = found[step]
            return found

    def facts(self, snapshot: Snapshot, names: Sequence[str]) -> dict[str, str]:
        """Return facts; where we have the key, only what was written last."""
        found = snapshot.facts(names)
        if self._keyring is not None and self._can_write:
            check_facts(snapshot, self._keyring.any(), {name: found.get(name) for name in names})
        return found

    def definition(self, name: str, *, fresh: bool = False) -> Definition:
        """Return an account's definition, as it was a moment ago unless ``fresh`` is asked for."""
        at, known = self._known.get(name, (0.0, None))
        if known is not None and not fresh and time.monotonic() - at < _FRESH:
            return known
        fact = f"account/{name}"
        with self.read() as snapshot:
            text = self.facts(snapshot, [fact]).get(fact)
        if text is None:
            raise AccountNotFound(
                f"this ledger has no account {name!r}. List them with: discreet ledger accounts"
            )
        found = Definition.read(text)
        self._known[name] = (time.monotonic(), found)
        return found

    def forget(self, name: str) -> None:
        """Read an account's definition anew the next time."""
        self._known.pop(name, None)

    # Writing

    def keyring(self) -> Keyring:
        """Return the keys of a ledger that may be written."""
        if self._keyring is None or not self._can_write:
            why = "to be read only" if self._is_read_only else "without its key"
            raise LedgerError(f"this ledger was opened {why}. Nothing was written.")
        return self._keyring

    def fingerprint(self, text: str, *, domain: str) -> str:
        """Return the salted fingerprint of a text."""
        try:
            return self.keyring().any().fingerprint(text, domain=domain)
        except UnicodeEncodeError:
            raise ParameterError(
                f"{domain} has characters that are none.", parameter=domain
            ) from None

    def source(
        self,
        name: str,
        *,
        version: str,
        identities: Sequence[str],
        content: TableContent | None = None,
        types: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return a source of data as entries write it, and the sketch of its content by its name.

        An entry only commits to the sketch, which is kept beside the log: nothing that is
        exported or proved has it.
        """
        if not identities or isinstance(identities, str):
            raise ParameterError(
                "a source needs at least one identity, such as where it lies or a digest of it: "
                "otherwise it could be registered twice and get two budgets.",
                parameter="identities",
            )
        known = {self.fingerprint(str(one), domain="source") for one in identities}
        source: dict[str, Any] = {
            "name": requests.text(name, name="name"),
            "version": requests.text(version, name="version"),
            "identities": sorted(known),
        }
        if types:
            source["types"] = dict(types)
        if content is None:
            return source, {}
        sketch = write_sketch(content, keyed=lambda text: self.fingerprint(text, domain="content"))
        source["content"] = sha256(sketch.encode()).hexdigest()
        return source, {name: sketch}

    def submit(
        self,
        entry: Entry,
        *,
        definition: Definition | None = None,
        loss: Loss | None = None,
        answer: bytes | None = None,
        paid: str | None = None,
        sketches: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Have an entry written, durably, or raise why it was not."""
        keyring = self.keyring()
        if os.getpid() != self._pid:
            self._start()  # in the child of a fork: threads that led here are not here
        request = requests.request(
            entry, definition=definition, loss=loss, answer=answer, paid=paid, sketches=sketches
        )
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
            key = self._sealing = self._sealing or keyring.key(str(self.known("vkeys", -1)))
            sealed = key.seal(request)
            found = read_answer(key, sealed, self._group.submit(sealed))
            if found is not None:
                return found
            self._sealing = None  # somebody has rotated it
        raise TamperingFound("answers come from somebody who does not have the ledger's key.")

    def _carry_out(self, batch: Sequence[bytes]) -> list[bytes]:
        answers = self.store.commit_together(batch, self._scribe.work)
        self._scribe.settle(answers)
        return answers


def _verified(snapshot: Snapshot) -> Mapping[str, str]:
    return verify(snapshot).facts


def _tell(request: Mapping[str, Any], **facts: object) -> None:
    """Log what happened, as JSON. Numbers and kinds only: names and texts may say too much."""
    _logger.info(json.dumps({"event": request["kind"], **facts}, sort_keys=True))
