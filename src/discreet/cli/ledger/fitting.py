"""What still fits into an account: the largest pure epsilon, the smallest Gaussian noise."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from discreet._words import more_words
from discreet.cli.numbers import digits

if TYPE_CHECKING:
    from discreet.accounting import Loss
    from discreet.ledger import Account

Facts = dict[str, Any]
_RECENT = 100  # entries in which a last charge is looked for
_MOST_NOISE = 1e6  # beyond, an answer says nothing


def fitting(account: "Account", *, who: str | None, purpose: str | None) -> Facts:
    """Return the largest pure epsilon and the smallest Gaussian noise multiplier that fit now."""
    from discreet.accounting import GaussianLoss, PureLoss

    period = account.unit.period
    today = None if period is None else datetime.now(UTC).date()

    def fits(loss: "Loss") -> bool:
        return account.quote(loss, who=who, purpose=purpose, periods=today).fits

    # Both searches run over "how much noise", from the side that fits.
    most = 4 * float(account.guarantee.epsilon)
    pure = _least(lambda m: fits(PureLoss(epsilon=most / m)), 1.0, 1e12) if most else None
    gauss = _least(lambda m: fits(GaussianLoss(noise_multiplier=m)), 1e-3, _MOST_NOISE)
    return {
        "like_last": _like_last(account, who=who, purpose=purpose, periods=today),
        "who": who,
        "purpose": purpose,
        "period": None if today is None else today.isoformat(),
        "epsilon": _rounded(pure and most / pure, lambda e: fits(PureLoss(epsilon=e)), up=False),
        "noise_multiplier": _rounded(
            gauss, lambda m: fits(GaussianLoss(noise_multiplier=m)), up=True
        ),
    }


def _like_last(account: "Account", **asking: Any) -> float | None:
    """Return how many more charges like the last one fit; None where nothing was charged yet."""
    from discreet.accounting import from_json

    for entry in reversed(account.history(last=_RECENT)):
        if entry["kind"] == "charge":
            quote = account.quote(from_json(json.dumps(entry["loss"])), **asking)
            return (quote.more or 0) + 1 if quote.fits else 0
    return None


def fits_words(fits: Facts) -> str:
    """Say what still fits.

    >>> fits_words({"epsilon": 1.5, "noise_multiplier": None, "who": "ana", "period": None})
    'Still fits, for ana: a pure loss of epsilon up to 1.5.'
    """
    told = []
    if fits.get("like_last"):
        told.append(
            more_words(fits["like_last"]).replace(" more like it fit", " like the last one")
        )
    if fits["epsilon"] is not None:
        told.append(f"a pure loss of epsilon up to {fits['epsilon']:g}")
    if fits["noise_multiplier"] is not None:
        told.append(f"Gaussian noise from a multiplier of {fits['noise_multiplier']:g}")
    whose = f", for {fits['who']}" if fits["who"] else ""
    when = f", on data of {fits['period']}" if fits["period"] else ""
    return f"Still fits{whose}{when}: {', or '.join(told) or 'nothing'}."


def _least(fits: Callable[[float], bool], low: float, high: float) -> float | None:
    """Return the least number that fits, a little above rather than below, or None."""
    if not fits(high):
        return None
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _rounded(value: float | None, fits: Callable[[float], bool], *, up: bool) -> float | None:
    """Return a number of four digits that fits: the nearest, or the next on the safe side."""
    if value is None:
        return None
    near = float(f"{value:.4g}")
    return near if fits(near) else float(digits(value, up=up, places=4))
