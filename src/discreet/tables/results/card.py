"""Release cards: what was released, about whom and how privately, without a value of it."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from discreet._json import read_json
from discreet._version import __version__
from discreet.accounting import to_json
from discreet.errors import ParameterError
from discreet.ledger import Receipt
from discreet.mechanisms import AboveThreshold
from discreet.tables.results.adjust import FREE
from discreet.tables.results.explain import is_seeded
from discreet.tables.results.format import clean

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["card", "card_of_alerts", "write_card"]

FORMAT: Final = 1
_SHOWN: Final = 3  # of the questions of a watch, which may be thousands
_PROOFS: Final = {
    "norm": "docs/proofs/norm_clipping.md",
    "total": "docs/proofs/whole_sums.md",
    "selected": "docs/proofs/key_thresholds.md",
    "exponential": "docs/proofs/weighted_quantiles.md",
    "inferred": "docs/proofs/private_limits.md",
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
        "released": _released(result.receipt),
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
        "mechanisms": [_mechanism(aggregate) for aggregate in aggregates],
        "sampling": _SAMPLING[is_seeded(result.receipt)],
        "confidence": result.confidence,
        "accounting": {
            "loss": read_json(to_json(result.loss)),
            "method": "privacy filter of the account, for adaptively chosen releases",
            "budget_left": None if math.isnan(result.left) else result.left,
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


def card_of_alerts(
    mechanism: AboveThreshold,
    questions: Sequence[str],
    *,
    receipt: Receipt,
    epsilon: float,
    unit: str,
    neighbours: str,
) -> dict[str, Any]:
    """Describe a watch as JSON-ready data, without a single answer of it.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     watch = T.watch(["SELECT COUNT(*) FROM people"], threshold=500, epsilon=1)
    >>> watch.card()["mechanisms"][0]["threshold"], watch.card()["privacy"]["variant"]
    (500.0, 'Pure DP')
    """
    return {
        "format": FORMAT,
        "questions": len(questions),
        "among_them": [" ".join(one.split()) for one in questions[:_SHOWN]],
        "released": _released(receipt),
        "trust_model": "central",
        "privacy": {
            "unit": unit,
            "neighbours": neighbours,
            "epsilon": epsilon,
            "delta": 0.0,
            "variant": "Pure DP",
        },
        "mechanisms": [
            {
                "text": "above the threshold or not, and by how much",
                "kind": "sparse vector",
                "noise": mechanism.noise,
                "threshold": float(mechanism.threshold),
                "positives": mechanism.positives,
                "sensitivity": float(mechanism.sensitivity),
                "monotone": mechanism.monotone,
                "deviation": mechanism.gap_variance**0.5,
            }
        ],
        "sampling": _SAMPLING[is_seeded(receipt)],
        "accounting": {
            "loss": read_json(to_json(receipt.loss)),
            "method": "privacy filter of the account, for adaptively chosen releases",
        },
        "evidence": {
            "account": receipt.account,
            "entries": [_entry(entry) for entry in receipt.entries],
            "proofs": ["docs/proofs/filters.md", "docs/proofs/sparse_vector.md"],
        },
        "software": {"name": "discreet", "version": __version__},
    }


def _mechanism(aggregate: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the noise of one aggregate, in its units: of all groups, or from least to most."""
    made = {key: aggregate.get(key) for key in ("text", "kind", "noise")}
    if "deviation" in aggregate:  # of an answer from before it was stated in these units
        return {**made, "deviation_in_rows": aggregate["deviation"]}
    least, most = aggregate.get("deviations", (None, None))
    return {**made, "deviation": least if least == most else [least, most]}


def _released(receipt: Receipt) -> str | None:
    time = receipt.entries[-1].get("time")
    return None if time is None else str(time)


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    known = ("index", "kind", "time", "answer", "previous")
    return {key: entry[key] for key in known if key in entry}


def _proofs(result: "Result") -> list[str]:
    bounding, keys = result.facts.get("bounding") or {}, result.facts.get("keys") or {}
    traits = [bounding.get("kind"), keys.get("kind"), bounding.get("origin")]
    for aggregate in result.facts.get("aggregates", ()):
        traits += [aggregate.get("noise"), aggregate.get("origin")]
        if aggregate.get("total"):
            traits += ["total", aggregate["total"].get("origin")]
    used = {_PROOFS[str(trait)] for trait in traits if trait in _PROOFS}
    return ["docs/proofs/filters.md", *sorted(used)]


def write_card(made: Mapping[str, Any], path: str | Path) -> Path:
    """Write a card or a registry entry: ``.md`` for people, ``.json`` or ``.yaml`` for programs.

    JSON is YAML, too, so that one form serves both.

    >>> import tempfile
    >>> from discreet.tables.results.example import region_counts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_card(region_counts().card(), Path(folder) / "card.md")
    ...     written.read_text().splitlines()[0]
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
