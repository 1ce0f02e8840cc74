"""From an account's methods to a request: checked, priced, and with a key of its own."""

import os
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from discreet._json import read_json
from discreet._version import __version__
from discreet.accounting import Loss, to_json
from discreet.errors import ParameterError
from discreet.ledger.rules.balance import write_sums
from discreet.ledger.rules.definition import Definition
from discreet.ledger.rules.entry import Entry, encode
from discreet.ledger.rules.entry_forms import NAME, is_name
from discreet.noise import Source

__all__ = ["loss_document", "new_key", "noise_of", "request", "text"]

_documents: dict[tuple[Loss, str], dict[str, Any]] = {}
_REMEMBERED = 4096


def text(value: object, *, name: str, longest: int = NAME) -> str:
    """Return a name that can stand in a log: not empty, not long, on one line.

    >>> text("ana", name="who")
    'ana'
    >>> text("", name="who")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: who must be a text of 1 to 200 printable characters.
    """
    if not isinstance(value, str) or not is_name(value, longest):
        raise ParameterError(
            f"{name} must be a text of 1 to {longest} printable characters.", parameter=name
        )
    return value


def new_key() -> str:
    """Return a key that nobody else has; later ones sort behind earlier ones.

    The order keeps new keys together at the end of the database's index.

    >>> len(new_key())
    32
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def loss_document(loss: Loss) -> dict[str, Any]:
    """Return a loss as an entry writes it; equal ones may have several texts, such as 1 and "1/1".

    >>> from discreet.accounting import PureLoss
    >>> sorted(loss_document(PureLoss(epsilon=1)))
    ['epsilon', 'kind', 'version']
    """
    try:
        key = loss, repr(loss)  # equal ones apart, so that no text depends on earlier entries
        known = _documents.get(key)
        if known is None:
            known = read_json(to_json(loss))
    except ValueError:
        raise ParameterError(
            "a loss has numbers that are too long to be written down.", parameter="loss"
        ) from None
    if len(_documents) >= _REMEMBERED:
        _documents.clear()
    _documents[key] = known
    return known


def noise_of(source: Source) -> str:
    """Say whether noise comes from a secure source.

    >>> from discreet.noise import SYSTEM
    >>> noise_of(SYSTEM)
    'secure'
    """
    is_secure = getattr(source, "is_secure", None)
    if is_secure is None:
        raise ParameterError(
            "source must be a source of noise, such as discreet.noise.SYSTEM.", parameter="source"
        )
    return "secure" if is_secure else "seeded"


def request(
    entry: Entry,
    *,
    definition: Definition | None = None,
    loss: Loss | None = None,
    answer: bytes | None = None,
    paid: str | None = None,
    sketches: Mapping[str, str] | None = None,
) -> bytes:
    """Write a request; where its loss takes long to price, with its price in every line.

    ``answer`` is to be kept, and ``paid`` is the entry that pays, as its receipt has it.

    >>> request({"kind": "settle", "job": 3, "key": "a"})
    b'{"entry":{"job":3,"key":"a","kind":"settle"}}'
    """
    proposal: dict[str, Any] = {"entry": entry}
    if definition is not None and loss is not None and loss.is_slow:
        proposal["code"] = __version__
        proposal["terms"] = definition.version
        proposal["costs"] = _costs(definition, loss, entry)
    if paid is not None:
        proposal["paid"] = paid
    if answer is not None:
        proposal["answer"] = b64encode(answer).decode()
    if sketches:
        proposal["sketches"] = dict(sketches)
    return encode(proposal).encode()


def _costs(definition: Definition, loss: Loss, entry: Entry) -> Mapping[str, str]:
    lines = definition.lines_of(who=entry["who"], purpose=entry["purpose"])
    costs = {}
    for name in lines:
        rules = definition.lines[name]
        rules.relation(loss, rules.neighbours)
        costs[name] = write_sums(rules.price(loss))
    return costs
