"""What a collection's file says, for whoever has no ledger at hand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from discreet.errors import ParameterError
from discreet.ledger import Receipt
from discreet.local.collection.file import ReportFile
from discreet.local.collection.terms import CollectionTerms

__all__ = ["CollectionFacts"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFacts:
    """Tell a collection's terms, how many reports came, and what was paid and published by now.

    ``paid`` are the ledger's entries, by period; ``publication`` is the number of the last one and
    how many reports it was made of.

    >>> from datetime import date
    >>> from discreet.local import DirectResponse
    >>> from discreet.local.wire import parameters_of
    >>> law = DirectResponse(domain=4, epsilon=1)
    >>> terms = CollectionTerms(
    ...     parameters=parameters_of(law, name="tea", a_day=1, lifetime=5), minimum=1000,
    ...     ledger="discreet-ledger/00", account="devices", who="ana", purpose="menu",
    ...     opened=date(2026, 11, 30))
    >>> facts = CollectionFacts(terms=terms, counts={"accepted": 7}, paid={"": 2}, publication=None)
    >>> facts.counts["accepted"], facts.paid
    (7, {'': 2})
    """

    terms: CollectionTerms
    counts: dict[str, int]
    paid: dict[str, int]
    publication: tuple[int, int] | None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read them; nothing is charged, and nothing is written.

        >>> CollectionFacts.read(Path("none.db"))
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: there is no collection at none.db...
        """
        if not path.exists():
            raise ParameterError(
                f"there is no collection at {path}. Make one with: discreet collect init",
                parameter="name",
            )
        file = ReportFile(path)
        try:
            last = file.last_publication
            return cls(
                terms=CollectionTerms.from_json(file.terms),
                counts=file.counts,
                paid={period: Receipt(bodies=(one,)).index for period, one in file.charges.items()},
                publication=None if last is None else (last.number, last.n),
            )
        finally:
            file.close()
