"""Release cards as entries of the public registry of deployments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from discreet.errors import ParameterError

__all__ = ["registry_entry"]

_NEIGHBOURS: Final = {
    "add_remove": "Two datasets are adjacent if one is the other without the rows of one unit.",
    "replace_one": "Two datasets are adjacent if the rows of one unit are replaced by others.",
    "zero_out": "Two datasets are adjacent if the rows of one unit are blanked out in one of them.",
}


def registry_entry(
    made: Mapping[str, Any],
    *,
    name: str,
    data_curators: Sequence[str],
    description: str,
    intended_use: str,
    data_product_region: str,
    registry_authors: Sequence[str],
    publication_date: str | None = None,
) -> dict[str, Any]:
    """Turn a card into an entry of the Differential Privacy Deployments Registry, as a draft.

    A card knows how a release was made, its curator knows what for. Both together fill the
    registry's fields, up to its third tier. Written by :func:`write_card`, it is a file of YAML.

    >>> from discreet.tables.results.example import region_counts
    >>> entry = registry_entry(
    ...     region_counts().card(), name="Visits by region", data_curators=["A Bureau"],
    ...     description="Counts.", intended_use="Planning.", data_product_region="Utopia",
    ...     registry_authors=["Ana"], publication_date="2026-11-15")
    >>> entry["deployment"]["privacy_loss"]["privacy_parameters"]
    {'epsilon': 0.5, 'delta': 1e-08}
    """
    date = publication_date or str(made.get("released") or "")[:10]
    if not date:
        raise ParameterError(
            "publication_date must be given: the receipt does not say when it was.",
            parameter="publication_date",
        )
    slug = "".join(char if char.isalnum() else "-" for char in name.lower()).strip("-")
    basic = {
        "name": name,
        "data_curators": list(data_curators),
        "description": description,
        "intended_use": intended_use,
        "data_product_type": "Summary statistics",
        "data_product_region": data_product_region,
        "publication_date": date,
    }
    administrative = {
        "notes": f"Question: {made['question']}",
        "registry_authors": list(registry_authors),
    }
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {"basic": basic, **_from_card(made), "administrative": administrative},
    }


def _from_card(made: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the fields that a card knows."""
    privacy, accounting = made["privacy"], made["accounting"]
    return {
        "dp_variant": {
            "variant_name": privacy["variant"],
            "data_domain": f"Version of the data: {made.get('data_version') or 'not stated'}.",
            "unprotected_quantities": _unprotected(made),
        },
        "privacy_loss": {
            "privacy_unit": str(privacy.get("unit")),
            "privacy_unit_details": _NEIGHBOURS.get(str(privacy.get("neighbours")), ""),
            "privacy_parameters": {
                "epsilon": privacy["epsilon"],
                **({"delta": privacy["delta"]} if privacy["delta"] else {}),
            },
            "privacy_parameters_details": (
                "The guarantee of this release by itself. What the account was charged: "
                + json.dumps(accounting["loss"], sort_keys=True)
            ),
        },
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": " ".join(made["post_processing"]) or "None.",
            "composition": f"By a {accounting['method']}.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _preparation(made),
            "mechanisms": _mechanisms(made),
        },
    }


def _unprotected(made: Mapping[str, Any]) -> str:
    public = (made.get("groups") or {}).get("kind") == "public"
    return "The list of groups, which is public." if public else "None."


def _preparation(made: Mapping[str, Any]) -> str:
    lines = [f"Contributions of a unit: {_flat(made['bounds']['contributions'])}."]
    for value in made["bounds"]["values"]:
        lines.append(f"Values of {value['text']}: {_flat(value['bounds'])} ({value['origin']}).")
    lines.append("Bounds that were inferred are paid for by this release.")
    return " ".join(lines)


def _mechanisms(made: Mapping[str, Any]) -> str:
    lines = [
        f"- {m['text']}: {m['noise']}, standard deviation {m['deviation']}"
        for m in made["mechanisms"]
    ]
    software = made["software"]
    lines.append(f"- Sampling: {made['sampling']}; no floating-point noise.")
    lines.append(f"- Library: {software['name']} {software['version']}.")
    return "\n".join(lines)


def _flat(value: object) -> str:
    return json.dumps(value, sort_keys=True).replace('"', "")
