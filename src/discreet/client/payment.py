"""Offers as a gateway takes them: exactly, or rounded so that nobody pays more than was said."""

import math
import re
import sys
from fractions import Fraction
from typing import Any, Final

from discreet._exact import Number
from discreet.errors import ParameterError
from discreet.noise import SYSTEM, Source
from discreet.tables import Groups, Norm, Offer, Question, Totals

__all__ = ["check_source", "offer_members", "question_texts", "request_key"]

_DIGITS: Final = 10**15  # numerators and denominators are below
_PLACES: Final = 12  # behind the point of a percentage


def offer_members(offer: Offer, *, purpose: str | None) -> dict[str, Any]:
    """Return what a request says about payment.

    A gateway takes doubles, and fractions of up to fifteen digits. What is neither is rounded: what
    is paid down, an interval to be narrower, and a confidence up.

    >>> offer_members(Offer(epsilon=Fraction(1, 3), confidence=0.9), purpose=None)
    {'epsilon': '1/3', 'confidence': 0.9}
    >>> offer_members(Offer(share="5%", who="ben"), purpose=None)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: who= is what the gateway takes the login for: leave it out.
    """
    if offer.who is not None:
        raise ParameterError(
            "who= is what the gateway takes the login for: leave it out.", parameter="who"
        )
    said = {
        "epsilon": _exact_or_down(offer.epsilon),
        "delta": _exact_or_down(offer.delta),
        "share": _share(offer.share),
        "within": None if offer.within is None else _down(Fraction(offer.within)),
        "confidence": _confidence(offer),
        "size": offer.size,
        "periods": None if offer.labels is None else list(offer.labels),
        "bounding": _bounding(offer),
        "purpose": offer.purpose or purpose,
    }
    return {name: value for name, value in said.items() if value is not None}


def _double(value: Fraction) -> float | None:
    """Return a number as a double, if it is one."""
    try:
        nearest = float(value)
    except OverflowError:
        return None
    return nearest if Fraction(nearest) == value else None


def _down(value: Fraction) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _as_text(value: Fraction) -> str | None:
    """Return a number as ``p/q``, if it is short enough."""
    if value.numerator < _DIGITS and value.denominator < _DIGITS:
        return f"{value.numerator}/{value.denominator}"
    return None


def _exact_or_down(given: Number | None) -> float | str | None:
    if given is None:
        return None
    value = Fraction(given)
    double = _double(value)
    return double if double is not None else _as_text(value) or _down(value)


def _share(given: Number | str | None) -> float | str | None:
    if given is None:
        return None
    value = Fraction(given)
    double = _double(value)
    return double if double is not None else _percentage(value) or _down(value)


def _percentage(value: Fraction) -> str | None:
    """Return a share as a percentage, if that is a decimal number of few places."""
    scaled = 100 * value * 10**_PLACES
    if scaled.denominator != 1:
        return None
    whole, behind = divmod(int(scaled), 10**_PLACES)
    places = f"{behind:0{_PLACES}}".rstrip("0")
    return f"{whole}.{places}%" if places else f"{whole}%"


def _confidence(offer: Offer) -> float | str | None:
    if offer.confidence == Offer(epsilon=1).confidence:
        return None
    value = Fraction(offer.confidence)
    double = _double(value)
    return double if double is not None else _as_text(value) or 1 - _down(1 - value)


def _bounding(offer: Offer) -> dict[str, Any] | None:
    match offer.bounding:
        case Groups(groups=groups, rows=rows):
            return {"kind": "groups", "groups": int(groups), "rows": int(rows)}
        case Norm(limit=limit, order=order):
            return {"kind": "norm", "limit": _down(Fraction(limit)), "order": order}
        case Totals(limit=limit, order=order):
            return {"kind": "totals", "limit": _down(Fraction(limit)), "order": order}
    return None


def question_texts(*questions: str | Question) -> list[str]:
    """Return questions in SQL.

    >>> question_texts("SELECT 1", 7)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: a question must be SQL, or a Question.
    """
    texts = [one.sql if isinstance(one, Question) else one for one in questions]
    if not all(isinstance(one, str) for one in texts):
        raise ParameterError("a question must be SQL, or a Question.", parameter="question")
    return [_sendable(one) for one in texts]


def _sendable(text: str) -> str:
    """Return what JSON can hold and a gateway refuses like the text, where that has no letters."""
    return re.sub("[\ud800-\udfff]", "\0", text) or " "


def check_source(source: Source) -> None:
    """Refuse a source of randomness: the noise is drawn where the data is.

    >>> check_source(SYSTEM)
    """
    if source is not SYSTEM:
        raise ParameterError(
            "source= cannot be said here: the gateway draws the noise. Leave it out.",
            parameter="source",
        )


def request_key(given: str | None) -> str:
    """Return the key by which a gateway knows a request again: the analyst's, or a new one.

    >>> request_key("report 7"), len(request_key(None))
    ('report 7', 32)
    """
    if given is None:
        from secrets import token_hex

        return token_hex(16)
    if not _is_key(given):
        raise ParameterError(
            "key must be 1 to 100 printable characters of ASCII, without spaces around them.",
            parameter="key",
        )
    return given


def _is_key(given: object) -> bool:
    if not isinstance(given, str) or not 1 <= len(given) <= 100:
        return False
    return given.isascii() and given.isprintable() and given == given.strip()
