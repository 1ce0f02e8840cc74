"""Seal a report to the analyser, and open it again."""

from dataclasses import dataclass
from typing import Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from discreet.errors import DataError
from discreet.local.wire import Parameters, report_length
from discreet.shuffle.envelopes.keys import POINT, SealingKey, UnsealingKey

__all__ = ["HEADER", "Envelopes"]

VERSION: Final = 1
HEADER: Final = 1 + 8 + 8  # version, collection, digest of the parameters
_TAG: Final = 16
_LABEL: Final = b"discreet envelope v1"
_SUITE: Final = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Envelopes:
    """Say how the envelopes of one collection are made: all alike from outside, and of one length.

    An envelope is ``header``, an encapsulated key of 65 bytes, and the report encrypted and
    authenticated: HPKE in base mode, one message [BBLW22], with DHKEM(P-256, HKDF-SHA256),
    HKDF-SHA256 and AES-128-GCM. The suite is the one that browsers can compute with Web Crypto
    alone; the code is that of ``cryptography`` (from version 47), which the package needs anyway.

    Claim: who has not the analyser's secret key learns nothing of a report but the collection that
    it belongs to, and can neither alter a report nor move it to another collection or to other
    parameters. Anybody can make an envelope: it proves nothing of its sender.

    Why: base mode is secure against adaptive chosen ciphertexts [BBLW22, Section 9.1]. ``info``
    is a label and the header, and so decides the key with which the report is encrypted: under
    another header the tag does not fit.

    >>> key = UnsealingKey.generate()
    >>> envelopes = Envelopes(collection=bytes(8), digest=bytes(8), report=36)
    >>> sealed = envelopes.seal(b"r" * 36, key=key.public)
    >>> len(sealed), envelopes.open(sealed, key=key) == b"r" * 36
    (134, True)
    """

    collection: bytes
    digest: bytes
    report: int

    @classmethod
    def of(cls, parameters: Parameters) -> "Envelopes":
        """Return those of a collection.

        >>> from discreet import local
        >>> from discreet.local.wire import parameters_of
        >>> million = local.HadamardResponse(domain=1_000_000, epsilon=1)
        >>> Envelopes.of(parameters_of(million, name="pages", a_day=1, lifetime=1)).length
        134
        """
        collection = bytes.fromhex(parameters.collection)
        length = report_length(parameters)
        return cls(collection=collection, digest=parameters.digest, report=length)

    @property
    def header(self) -> bytes:
        """How every envelope of the collection begins."""
        return bytes([VERSION]) + self.collection + self.digest

    @property
    def length(self) -> int:
        """How many bytes every envelope has."""
        return HEADER + POINT + self.report + _TAG

    def seal(self, report: bytes, *, key: SealingKey) -> bytes:
        """Return a report in an envelope, another one each time.

        >>> key = UnsealingKey.generate().public
        >>> envelopes = Envelopes(collection=bytes(8), digest=bytes(8), report=36)
        >>> envelopes.seal(bytes(36), key=key) == envelopes.seal(bytes(36), key=key)
        False
        """
        if len(report) != self.report:
            raise DataError(
                f"a report of this collection has {self.report} bytes, but this one has "
                f"{len(report)}. Encode it by the collection's parameters."
            )
        return self.header + _SUITE.encrypt(report, key.point, info=_LABEL + self.header)

    def open(self, envelope: bytes, *, key: UnsealingKey) -> bytes | None:
        """Return the report of an envelope, None if it is none of ours, whatever it is.

        >>> key = UnsealingKey.generate()
        >>> print(Envelopes(collection=bytes(8), digest=bytes(8), report=36).open(b"?", key=key))
        None
        """
        if len(envelope) != self.length or not envelope.startswith(self.header):
            return None
        try:
            return _SUITE.decrypt(envelope[HEADER:], key.secret, info=_LABEL + self.header)
        except (InvalidTag, ValueError):  # also where the point is none of the curve
            return None
