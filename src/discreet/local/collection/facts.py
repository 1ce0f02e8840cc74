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
    """

    terms: CollectionTerms
    counts: dict[str, int]
    paid: dict[str, int]
    publication: tuple[int, int] | None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read them; nothing is charged, and nothing is written."""
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
