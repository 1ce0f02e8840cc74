"""Budgets and guarantees in plain words, for whoever sets them."""

from typing import Any, Final
from urllib.parse import unquote

from discreet.privacy import (
    Guarantee,
    detection,
    posterior,
    strength,
    success,
    weaknesses,
)

__all__ = ["POLICIES", "explained", "line_words"]

POLICIES: Final = {
    "deny": "Deny: the answer is no, and says why.",
    "degrade": "Degrade: offer the least noise that still fits.",
    "wait": "Wait: point to the next period, in which everybody is protected anew.",
}
_BELIEF: Final = 0.1
_FALSE_ALARMS: Final = 0.01


def explained(guarantee: Guarantee, *, units: int | None = None) -> dict[str, Any]:
    """Return what a guarantee means for one unit, as numbers that a page puts into sentences.

    >>> made = explained(Guarantee(epsilon=1))
    >>> made["strength"], round(made["success"], 2), made["weaknesses"]
    ('strong', 0.73, [])
    """
    return {
        "epsilon": float(guarantee.epsilon),
        "delta": float(guarantee.delta),
        "strength": strength(guarantee),
        "success": success(guarantee, prior=0.5),
        "belief": _BELIEF,
        "posterior": posterior(guarantee, prior=_BELIEF),
        "false_alarms": _FALSE_ALARMS,
        "detection": detection(guarantee, false_alarms=_FALSE_ALARMS),
        "weaknesses": [_without_commands(one) for one in weaknesses(guarantee, n=units)],
    }


def line_words(name: str) -> str:
    """Say whose budget one is, from its name in the ledger.

    >>> line_words("total"), line_words("analyst=*,every=month:ana,2026-12")
    ('everything together', 'each analyst, each month: ana, 2026-12')
    """
    line, _, place = name.partition(":")
    if line == "total":
        words = "everything together"
    else:
        said = dict(part.partition("=")[::2] for part in line.split(","))
        words = ", ".join(_part(what, unquote(value)) for what, value in said.items())
    where = unquote(", ".join(place.split(",")))
    return f"{words}: {where}" if where else words


def _part(what: str, value: str) -> str:
    if what == "every":
        return f"each {value}"
    return f"each {what}" if value == "*" else f"{what} {value}"


def _without_commands(told: str) -> str:
    """Leave out what to type at a terminal: the page shows it already."""
    return told.partition(" Look at what it means")[0]
