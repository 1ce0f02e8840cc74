"""What is left of the budgets that a login draws on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from discreet._words import percent
from discreet.errors import DiscreetError
from discreet.privacy import Guarantee

__all__ = ["RemoteBudget", "read_budgets"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBudget:
    """One budget behind a gateway, and the share of it that is used.

    ``guarantee``, and the share ``held`` for jobs under way, are for custodians and auditors; an
    analyst is not told them.

    >>> print(RemoteBudget(name="analyst=ana", used=0.25))
    analyst=ana: 25% used
    """

    name: str
    used: float
    held: float | None = None
    guarantee: Guarantee | None = None

    def __str__(self) -> str:
        return f"{self.name}: {percent(self.used, up=True)} used"


def read_budgets(document: Mapping[str, Any]) -> list[RemoteBudget]:
    """Rebuild budgets from what a gateway lists.

    >>> read_budgets({"budgets": [{"name": "total", "used": 0.5}]})
    [RemoteBudget(name='total', used=0.5, held=None, guarantee=None)]
    """
    try:
        return [_budget(one) for one in document["budgets"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DiscreetError("the gateway sent something that is no list of budgets.") from None


def _budget(one: Mapping[str, Any]) -> RemoteBudget:
    held, is_told = one.get("held"), "epsilon" in one
    return RemoteBudget(
        name=str(one["name"]),
        used=float(one["used"]),
        held=None if held is None else float(held),
        guarantee=Guarantee(epsilon=one["epsilon"], delta=one["delta"]) if is_told else None,
    )
