"""SCRAM-SHA-256 verifiers [RFC 5802, RFC 7677], for PostgreSQL clients that log in with a key."""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final, Self, final

__all__ = ["ITERATIONS", "ScramVerifier", "decoy"]

ITERATIONS: Final = (
    4096  # the least that RFC 7677 allows; guessing 256 bits is slow enough as it is
)
_TEXT: Final = re.compile(
    r"SCRAM-SHA-256\$(?P<i>\d{1,9})"
    r":(?P<salt>[\w+/]+=*)\$(?P<stored>[\w+/]+=*):(?P<server>[\w+/]+=*)",
    re.ASCII,
)


@final
@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """What a server needs to recognise a password and to prove that it knows it, and not more.

    >>> verifier = ScramVerifier.of("pencil")
    >>> verifier
    ScramVerifier(iterations=4096)
    >>> ScramVerifier.read(verifier.text) == verifier
    True
    """

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> Self:
        """Return a verifier of a password of ASCII letters, which SASLprep leaves alone."""
        salt = secrets.token_bytes(16) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        stored_key = hashlib.sha256(client_key).digest()
        return cls(iterations, salt, stored_key, hmac.digest(salted, b"Server Key", "sha256"))

    @property
    def text(self) -> str:
        """The verifier as PostgreSQL writes it."""
        salt, stored, server = (
            b64encode(one).decode() for one in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the verifier of a text, or raise ``ValueError``."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError("this is no SCRAM verifier")
        salt, stored, server = (b64decode(found[name]) for name in ("salt", "stored", "server"))
        return cls(int(found["i"]), salt, stored, server)


def decoy(user: str, secret: bytes) -> ScramVerifier:
    """Return a verifier that no password fits, the same one whenever this user is asked about.

    Without the secret it looks like any other, so nobody learns which users there are.

    >>> decoy("eve", b"k") == decoy("eve", b"k"), decoy("eve", b"k") == decoy("eva", b"k")
    (True, False)
    """

    def derived(what: str) -> bytes:
        return hmac.digest(secret, f"{what}:{user}".encode(errors="surrogatepass"), "sha256")

    return ScramVerifier(ITERATIONS, derived("salt")[:16], derived("stored"), derived("server"))
