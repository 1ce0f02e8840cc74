"""Keys of the analyser: a pair on P-256, whose public half devices seal to."""

import base64
import binascii
from typing import Final, final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from discreet.errors import ParameterError

__all__ = ["POINT", "SealingKey", "UnsealingKey", "plain_text", "read_text"]

POINT: Final = 65  # bytes of an uncompressed point
_CURVE: Final = ec.SECP256R1()


@final
class SealingKey:
    """The public half: whoever has it can seal, and devices are told it with the collection.

    >>> key = UnsealingKey.generate().public
    >>> SealingKey.read(key.text) == key, len(key.text)
    (True, 87)
    """

    __slots__ = ("point", "text")

    def __init__(self, point: ec.EllipticCurvePublicKey) -> None:
        self.point = point
        self.text = plain_text(point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    @classmethod
    def read(cls, text: str) -> "SealingKey":
        """Return the key that a text of 87 letters stands for.

        >>> SealingKey.read("abc")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: the analyser's key must be a point of P-256 in...
        """
        try:
            point = read_text(text, length=POINT)
            return cls(ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point))
        except ValueError:
            raise ParameterError(
                "the analyser's key must be a point of P-256 in base64url, 87 letters. Take it "
                "from the analyser: discreet shuffle show",
                parameter="analyser",
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SealingKey) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[object, ...]:
        return (SealingKey.read, (self.text,))

    def __repr__(self) -> str:
        return f"SealingKey.read({self.text!r})"


@final
class UnsealingKey:
    """The secret half, which never leaves the analyser. It does not show itself.

    >>> UnsealingKey.generate()
    UnsealingKey(...)
    """

    __slots__ = ("public", "secret")

    def __init__(self, secret: ec.EllipticCurvePrivateKey) -> None:
        self.secret = secret
        self.public = SealingKey(secret.public_key())

    @classmethod
    def generate(cls) -> "UnsealingKey":
        """Return a new one, drawn by the library that also computes with it.

        >>> UnsealingKey.generate().public == UnsealingKey.generate().public
        False
        """
        return cls(ec.generate_private_key(_CURVE))

    @classmethod
    def read(cls, kept: bytes) -> "UnsealingKey":
        """Return the key that :attr:`kept` kept.

        >>> key = UnsealingKey.generate()
        >>> UnsealingKey.read(key.kept).public == key.public
        True
        """
        secret = load_der_private_key(kept, password=None)
        if not isinstance(secret, ec.EllipticCurvePrivateKey):
            raise ParameterError("this is no key of an analyser.", parameter="kept")
        return cls(secret)

    @property
    def kept(self) -> bytes:
        """What to keep of it, where nobody else can read."""
        return self.secret.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    def __repr__(self) -> str:
        return "UnsealingKey(...)"


def plain_text(raw: bytes) -> str:
    """Return bytes in base64url without padding.

    >>> plain_text(bytes(2))
    'AAA'
    """
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_text(text: str, *, length: int) -> bytes:
    r"""Return the bytes of such a text, or raise ``ValueError`` unless it is their one spelling.

    >>> read_text("AAA", length=2)
    b'\x00\x00'
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("no base64url") from None
    if len(raw) != length or plain_text(raw) != text:
        raise ValueError("another length")
    return raw
