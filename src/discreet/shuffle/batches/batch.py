"""A batch: envelopes without senders, times or order, and what the shuffler vouches for."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet._json import read_json
from discreet.errors import DataError, ParameterError
from discreet.shuffle.envelopes.keys import read_text

__all__ = ["BatchFacts", "SignedBatch", "read_batch", "read_vouching_key", "sign_batch"]

FORMAT: Final = "discreet-batch/1"
_LABEL: Final = b"discreet batch v1\n"
_SIGNATURE: Final = 64
_HEX: Final = re.compile(r"[0-9a-f]+")
_NUMBERS: Final = ("number", "senders", "minimum", "limit", "dummies", "envelopes", "length")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFacts:
    """What the shuffler says of a batch.

    ``number`` counts the collection's batches from 1, and ``id`` is random. ``senders`` is how
    many different authenticated senders gave its envelopes, ``minimum`` how many it waited for,
    ``limit`` how many envelopes it took of each, and ``dummies`` how many of the ``envelopes`` it
    made itself.

    >>> BatchFacts(collection="00" * 8, digest="00" * 8, number=1, id="00" * 16, senders=100,
    ...            minimum=100, limit=1, dummies=0, envelopes=100, length=134).number
    1
    """

    collection: str
    digest: str
    number: int
    id: str
    senders: int
    minimum: int
    limit: int
    dummies: int
    envelopes: int
    length: int

    def __post_init__(self) -> None:
        widths = {"collection": 16, "digest": 16, "id": 32}
        texts = all(_is_hex(getattr(self, name), width) for name, width in widths.items())
        numbers = [getattr(self, name) for name in _NUMBERS]
        if not texts or not all(type(one) is int and 0 <= one < 1 << 40 for one in numbers):
            raise DataError("a batch must say which it is, and count in whole numbers.")
        few = self.senders < self.minimum or self.minimum < 2 or self.number < 1 or self.limit < 1
        reports = self.envelopes - self.dummies
        if few or not self.senders <= reports <= self.senders * self.limit:
            raise DataError(
                "a batch must hold its minimum of senders, and of each from one envelope to its "
                "limit. Nothing was opened."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignedBatch:
    """A batch as it travels: ``written`` is what was signed, ``body`` all envelopes in a row.

    >>> from discreet.testing import temporary_shuffle
    >>> with temporary_shuffle(minimum=2) as halves:
    ...     _ = halves.send([3, 1]), halves.shuffler.release()
    ...     batch = read_batch(halves.shuffler.next(), key=read_vouching_key(halves.shuffler.key))
    >>> batch.facts.senders, len(batch.body) == 2 * batch.facts.length
    (2, True)
    """

    facts: BatchFacts
    written: bytes
    signature: bytes
    body: bytes

    @property
    def raw(self) -> bytes:
        """All of it, for :func:`read_batch`."""
        return self.written + b"\n" + self.signature + self.body


def sign_batch(facts: BatchFacts, body: bytes, *, key: Ed25519PrivateKey) -> SignedBatch:
    """Return a batch that the shuffler vouches for.

    Why its envelopes are signed with the facts: their digest is among what is signed.
    """
    members = {"format": FORMAT, "body": hashlib.sha256(body).hexdigest(), **asdict(facts)}
    written = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
    return SignedBatch(
        facts=facts, written=written, signature=key.sign(_LABEL + written), body=body
    )


def read_batch(raw: bytes, *, key: Ed25519PublicKey) -> SignedBatch:
    """Return the batch that some bytes are, or refuse what this shuffler did not sign.

    >>> read_batch(b"?", key=Ed25519PrivateKey.generate().public_key())
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: this batch was not signed by the shuffler's key...
    """
    written, _, rest = raw.partition(b"\n")
    signature, body = rest[:_SIGNATURE], rest[_SIGNATURE:]
    try:
        key.verify(signature, _LABEL + written)
    except InvalidSignature:
        raise DataError(
            "this batch was not signed by the shuffler's key, or was altered. Nothing was opened. "
            "Ask the shuffler's operator for its key, and compare."
        ) from None
    facts = _read(written, body)
    return SignedBatch(facts=facts, written=written, signature=signature, body=body)


def _read(written: bytes, body: bytes) -> BatchFacts:
    """Read what was signed; a shuffler that signs nonsense is told so too."""
    try:
        members: Any = read_json(written, strict=True)
        form, digest = members.pop("format"), members.pop("body")
        facts = BatchFacts(**members)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError("a batch must say which it is, and count in whole numbers.") from None
    if form != FORMAT:
        raise DataError(f'a batch must have the format "{FORMAT}". Update discreet to read it.')
    if digest != hashlib.sha256(body).hexdigest() or len(body) != facts.envelopes * facts.length:
        raise DataError("a batch must hold the envelopes that its shuffler signed.")
    return facts


def read_vouching_key(text: str) -> Ed25519PublicKey:
    """Return the shuffler's public key from its text of 43 letters.

    >>> read_vouching_key(43 * "A").public_bytes_raw() == bytes(32)
    True
    """
    try:
        return Ed25519PublicKey.from_public_bytes(read_text(text, length=32))
    except ValueError:
        raise ParameterError(
            "the shuffler's key must be 32 bytes in base64url, 43 letters. Take it from the "
            "shuffler: discreet shuffle show",
            parameter="shuffler",
        ) from None


def _is_hex(value: object, width: int) -> bool:
    return isinstance(value, str) and len(value) == width and bool(_HEX.fullmatch(value))
