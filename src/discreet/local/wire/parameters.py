"""The public document that tells devices how to answer, and readers how to read answers."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, final

from discreet._exact import Number, positive, refusal
from discreet._json import read_json
from discreet.errors import DataError, ParameterError
from discreet.local.wire.kinds import kind_of, read_number, read_randomiser
from discreet.noise import SYSTEM, Source

__all__ = ["FORMAT", "Parameters", "parameters_of", "read_parameters"]

FORMAT: Final = "discreet-local/1"
_COLLECTION: Final = re.compile(r"[0-9a-f]{16}")
_LONGEST: Final = 200  # characters of a name or a label
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"
_NEEDED: Final = {"format", "collection", "name", "randomiser", "a_day", "lifetime"}
_OPTIONAL: Final = {"values", "not_before", "not_after"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """State what is collected, by which law, and how much a device may say.

    ``collection`` is the public name by which reports find home: 16 hexadecimal digits, drawn.
    ``values`` are the labels of the domain, in the order of their numbers. ``a_day`` and
    ``lifetime`` are the most epsilon that a device spends in this collection on one day of the
    calendar (UTC) and ever; it keeps to them by itself. It answers from ``not_before`` to
    ``not_after`` only.

    >>> from discreet import local
    >>> parameters_of(
    ...     local.HadamardResponse(domain=1000, epsilon=1), name="emoji", a_day=1, lifetime=30
    ... ).document["randomiser"]
    {'kind': 'hadamard', 'domain': 1000, 'epsilon': '1', 'keep': '13485650502877570762'}
    """

    collection: str
    name: str
    randomiser: Any
    a_day: Fraction
    lifetime: Fraction
    values: tuple[str, ...] | None = None
    not_before: datetime | None = None
    not_after: datetime | None = None

    def __post_init__(self) -> None:
        if not _COLLECTION.fullmatch(str(self.collection)):
            raise refusal("collection", "16 hexadecimal digits", self.collection)
        _require_text(self.name, "name")
        kind_of(self.randomiser)
        _require_budget(self.randomiser, self.a_day, self.lifetime)
        if self.values is not None:
            _require_labels(self.values, self.randomiser)
        for name in ("not_before", "not_after"):
            _require_moment(getattr(self, name), name)

    @property
    def document(self) -> dict[str, Any]:
        """The members of the document."""
        members: dict[str, Any] = {
            "format": FORMAT,
            "collection": self.collection,
            "name": self.name,
            "randomiser": kind_of(self.randomiser).document(self.randomiser),
            "a_day": str(self.a_day),
            "lifetime": str(self.lifetime),
        }
        if self.values is not None:
            members["values"] = list(self.values)
        for name in ("not_before", "not_after"):
            if (moment := getattr(self, name)) is not None:
                members[name] = moment.strftime(_MOMENT)
        return members

    @property
    def canonical(self) -> bytes:
        """The document in the one spelling that its digest is taken of."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @property
    def digest(self) -> bytes:
        """Eight bytes by which a report says which parameters it was made by."""
        return hashlib.sha256(self.canonical).digest()[:8]


def parameters_of(
    randomiser: Any,
    *,
    name: str,
    a_day: Number,
    lifetime: Number,
    values: Sequence[str] | None = None,
    not_before: datetime | None = None,
    not_after: datetime | None = None,
    source: Source = SYSTEM,
) -> Parameters:
    """Return the parameters of a new collection, with a name by chance for reports to carry."""
    return Parameters(
        collection=source.read(8).hex(),
        name=name,
        randomiser=randomiser,
        a_day=positive(a_day, name="a_day"),
        lifetime=positive(lifetime, name="lifetime"),
        values=None if values is None else tuple(values),
        not_before=not_before,
        not_after=not_after,
    )


def read_parameters(document: str | bytes) -> Parameters:
    """Return what a document says; refuse it unless every number in it is the one we would write.

    >>> from discreet import local
    >>> randomiser = local.DirectResponse(domain=2, epsilon=1)
    >>> written = parameters_of(randomiser, name="a question", a_day=1, lifetime=1)
    >>> read_parameters(written.canonical) == written
    True
    >>> read_parameters(written.canonical.replace(b"keep", b"keen"))
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: the parameters' randomiser must be what its kind and epsilon make...
    """
    try:
        found = read_json(document, strict=True)
    except ValueError as problem:
        raise DataError(f"the parameters must be a JSON document, but {problem}.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError(f'the parameters must be an object whose format is "{FORMAT}".')
    if not found.keys() >= _NEEDED or not found.keys() <= _NEEDED | _OPTIONAL:
        raise DataError(
            f"the parameters must have {', '.join(sorted(_NEEDED))}, and beside them "
            f"nothing but {', '.join(sorted(_OPTIONAL))}."
        )
    try:
        parameters = _built(found)
    except ParameterError as problem:
        raise DataError(f"the parameters do not hold together: {problem}") from None
    for member, written in parameters.document.items():
        if found[member] != written:
            raise DataError(
                f"the parameters' {member} must be what its kind and epsilon make it. Somebody "
                "changed the document: take it from the collector again, and send no report by it."
            )
    return parameters


def _built(found: dict[str, Any]) -> Parameters:
    labels = found.get("values")
    if labels is not None and not isinstance(labels, list):
        raise DataError("the parameters' values must be a list of labels.")
    if not isinstance(found["collection"], str):  # a number of 16 digits, say
        raise DataError("the parameters' collection must be a text of 16 hexadecimal digits.")
    return Parameters(
        collection=found["collection"],
        name=found["name"],
        randomiser=read_randomiser(found["randomiser"]),
        a_day=Fraction(read_number(found["a_day"], name="a_day")),
        lifetime=Fraction(read_number(found["lifetime"], name="lifetime")),
        values=None if labels is None else tuple(labels),
        not_before=_read_moment(found, "not_before"),
        not_after=_read_moment(found, "not_after"),
    )


def _read_moment(found: dict[str, Any], name: str) -> datetime | None:
    if name not in found:
        return None
    try:
        return datetime.strptime(found[name], _MOMENT).replace(tzinfo=UTC)
    except (ValueError, TypeError):
        raise DataError(f"{name} must be a moment such as 2030-01-31T12:00:00Z.") from None


def _require_text(text: object, name: str) -> None:
    half = isinstance(text, str) and text.encode(errors="replace").decode() != text
    if not isinstance(text, str) or half or not 0 < len(text) <= _LONGEST:
        raise refusal(name, f"a text of 1 to {_LONGEST} characters", text)


def _require_budget(randomiser: Any, a_day: Fraction, lifetime: Fraction) -> None:
    """Require that a device may answer at least once, also where it keeps what it answered."""
    epsilon = positive(randomiser.epsilon, name="epsilon")
    first = positive(getattr(randomiser, "first", epsilon), name="first")
    for name, budget, least in (("a_day", a_day, first), ("lifetime", lifetime, epsilon)):
        if not budget >= least:
            raise refusal(name, f"at least what one answer costs, which is {least}", budget)


def _require_labels(labels: tuple[str, ...], randomiser: Any) -> None:
    for label in labels:
        _require_text(label, "values")
    domain = getattr(randomiser, "domain", 0)
    if not len(set(labels)) == len(labels) == domain:
        wanted = f"{domain} different labels, one for each value of the domain"
        raise refusal("values", wanted, f"{len(set(labels))} different ones")


def _require_moment(moment: datetime | None, name: str) -> None:
    if moment is not None and (moment.utcoffset() != UTC.utcoffset(None) or moment.microsecond):
        raise refusal(name, "a moment in UTC, in whole seconds", moment)
