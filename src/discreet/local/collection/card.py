"""Release cards of collections: what was asked of whom, and how privately."""

from collections.abc import Mapping
from typing import Any, Final

from discreet._exact import float_up
from discreet._json import read_json
from discreet._version import __version__
from discreet.accounting import to_json
from discreet.ledger import Receipt
from discreet.local.collection.charging import Dues
from discreet.local.collection.terms import CollectionTerms
from discreet.local.repeated.exposure import price_of
from discreet.privacy import Neighbours, Unit

__all__ = ["card_of"]

_FORMAT: Final = 1


def card_of(
    terms: CollectionTerms,
    dues: Dues,
    *,
    receipt: Receipt,
    unit: Unit,
    neighbours: Neighbours,
    n: int,
    rejects: Mapping[str, int],
) -> dict[str, Any]:
    """Describe a publication as JSON-ready data; its members are those of other release cards."""
    parameters = terms.parameters
    return {
        "format": _FORMAT,
        "question": parameters.name,
        "released": receipt.entries[-1].get("time"),
        "trust_model": "local: each device adds its noise before anything leaves it",
        "privacy": {
            "unit": str(unit),
            "neighbours": str(neighbours),
            "carried_over": dues.proof,
            "epsilon": _epsilon(dues.loss.epsilon_pure),
            "epsilon_a_report": _epsilon(price_of(parameters.randomiser, reports=1)),
            "epsilon_a_day": _epsilon(parameters.a_day),
            "epsilon_lifetime": _epsilon(parameters.lifetime),
            "delta": 0.0,
            "variant": "Pure DP",
            "assumed": [
                "each device keeps to the caps by itself",
                "whether and when a device reports does not depend on its data",
            ],
        },
        "reports": {"counted": n, "minimum": terms.minimum, **rejects},
        "mechanisms": [parameters.document["randomiser"]],
        "sampling": "by the devices: whole numbers compared, from their own secure sources",
        "accounting": {
            "loss": read_json(to_json(dues.loss)),
            "method": "privacy filter of the account; charged before the first report was taken, "
            + ("for the lifetime of a device" if dues.period is None else f"for each {dues.period}")
            + "; devices do not add up, since each has its own data and its own noise",
        },
        "post_processing": ["the estimate, and every further one of the same reports: free"],
        "parameters": parameters.digest.hex(),
        "evidence": {
            "account": receipt.account,
            "entries": [_entry(entry) for entry in receipt.entries],
            "proofs": ["docs/proofs/filters.md"],
        },
        "software": {"name": "discreet", "version": __version__},
    }


def _epsilon(value: Any) -> float:
    return value if isinstance(value, float) else float_up(value)


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("index", "kind", "time", "answer") if key in entry}
