"""Release cards as entries of the public registry of deployments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from discreet.errors import ParameterError

__all__ = ["registry_entry"]

_TIERS: Final = {
    2: {
        "dp_variant": ("variant_name",),
        "privacy_loss": ("privacy_unit", "privacy_parameters"),
        "deployment_model": ("model_name", "release_type", "data_source_type", "access_type"),
    },
    3: {
        "dp_variant": ("data_domain", "unprotected_quantities"),
        "privacy_loss": ("privacy_unit_details", "privacy_parameters_details"),
        "deployment_model": ("actors",),
        "accounting": ("post_processing", "composition"),
        "implementation": (
            "preprocessing_and_hyperparameter_tuning", "mechanisms", "justification",
        ),
    },
}  # fmt: skip
"""What the registry's second and third tier ask for besides the fields that must be there."""
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
    data_source_type: Literal["Static", "Dynamic"] | None = None,
    data_domain: str | None = None,
    actors: str | None = None,
    justification: str | None = None,
) -> dict[str, Any]:
    """Turn a card into an entry of the Differential Privacy Deployments Registry, as a draft.

    A card knows how a release was made, its curator knows what for. The entry's tier is the
    highest of the registry's three whose fields are all filled. The second needs
    ``data_source_type``, too: whether data still comes in. The third also needs ``data_domain``
    (which data sets are possible), ``actors`` (who sees what, and why they are trusted) and
    ``justification`` (how these choices were made). Written by :func:`write_card`, it is a file
    of YAML.

    >>> from discreet.tables.results.example import region_counts
    >>> entry = registry_entry(
    ...     region_counts().card(), name="Visits by region", data_curators=["A Bureau"],
    ...     description="Counts.", intended_use="Planning.", data_product_region="Utopia",
    ...     registry_authors=["Ana"], publication_date="2026-11-15")
    >>> entry["deployment"]["privacy_loss"]["privacy_parameters"]
    {'epsilon': 0.5, 'delta': 1e-08}
    >>> entry["tier"]  # what a curator knows is missing
    1
    """
    if data_source_type not in (None, "Static", "Dynamic"):
        raise ParameterError(
            f"data_source_type must be 'Static' or 'Dynamic', got {data_source_type!r}.",
            parameter="data_source_type",
        )
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
    parts = _from_card(made)
    parts["dp_variant"]["data_domain"] = data_domain
    parts["deployment_model"] |= {"actors": actors, "data_source_type": data_source_type}
    parts["implementation"]["justification"] = justification
    filled = {
        part: {field: text for field, text in fields.items() if text}
        for part, fields in parts.items()
    }
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": _tier(filled),
        "deployment": {"basic": basic, **filled, "administrative": administrative},
    }


def _tier(filled: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the highest tier whose fields, and those of the tiers below it, are all filled."""
    for tier, parts in _TIERS.items():
        if any(not set(fields) <= set(filled[part]) for part, fields in parts.items()):
            return tier - 1
    return max(_TIERS)


def _from_card(made: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Fill the fields that a card knows; what it does not know is None or empty."""
    privacy, accounting = made["privacy"], made["accounting"]
    return {
        "dp_variant": {
            "variant_name": privacy["variant"],
            "unprotected_quantities": _unprotected(made),
        },
        "privacy_loss": {
            "privacy_unit": privacy.get("unit"),
            "privacy_unit_details": _NEIGHBOURS.get(str(privacy.get("neighbours"))),
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
            "data_source_type_details": _version(made),
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


def _version(made: Mapping[str, Any]) -> str | None:
    version = made.get("data_version")
    return None if version is None else f"Version of the data: {version}."


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
    lines = [f"- {m['text']}: {m['noise']}{_deviation(m)}" for m in made["mechanisms"]]
    software = made["software"]
    lines.append(f"- Sampling: {made['sampling']}; no floating-point noise.")
    lines.append(f"- Library: {software['name']} {software['version']}.")
    return "\n".join(lines)


def _deviation(mechanism: Mapping[str, Any]) -> str:
    if "deviation_in_rows" in mechanism:
        return f", standard deviation {mechanism['deviation_in_rows']:.4g} in rows, on each sum"
    stated = mechanism["deviation"]
    if stated is None:  # a random choice, not a number plus noise
        return ""
    ends = stated if isinstance(stated, list) else [stated]
    return f", standard deviation {' to '.join(f'{end:.4g}' for end in ends)}"


def _flat(value: object) -> str:
    return json.dumps(value, sort_keys=True).replace('"', "")
