"""SCRAM-SHA-256, the server's side: RFC 5802 with RFC 7677, as PostgreSQL has it in SASL."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final, final

from discreet.errors import Unauthenticated
from discreet.service.wire.interfaces import WireVerifier
from discreet.service.wire.protocol.failures import protocol_violation

__all__ = ["ScramExchange", "channel_binding", "mechanisms"]

_PLAIN: Final = "SCRAM-SHA-256"
_BOUND: Final = "SCRAM-SHA-256-PLUS"


def mechanisms(binding: bytes | None) -> list[str]:
    """Return the mechanisms that are offered: bound to the channel first, where that is possible.

    >>> mechanisms(None), mechanisms(b"...")
    (['SCRAM-SHA-256'], ['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256'])
    """
    return [_BOUND, _PLAIN] if binding is not None else [_PLAIN]


def channel_binding(certificate: bytes) -> bytes:
    """Return what tls-server-end-point binds to: the hash of the certificate (RFC 5929, 4.1)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    loaded = x509.load_der_x509_certificate(certificate)
    algorithm = loaded.signature_hash_algorithm
    if algorithm is None or isinstance(algorithm, hashes.MD5 | hashes.SHA1):
        algorithm = hashes.SHA256()
    return loaded.fingerprint(algorithm)


@final
class ScramExchange:
    """Two messages of a client, and the answers to them.

    ``binding`` is what the channel is bound to, where there is TLS. ``nonce`` is for tests.

    Claim: a client that cannot know the secret of the verifier does not get through, and one that
    listens learns nothing that lets it in later [RFC 5802, section 9].
    """

    def __init__(
        self, verifier: WireVerifier, *, binding: bytes | None, nonce: str | None = None
    ) -> None:
        self._verifier, self._binding = verifier, binding
        self._own_nonce = nonce or base64.b64encode(secrets.token_bytes(24)).decode()
        self._header, self._bare, self._first, self._nonce = "", "", "", ""

    def first(self, mechanism: str, message: bytes) -> bytes:
        """Answer the first message of the client."""
        if mechanism not in mechanisms(self._binding):
            raise protocol_violation("this mechanism of SASL was not offered")
        text = _text(message)
        flag, _, rest = text.partition(",")
        identity, _, bare = rest.partition(",")
        is_bound = flag == "p=tls-server-end-point"
        if is_bound != (mechanism == _BOUND) or not (is_bound or flag in ("n", "y")):
            raise protocol_violation("this way to bind the channel is not known")
        if flag == "y" and self._binding is not None:
            # It could have bound the channel, but was told that we cannot: by somebody in between.
            raise protocol_violation("the offer to bind the channel did not arrive")
        attributes = _attributes(bare)
        if identity or "m" in attributes or not attributes.get("r"):
            raise protocol_violation("this is no first message of SCRAM")
        self._header, self._bare = f"{flag},{identity},", bare
        self._nonce = attributes["r"] + self._own_nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._first.encode()

    def final(self, message: bytes) -> bytes:
        """Answer the last message of the client, or refuse it."""
        text = _text(message)
        without_proof, _, proof = text.rpartition(",p=")
        attributes = _attributes(without_proof)
        bound = self._header.encode()
        if self._header.startswith("p="):
            bound += self._binding or b""
        if attributes.get("r") != self._nonce or _decoded(attributes.get("c", "")) != bound:
            raise Unauthenticated
        signed = f"{self._bare},{self._first},{without_proof}".encode()
        stored = self._verifier.stored_key
        signature = hmac.digest(stored, signed, "sha256")
        given = _decoded(proof)
        if len(given) != len(signature):
            raise Unauthenticated
        key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), stored):
            raise Unauthenticated
        ours = hmac.digest(self._verifier.server_key, signed, "sha256")
        return b"v=" + base64.b64encode(ours)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise protocol_violation("messages of SCRAM must be UTF-8") from None


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unauthenticated from None
