"""Results in plain words: who is protected, what was done, what the error bars say and do not."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from discreet._words import WIDTH, percent
from discreet.ledger import Receipt
from discreet.privacy import Guarantee, advantage, strength
from discreet.tables.results.format import clean, is_inferred, number, price

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_CHANGES: Final = {
    "add_remove": "being in the data or not",
    "replace_one": "having other values than it has",
    "zero_out": "having its values blanked out",
}
_LAWS: Final = {
    "gaussian": "Gaussian noise",
    "laplace": "Laplace noise",
    "exponential": "a random choice in favour of good answers (the exponential mechanism)",
}
_SOURCES: Final = {
    False: "a secure source",
    True: "a SEEDED source: this is a test and protects nobody",
}
_ORIGINS: Final = {
    "declared": "declared by the custodian",
    "asked": "stated in the question",
    "inferred": "chosen privately, for a part of the price",
}


def explain(result: "Result") -> str:
    """Tell the story of a release, one paragraph for each thing that a reader may ask."""
    parts = {
        "Who is protected": _protected(result),
        "What was bounded": _bounded(result),
        "Which groups appear": _groups(result),
        "What was added": _noise(result),
        "What the error bars say": _bars(result),
        "What it cost": _cost(result),
        "How to check it": _verify(result),
    }
    told = [f"{title}\n{_wrapped(text)}" for title, text in parts.items() if text]
    if result.notes:
        notes = "\n".join(_wrapped(clean(note)) for note in result.notes)
        told.append(f"Notes\n{notes}")
    return "\n\n".join(told)


def is_seeded(receipt: Receipt) -> bool:
    """Whether the ledger has on record that noise came from a seed, which only tests may do."""
    return any(entry.get("noise") == "seeded" for entry in receipt.entries)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=WIDTH, initial_indent="  ", subsequent_indent="  ")


def _protected(result: "Result") -> str:
    unit = clean(result.facts.get("unit", "one unit"))
    change = _CHANGES.get(str(result.facts.get("neighbours")), "a change of it")
    odds = 50 + 50 * advantage(Guarantee(epsilon=result.epsilon, delta=result.delta))
    return (
        f"The unit of privacy is {unit}. This answer hides {change}: whoever knows everything "
        f"else and guesses which of two equally likely cases is true is right at most "
        f"{odds:.3g} times of 100, against 50 by tossing a coin."
    )


def _origin(facts: Mapping[str, Any]) -> str:
    told = _ORIGINS.get(str(facts.get("origin")))
    return f" ({told})" if told else ""


def _bounded(result: "Result") -> str:
    bounding = result.facts.get("bounding") or {}
    sentences = []
    if bounding.get("kind") == "norm":
        norm = "sum" if bounding.get("order") == 1 else "root of the sum of squares"
        sentences.append(
            f"Rows of a unit were weighed down together where the {norm} of its numbers of rows "
            f"over groups exceeded {_number(bounding.get('limit'))}{_origin(bounding)}; all other "
            "units count in full."
        )
    elif bounding.get("kind") == "groups":
        sentences.append(
            f"A unit counts in at most {_number(bounding.get('groups'))} groups, chosen at random, "
            f"with a weight of at most {_number(bounding.get('rows'))} rows in each"
            f"{_origin(bounding)}."
        )
    elif bounding.get("kind") == "none":
        sentences.append("Each row is a unit of its own, so that nothing had to be weighed down.")
    for aggregate in result.facts.get("aggregates", ()):
        total = aggregate.get("total")
        if total:
            norm = "sizes" if total.get("order") == 1 else "root of the squares"
            sentences.append(
                f"What a unit adds to {_name(aggregate)} was scaled down where the {norm} of its "
                f"sums over groups exceeded {_number(total.get('limit'))}{_origin(total)}."
            )
        if aggregate.get("bounds"):
            ends = [_between(aggregate[b]) for b in ("bounds", "second_bounds") if b in aggregate]
            sentences.append(
                f"Values in {_name(aggregate)} were clamped to {' and to '.join(ends)}"
                f"{_origin(aggregate)}."
            )
    return " ".join(sentences)


def _number(value: object) -> str:
    if not isinstance(value, int | float):
        return clean(value)
    return number(float(f"{value:.4g}")) if value != int(value) else number(value)


def _between(bounds: Sequence[object]) -> str:
    low, high = (_number(bound) for bound in bounds)
    return f"[{low}, {high}]"


def _name(aggregate: Mapping[str, Any]) -> str:
    return clean(aggregate.get("text") or aggregate.get("column") or aggregate.get("kind"))


def _groups(result: "Result") -> str:
    keys = result.facts.get("keys") or {}
    if keys.get("kind") == "public":
        return "The groups are public, so all of them appear, also those without any row."
    if keys.get("kind") == "selected":
        least = keys.get("threshold")
        told = "" if least is None else f": {_number(least)} rows or more, noise included"
        return (
            f"The groups are data. One appears only if enough units stand behind it{told}. That "
            "one is missing does not mean that it is empty, and values of small groups that "
            "appear are too high on average."
        )
    return ""


def _noise(result: "Result") -> str:
    sentences = []
    for aggregate in result.facts.get("aggregates", ()):
        law = _LAWS.get(str(aggregate.get("noise")))
        if law is None:
            continue
        sentences.append(f"{_name(aggregate)}: {law}{_deviation(aggregate)}.")
    if sentences:
        source = _SOURCES[is_seeded(result.receipt)]
        sentences.append(
            f"It was drawn exactly, on whole numbers, from {source}; how much depends on the price "
            "and on the bounds."
        )
    return " ".join(sentences)


def _deviation(aggregate: Mapping[str, Any]) -> str:
    """Say how large noise is in the units of an aggregate, or in rows where an answer is old."""
    if "deviations" in aggregate:
        least, most = (_number(end) for end in aggregate["deviations"])
        groups = "" if least == most else f" to {most}, depending on the group"
        return f" of standard deviation {least}{groups}"
    if aggregate.get("deviation") is None:
        return ""
    rows = "in rows, on each of the sums that it is computed from"
    return f" of standard deviation {_number(aggregate['deviation'])}, {rows}"


def _bars(result: "Result") -> str:
    said = (
        f"With a confidence of {100 * result.confidence:.6g}%, each by itself, the interval around "
        "a value covers what the question would give on the bounded data without noise. "
    )
    if is_inferred(result):
        said += (
            "It is wider by what inferred bounds and limits are estimated to have moved, and open "
            "where that cannot be told. It does not include what declared ones moved. "
        )
    else:
        said += (
            "It does not include what bounding itself moved: rows weighed down and values clamped "
            "make answers smaller or flatter than those on the raw data. "
        )
    said += "It does not include chance in how the data was collected."
    if any(a.get("noise") == "exponential" for a in result.facts.get("aggregates", ())):
        said += (
            " Quantiles, their intervals included, were chosen at random in favour of good ones: "
            "in a group with few rows they may lie anywhere between the bounds."
        )
    marked = int(sum((~flags).sum() for flags in result.reliable.values()))
    if marked:
        said += f" {marked:,} values marked with ~ are mostly noise: do not rely on them."
    return said


def _cost(result: "Result") -> str:
    words = strength(Guarantee(epsilon=result.epsilon, delta=result.delta))
    again = (
        "This question was answered before: here is that answer again, at no new cost. Then it "
        if result.is_recalled
        else "By itself this release "
    )
    return (
        f"{again}keeps {price(result)}, which is usually called {words}. The account was charged "
        f"its true loss, so that many releases may cost less than the sum of their epsilons. "
        f"{percent(result.left, up=False)} of the budget is left."
    )


def _verify(result: "Result") -> str:
    return (
        f"It is entry {result.receipt.index} of the ledger, charged to account "
        f"{clean(result.receipt.account)!r} before data was touched. ledger.prove(result.receipt) "
        "gives a proof, and 'discreet verify' checks it together with result.to_json(), without "
        "trust in anybody here."
    )
