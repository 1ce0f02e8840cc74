"""An estimate as it was published: numbers about everybody, a receipt, and a card."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from discreet._json import read_json
from discreet.ledger import Receipt
from discreet.local.collection.card import card_of
from discreet.local.collection.charging import Dues
from discreet.local.collection.terms import CollectionTerms
from discreet.privacy import Neighbours, Unit

__all__ = ["FORMAT", "Publication", "write_document"]

FORMAT: Final = "discreet-estimate/1"
_PARTS: Final = ("counts", "mean", "variance", "standard_error")  # of the estimates there are
_DIGITS: Final = 9


def write_document(
    terms: CollectionTerms, estimate: object, *, number: int, n: int, rejects: Mapping[str, int]
) -> bytes:
    """Write an estimate as the bytes that are published, and to whose digest the ledger commits."""
    parameters = terms.parameters
    document = {
        "format": FORMAT,
        "collection": parameters.collection,
        "name": parameters.name,
        "parameters": parameters.digest.hex(),
        "publication": number,
        "n": n,
        "minimum": terms.minimum,
        "rejects": dict(rejects),
        "estimate": {
            part: _plain(getattr(estimate, part)) for part in _PARTS if hasattr(estimate, part)
        },
    }
    if parameters.values is not None:
        document["values"] = list(parameters.values)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _plain(numbers: Any) -> Any:
    """Return numbers with nine digits of the largest: far more than noise leaves of meaning."""
    array = np.asarray(numbers, dtype=np.float64)
    known = np.isfinite(array)  # nobody may have been asked about a value
    largest = float(np.abs(array[known]).max(initial=0.0))
    rounded = np.round(array, _DIGITS - math.ceil(math.log10(largest)) if largest else 0)
    if known.all():
        return rounded.tolist()
    return [one if math.isfinite(one) else None for one in rounded.tolist()]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Hold what was estimated from the first ``n`` reports, whatever order they came in.

    ``document`` are the bytes to whose digest the ledger commits: with the receipt they convince
    somebody else. ``numbers`` are what they say, such as ``counts`` and ``standard_error``.

    >>> from datetime import date
    >>> from discreet.local import DirectResponse
    >>> from discreet.local.collection.charging import dues_of
    >>> from discreet.local.wire import parameters_of
    >>> law = DirectResponse(domain=2, epsilon=1)
    >>> tea = parameters_of(law, name="tea", a_day=1, lifetime=5)
    >>> devices = {"unit": Unit.column("device"), "neighbours": Neighbours.replace_one}
    >>> published = Publication(
    ...     number=1, n=100, document=b'{"estimate": {"counts": [70.0, 30.0]}, "rejects": {}}',
    ...     receipt=Receipt(bodies=('{"account": "devices"}',)),
    ...     terms=CollectionTerms(
    ...         parameters=tea, ledger="discreet-ledger/00", account="devices", minimum=100,
    ...         who="ana", purpose="menu", opened=date(2026, 11, 30)),
    ...     dues=dues_of(tea, participation_is_public=False, **devices), **devices)
    >>> published
    Publication(number=1, n=100)
    >>> published.numbers["counts"]
    array([70., 30.])
    """

    number: int
    n: int
    document: bytes = field(repr=False)
    receipt: Receipt = field(repr=False)
    terms: CollectionTerms = field(repr=False)
    dues: Dues = field(repr=False)
    unit: Unit = field(repr=False)
    neighbours: Neighbours = field(repr=False)

    @property
    def numbers(self) -> dict[str, Any]:
        """The estimate's numbers, as arrays where they are many."""
        found = read_json(self.document)["estimate"]
        return {
            part: np.array(value, dtype=np.float64) if isinstance(value, list) else value
            for part, value in found.items()
        }

    @property
    def rejects(self) -> dict[str, int]:
        """How many reports had come by then that were not counted, for each reason."""
        return {what: int(n) for what, n in read_json(self.document)["rejects"].items()}

    def card(self) -> dict[str, Any]:
        """Describe the publication as JSON-ready data, without a number of the estimate.

        >>> from datetime import date
        >>> from discreet.local import DirectResponse
        >>> from discreet.local.collection.charging import dues_of
        >>> from discreet.local.wire import parameters_of
        >>> law = DirectResponse(domain=2, epsilon=1)
        >>> tea = parameters_of(law, name="tea", a_day=1, lifetime=5)
        >>> devices = {"unit": Unit.column("device"), "neighbours": Neighbours.replace_one}
        >>> published = Publication(
        ...     number=1, n=100, document=b'{"estimate": {"counts": [70.0, 30.0]}, "rejects": {}}',
        ...     receipt=Receipt(bodies=('{"account": "devices"}',)),
        ...     terms=CollectionTerms(
        ...         parameters=tea, ledger="discreet-ledger/00", account="devices", minimum=100,
        ...         who="ana", purpose="menu", opened=date(2026, 11, 30)),
        ...     dues=dues_of(tea, participation_is_public=False, **devices), **devices)
        >>> card = published.card()
        >>> card["question"], card["privacy"]["epsilon"], card["reports"]
        ('tea', 5.0, {'counted': 100, 'minimum': 100})
        """
        return card_of(
            self.terms,
            self.dues,
            receipt=self.receipt,
            unit=self.unit,
            neighbours=self.neighbours,
            n=self.n,
            rejects=self.rejects,
        )
