"""What was declared when a collection was opened, and never changes."""

import json
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, final

from discreet._exact import refusal, whole
from discreet._json import read_json
from discreet.errors import DataError
from discreet.local.wire import Parameters, read_parameters

__all__ = ["CollectionTerms"]

_FORMAT: Final = 1
_LONGEST: Final = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionTerms:
    """State what devices are told, who pays, and from how many reports on estimates are published.

    ``parameters`` is what devices are told. ``ledger`` is the origin of the ledger that has the
    ``account``. ``participation_is_public`` says that whether and when a device reports does not
    depend on its data: it then reports for the null record, too, as it would for any other.

    >>> from discreet.local import DirectResponse
    >>> from discreet.local.wire import parameters_of
    >>> law = DirectResponse(domain=4, epsilon=1)
    >>> terms = CollectionTerms(
    ...     parameters=parameters_of(law, name="tea", a_day=1, lifetime=5), minimum=1000,
    ...     ledger="discreet-ledger/00", account="devices", who="ana", purpose="menu",
    ...     opened=date(2026, 11, 30))
    >>> terms.parameters.name, terms.minimum, terms.participation_is_public
    ('tea', 1000, False)
    """

    parameters: Parameters
    ledger: str
    account: str
    minimum: int
    who: str
    purpose: str
    opened: date
    participation_is_public: bool = False

    def __post_init__(self) -> None:
        hint = "It is the number of new reports from which on an estimate is published."
        whole(self.minimum, name="minimum", hint=hint)
        for name in ("who", "purpose"):
            text = getattr(self, name)
            if not isinstance(text, str) or not (text.isprintable() and 0 < len(text) <= _LONGEST):
                raise refusal(name, f"a text of 1 to {_LONGEST} printable characters", text)

    def to_json(self) -> str:
        """Write them down.

        >>> from discreet.local import DirectResponse
        >>> from discreet.local.wire import parameters_of
        >>> law = DirectResponse(domain=4, epsilon=1)
        >>> terms = CollectionTerms(
        ...     parameters=parameters_of(law, name="tea", a_day=1, lifetime=5), minimum=1000,
        ...     ledger="discreet-ledger/00", account="devices", who="ana", purpose="menu",
        ...     opened=date(2026, 11, 30))
        >>> json.loads(terms.to_json())["opened"]
        '2026-11-30'
        """
        return json.dumps(
            {
                "format": _FORMAT,
                "parameters": self.parameters.document,
                "ledger": self.ledger,
                "account": self.account,
                "minimum": self.minimum,
                "who": self.who,
                "purpose": self.purpose,
                "opened": self.opened.isoformat(),
                "participation_is_public": self.participation_is_public,
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> "CollectionTerms":
        """Read them back; refuse what was not written so.

        >>> from discreet.local import DirectResponse
        >>> from discreet.local.wire import parameters_of
        >>> law = DirectResponse(domain=4, epsilon=1)
        >>> terms = CollectionTerms(
        ...     parameters=parameters_of(law, name="tea", a_day=1, lifetime=5), minimum=1000,
        ...     ledger="discreet-ledger/00", account="devices", who="ana", purpose="menu",
        ...     opened=date(2026, 11, 30))
        >>> CollectionTerms.from_json(terms.to_json()) == terms
        True
        """
        try:
            found: dict[str, Any] = read_json(text, strict=True)
            if found.pop("format") != _FORMAT:
                raise KeyError("format")
            found["parameters"] = read_parameters(json.dumps(found["parameters"]))
            found["opened"] = date.fromisoformat(found["opened"])
            return cls(**found)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError(
                "the terms in this file cannot be read: it was altered, or a newer discreet wrote "
                "it. Nothing was charged."
            ) from None

    def is_same_as(self, other: "CollectionTerms") -> bool:
        """Say whether the same was declared; chance and the day it was done on aside.

        >>> from discreet.local import DirectResponse
        >>> from discreet.local.wire import parameters_of
        >>> law = DirectResponse(domain=4, epsilon=1)
        >>> terms = CollectionTerms(
        ...     parameters=parameters_of(law, name="tea", a_day=1, lifetime=5), minimum=1000,
        ...     ledger="discreet-ledger/00", account="devices", who="ana", purpose="menu",
        ...     opened=date(2026, 11, 30))
        >>> later = replace(terms, opened=date(2026, 12, 24))
        >>> terms.is_same_as(later), terms.is_same_as(replace(terms, minimum=500))
        (True, False)
        """
        parameters = replace(other.parameters, collection=self.parameters.collection)
        return replace(other, parameters=parameters, opened=self.opened) == self
