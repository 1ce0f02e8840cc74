"""Settings that say how questions are paid, and the offer that they make."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from discreet.errors import ParameterError
from discreet.service.wire.protocol.failures import WireFailure
from discreet.tables import Offer

__all__ = [
    "check_own", "cleared_by", "is_own", "is_switched_on", "made_offer", "named_periods",
    "own_names",
]  # fmt: skip

_WAYS: Final = ("epsilon", "share", "within")
_NUMBERS: Final = (*_WAYS, "delta", "of", "confidence", "size")
_SWITCHES: Final = ("errors", "notices", "degrade")
_TEXTS: Final = ("purpose", "periods")
_ON: Final = {"on": True, "true": True, "1": True, "yes": True}
_OFF: Final = {"off": False, "false": False, "0": False, "no": False, "": False}
_NUMBER: Final = re.compile(r"\d{0,30}(\.\d{0,40})?(e[+-]?\d{1,3})?%?", re.IGNORECASE)
_EXAMPLE: Final = "SET discreet.epsilon = 0.1"


def own_names() -> list[str]:
    """Return the names of our settings.

    >>> own_names()[0]
    'discreet.epsilon'
    """
    return [f"discreet.{name}" for name in (*_NUMBERS, *_TEXTS, *_SWITCHES)]


def is_own(name: str) -> bool:
    """Say whether a setting is one of ours, or is meant to be."""
    return name.startswith("discreet.")


def cleared_by(name: str) -> list[str]:
    """Return the settings that another one makes void: there is one way to pay at a time.

    >>> cleared_by("discreet.share")
    ['discreet.epsilon', 'discreet.within']
    """
    ways = [f"discreet.{way}" for way in _WAYS]
    return [way for way in ways if way != name] if name in ways else []


def check_own(name: str, value: str) -> None:
    """Refuse a setting that there is not, or a value that it cannot have."""
    short = name.partition(".")[2]
    if name not in own_names():
        near = get_close_matches(name, own_names(), n=1, cutoff=0.5)
        raise WireFailure(
            "42704", f"there is no setting {name[:80]!r}",
            hint=f"Did you mean {near[0]}?" if near else f"There are {', '.join(own_names())}.",
        )  # fmt: skip
    if short in _SWITCHES and value.lower() not in _ON | _OFF:
        raise WireFailure("22023", f"{name} is on or off")
    if short in _NUMBERS and value:
        _check_number(short, value)


def _check_number(short: str, value: str) -> None:
    allowed = Offer(epsilon=1) if short in _WAYS else None
    try:
        number = _number(short, value)
        fields: dict[str, Any] = {} if allowed is None else {short: number}
        if short == "within" and isinstance(number, str):
            fields["of"] = 1
        if not fields:
            fields = {"epsilon": 1, short: number}
        Offer(**fields)
    except ParameterError as error:
        raise WireFailure("22023", f"discreet.{short}: {error}") from None


def _number(short: str, value: str) -> Any:
    """Return a number exactly, or a share such as 5% as the text that it is.

    Fractions of unbounded texts would be unbounded: 1e999999999 is short.
    """
    text = value.strip()
    if not re.search(r"\d", text) or not _NUMBER.fullmatch(text):
        raise WireFailure("22023", f"{value[:40]!r} is no number such as 0.1, 5% or 1e-6")
    if not text.endswith("%"):
        return Fraction(text)
    return text if short in _WAYS else Fraction(text.removesuffix("%")) / 100


def is_switched_on(own: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Say whether a switch is on.

    >>> is_switched_on({"errors": "on"}, "errors", default=False)
    True
    """
    return {**_ON, **_OFF}[own[name].lower()] if own.get(name) else default


def named_periods(own: Mapping[str, str]) -> Sequence[str] | None:
    """Return the periods that are asked about: a list with commas."""
    listed = [one.strip() for one in own.get("periods", "").split(",") if one.strip()]
    return listed or None


def made_offer(own: Mapping[str, str], *, who: str) -> Offer:
    """Return what the settings offer for an answer.

    >>> made_offer({"epsilon": "0.1", "purpose": "budget"}, who="ana").epsilon
    Fraction(1, 10)
    """
    if not any(own.get(way) for way in _WAYS):
        raise WireFailure(
            "22023",
            "nothing says what this answer may cost. Nothing was spent.",
            hint=f"{_EXAMPLE}, or discreet.share = '5%', or discreet.within = 10. "
            "EXPLAIN SELECT ... tells the price first, and is free.",
        )
    numbers: dict[str, Any] = {name: _number(name, own[name]) for name in _NUMBERS if own.get(name)}
    return Offer(**numbers, periods=named_periods(own), who=who, purpose=own.get("purpose") or None)
