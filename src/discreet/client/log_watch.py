"""What a client remembers of a ledger's log, so that nobody can rewrite it unnoticed."""

from base64 import b64decode
from collections.abc import Mapping
from itertools import pairwise
from threading import Lock
from typing import Any, final

from discreet.client.transport import GatewayCall, Wire
from discreet.errors import DiscreetError, ParameterError, TamperingFound
from discreet.ledger.verifier import (
    Checkpoint,
    NotProven,
    check_checkpoint,
    check_consistency,
    parse_checkpoint,
)

__all__ = ["LogWatch"]


@final
class LogWatch:
    """Remembers checkpoints of a gateway's ledger, and asks for proof that all are of one log.

    ``vkey`` is the ledger's public key; left out, it is the one that the gateway says first.

    >>> from discreet.client.example import ExampleGateway
    >>> with ExampleGateway() as gateway:
    ...     watch = LogWatch(gateway)
    ...     watch.verify().size == parse_checkpoint(watch.checkpoint()).size
    True
    """

    def __init__(self, wire: Wire, *, vkey: str | None = None) -> None:
        self._wire, self._vkey, self._lock = wire, vkey, Lock()
        self._seen: dict[int, Checkpoint] = {}

    @property
    def vkey(self) -> str:
        """The public key that signs the log, as it was last known."""
        if self._vkey is None:
            self.checkpoint()
        assert self._vkey is not None
        return self._vkey

    def follow(self, vkey: str, note: str) -> None:
        """Take over what a checked receipt has shown: the key after rotations, a checkpoint.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     watch = LogWatch(gateway)
        ...     watch.follow(watch.vkey, watch.checkpoint())
        """
        self._vkey = vkey
        self._remember(parse_checkpoint(note))

    def checkpoint(self) -> str:
        """Return the signed checkpoint of now, and remember it.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     LogWatch(gateway).checkpoint().splitlines()[1]  # entries
        '2'
        """
        note = self._asked(GatewayCall("GET", "/v1/ledger/checkpoint"))
        self._remember(self.checked(note))
        return note

    def verify(self, since: str | None = None) -> Checkpoint:
        """Return the log's checkpoint, proven to continue all that were remembered.

        Each is proven to continue the one before, and the newest the last of them: that one log
        continues each of them by itself would not show that they are of one.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     watch = LogWatch(gateway)
        ...     watch.verify(since=watch.checkpoint()).size
        2
        """
        if since is not None:
            self._remember(self.checked(since))
        if not self._seen:
            self.checkpoint()
        with self._lock:
            before = sorted(self._seen.values(), key=lambda one: one.size)
        newest = self.checked(self.checkpoint())
        for old, new in pairwise([*before, newest]):
            self._prove(old, new)
        with self._lock:  # what the newest one continues it vouches for
            for old in before:
                if old.size < newest.size:
                    self._seen.pop(old.size, None)
        return newest

    def checked(self, note: str) -> Checkpoint:
        """Return the checkpoint in a note that the ledger's key has signed.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     LogWatch(gateway).checked("no note")
        Traceback (most recent call last):
            ...
        discreet.errors.TamperingFound: the checkpoint is not a signed note. ...
        """
        try:
            return check_checkpoint(note, self.vkey)
        except NotProven as refusal:
            raise TamperingFound(
                f"{refusal}. Where the owner has rotated the ledger's key, a receipt shows it: ask "
                "for one, and then again."
            ) from None

    def _prove(self, old: Checkpoint, new: Checkpoint) -> None:
        """Have it proven that the log of one checkpoint is the beginning of another one's."""
        if new.origin != old.origin:
            raise TamperingFound(f"the log is that of {new.origin!r}, and was of {old.origin!r}.")
        proof: list[bytes] = []
        if old.size:
            proof = self._hashes(f"/v1/ledger/consistency?old={old.size}&new={new.size}", old)
        try:
            check_consistency(old.size, old.root, new.size, new.root, proof)
        except NotProven as refusal:
            raise TamperingFound(
                f"the ledger was rewritten, rolled back or forked: {refusal}."
            ) from None

    def _hashes(self, path: str, old: Checkpoint) -> list[bytes]:
        try:
            document = self._wire.call(GatewayCall("GET", path))
        except ParameterError as refusal:  # the log is shorter
            raise TamperingFound(
                f"the ledger was rolled back: it once had {old.size} entries, and the gateway "
                f"cannot prove that they are still there. It says: {refusal}"
            ) from None
        try:
            return [b64decode(one, validate=True) for one in document["proof"]]
        except (KeyError, TypeError, ValueError):
            raise DiscreetError("the gateway sent something that is no proof.") from None

    def _remember(self, seen: Checkpoint) -> None:
        with self._lock:
            known = self._seen.setdefault(seen.size, seen)
        if known != seen:
            raise TamperingFound(
                f"the gateway has shown two different ledgers of {seen.size} entries."
            )

    def _asked(self, call: GatewayCall) -> str:
        document = self._wire.call(call)
        if self._vkey is None:
            self._vkey = _text(document, "vkey")
        return _text(document, "checkpoint")


def _text(document: Mapping[str, Any], name: str) -> str:
    found = document.get(name)
    if not isinstance(found, str):
        raise DiscreetError("the gateway sent something that is no checkpoint.")
    return found
