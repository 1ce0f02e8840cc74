"""A private answer together with its error bar and its receipt."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Generic, Protocol, TypeVar, final

from discreet._json import read_json
from discreet.accounting import Loss
from discreet.errors import DataError
from discreet.ledger.receipts import Receipt

__all__ = ["Mechanism", "Release", "read_answer_document", "write_answer_document"]

T = TypeVar("T")


class Mechanism(Protocol):
    """Anything that knows its loss and its error and releases a value.

    >>> from discreet.mechanisms import DiscreteLaplace
    >>> mechanism: Mechanism = DiscreteLaplace(sensitivity=1, scale=2)
    """

    @property
    def loss(self) -> Loss:
        """What one release costs."""

    @property
    def release(self) -> Callable[..., Any]:
        """Return a value with noise."""

    @property
    def error(self) -> Callable[..., Any]:
        """Return how far off it may be."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Generic[T]):
    """A released value: with probability ``confidence`` it is within ``error`` of the exact one.

    ``document`` are the bytes to whose digest the log commits: with the receipt they convince
    somebody else. ``is_recalled`` says that the same question was answered before, and this is
    that answer.

    >>> from discreet.ledger.receipts import Receipt
    >>> receipt = Receipt(bodies=('{"account":"salaries","index":7}',))
    >>> print(Release(value=412, error=6, confidence=0.95, receipt=receipt))
    412 ± 6 (95%), entry 7 of account 'salaries'
    """

    value: T
    error: float
    confidence: float
    receipt: Receipt
    document: bytes = field(default=b"", repr=False)
    is_recalled: bool = False

    def __str__(self) -> str:
        entry = f"entry {self.receipt.index} of account {self.receipt.account!r}"
        again = ", answered before" if self.is_recalled else ""
        return f"{self.value} ± {self.error:.4g} ({self.confidence:.0%}), {entry}{again}"


def write_answer_document(*, value: object, error: float, confidence: float) -> bytes:
    """Write a released value as the bytes whose digest goes into the log.

    >>> write_answer_document(value=412, error=6, confidence=0.95)
    b'{"confidence":0.95,"error":6,"nonce":"...","value":412}'
    """
    # The digest of a small number could be found by trying; nobody can try the nonce.
    nonce = token_hex(16)
    document = {"value": value, "error": error, "confidence": confidence, "nonce": nonce}
    try:
        text = json.dumps(
            document, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except (TypeError, ValueError):
        raise DataError(
            "a release must be a number, a text, or a list, table or array of them, all finite. "
            "The charge stands, since the data was read."
        ) from None
    return text.encode()


def _plain(value: object) -> object:
    """Turn arrays and their scalars into lists and numbers, for JSON."""
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError
    return plain()


def read_answer_document(answer: bytes | None) -> dict[str, Any] | None:
    """Read it back; None where it is something else that a caller kept.

    >>> read_answer_document(b'{"confidence":0.95,"error":6,"value":412}')["value"]
    412
    >>> print(read_answer_document(b"42"))
    None
    """
    try:
        document = read_json(answer or b"")
    except (ValueError, TypeError):
        return None
    if type(document) is not dict or not {"value", "error", "confidence"} <= document.keys():
        return None
    return document
