"""Release cards: what was released, about whom and how privately, for programs and registries."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from discreet._version import __version__
from discreet.accounting import to_json
from discreet.errors import ParameterError
from discreet.tables.results.adjust import FREE
from discreet.tables.results.explain import is_seeded
from discreet.tables.results.render import clean

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["card", "registry_entry", "write"]

FORMAT: Final = 1
_PROOFS: Final = {
    "norm": "docs/proofs/norm_clipping.md",
    "selected": "docs/proofs/key_thresholds.md",
    "exponential": "docs/proofs/weighted_quantiles.md",
    "inferred": "docs/proofs/private_limits.md",
}
_NEIGHBOURS: Final = {
    "add_remove": "Two datasets are adjacent if one is the other without the rows of one unit.",
    "replace_one": "Two datasets are adjacent if the rows of one unit are replaced by others.",
    "zero_out": "Two datasets are adjacent if the rows of one unit are blanked out in one of them.",
}
_SAMPLING: Final = {
    False: "exact, on whole numbers, from a cryptographically secure source",
    True: "exact, on whole numbers, from a SEEDED source: a test that protects nobody",
}


def card(result: "Result") -> dict[str, Any]:
    """Describe a release as JSON-ready data, without a single value of it.

    >>> from discreet.tables.results.example import region_counts
    >>> made = card(region_counts())
    >>> made["privacy"]["epsilon"], made["privacy"]["unit"], made["trust_model"]
    (0.5, 'all records of one user_id', 'central')
    """
    facts = result.facts
    aggregates = [dict(aggregate) for aggregate in facts.get("aggregates", ())]
    return {
        "format": FORMAT,
        "question": result.question,
        "columns": list(result.columns),
        "keys": list(result.keys),
        "released": _released(result),
        "trust_model": "central",
        "privacy": {
            "unit": facts.get("unit"),
            "neighbours": facts.get("neighbours"),
            "epsilon": result.epsilon,
            "delta": result.delta,
            "variant": "Approximate DP" if result.delta else "Pure DP",
        },
        "bounds": {
            "contributions": facts.get("bounding"),
            "values": [
                {key: aggregate.get(key) for key in ("text", "bounds", "origin")}
                for aggregate in aggregates
                if aggregate.get("bounds")
            ],
        },
        "groups": facts.get("keys"),
        "mechanisms": [
            {key: aggregate.get(key) for key in ("text", "kind", "noise", "deviation")}
            for aggregate in aggregates
        ],
        "sampling": _SAMPLING[is_seeded(result)],
        "confidence": result.confidence,
        "accounting": {
            "loss": json.loads(to_json(result.loss)),
            "method": "privacy filter of the account, for adaptively chosen releases",
            "budget_left": result.left,
        },
        "post_processing": [note for note in result.notes if FREE in note],
        "notes": [note for note in result.notes if FREE not in note],
        "data_version": facts.get("data_version"),
        "evidence": {
            "account": result.receipt.account,
            "entries": [_entry(entry) for entry in result.receipt.entries],
            "proofs": _proofs(result),
        },
        "software": {"name": "discreet", "version": __version__},
    }


def _released(result: "Result") -> str | None:
    time = result.receipt.entries[-1].get("time")
    return None if time is None else str(time)


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    known = ("index", "kind", "time", "answer", "previous")
    return {key: entry[key] for key in known if key in entry}


def _proofs(result: "Result") -> list[str]:
    bounding, keys = result.facts.get("bounding") or {}, result.facts.get("keys") or {}
    traits = [bounding.get("kind"), keys.get("kind"), bounding.get("origin")]
    for aggregate in result.facts.get("aggregates", ()):
        traits += [aggregate.get("noise"), aggregate.get("origin")]
    used = {_PROOFS[str(trait)] for trait in traits if trait in _PROOFS}
    return ["docs/proofs/filters.md", *sorted(used)]


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
    registry's fields, up to its third tier. Written by :func:`write`, it is a file of YAML.

    >>> from discreet.tables.results.example import region_counts
    >>> entry = registry_entry(
    ...     card(region_counts()), name="Visits by region", data_curators=["A Bureau"],
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
    privacy, accounting = made["privacy"], made["accounting"]
    slug = "".join(char if char.isalnum() else "-" for char in name.lower()).strip("-")
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": list(data_curators),
                "description": description,
                "intended_use": intended_use,
                "data_product_type": "Summary statistics",
                "data_product_region": data_product_region,
                "publication_date": date,
            },
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
            "administrative": {
                "notes": f"Question: {made['question']}",
                "registry_authors": list(registry_authors),
            },
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


def write(made: Mapping[str, Any], path: str | Path) -> Path:
    """Write a card or a registry entry: ``.md`` for people, ``.json`` or ``.yaml`` for programs.

    JSON is YAML, too, so that one form serves both.

    >>> import tempfile
    >>> from discreet.tables.results.example import region_counts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(card(region_counts()), Path(folder) / "card.md").read_text().splitlines()[0]
    '# Release card'
    """
    place = Path(path)
    if place.suffix in (".json", ".yaml", ".yml"):
        text = json.dumps(made, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    elif place.suffix == ".md":
        text = _markdown(made)
    else:
        raise ParameterError(
            f"path must end in .json, .yaml or .md, got {place.name!r}.", parameter="path"
        )
    place.write_text(text, encoding="utf-8", newline="\n")
    return place


def _markdown(made: Mapping[str, Any]) -> str:
    lines = ["# Release card", ""]
    for name, value in made.items():
        title = name.replace("_", " ").capitalize()
        if isinstance(value, Mapping):
            lines += [f"## {title}", "", "| | |", "|---|---|"]
            lines += [f"| {_md(k.replace('_', ' '))} | {_md(_told(v))} |" for k, v in value.items()]
            lines.append("")
        else:
            lines += [f"**{title}**: {_md(_told(value))}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _told(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _md(text: str) -> str:
    """Write text that a question or a file brought along as text: no markup, no raw HTML."""
    made = clean(text)
    for char in "\\`*_[]<>|#":
        made = made.replace(char, "&lt;" if char == "<" else f"\\{char}")
    return made
