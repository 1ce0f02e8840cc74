"""What a priced question would cost, and how far off its answer would be."""

from collections.abc import Mapping
from fractions import Fraction

from discreet.tables.model.quotes import Expected, Quote
from discreet.tables.pricing.expected_errors import expected_errors
from discreet.tables.pricing.people import people_needed
from discreet.tables.pricing.prepared import Prepared, PreparedComposite
from discreet.tables.release import answer as answering
from discreet.tables.release.bound_hints import tight_bounds
from discreet.tables.release.composite import fingerprint
from discreet.tables.release.exhausted import fits_up_to

__all__ = ["quoted"]


def quoted(
    prepared: Prepared | PreparedComposite,
    asker: answering.Asker,
    told: Mapping[tuple[str, Fraction], float],
) -> Quote:
    """Return the quote of a question; ``told`` are quantiles that were released before."""
    parts = prepared.parts
    expected: list[Expected] = []
    notes: list[str] = []
    if answering.is_known(fingerprint(prepared, asker.catalog), prepared.epsilon, asker):
        notes.append("answered before, at least as exactly: asking again costs the total nothing")
    if len(parts) > 1:
        notes.append(f"{len(parts)} releases for one price, and SQL over what they release")
    if not parts:
        notes.append("all tables read are public: the answer is exact, and free")
    for part in parts:
        expected += expected_errors(
            part, asker.catalog, confidence=asker.confidence, size=asker.offer.size
        )
        notes += [*answering.joined_notes(part.query), *tight_bounds(part, told)]
        notes += _people(part, asker)
    budgets = asker.account.quote(
        prepared.loss,
        **asker.asking,
        error=next((one.half_width for one in expected if one.half_width), None),
    )
    return Quote(
        question=prepared.question,
        epsilon=float(prepared.epsilon),
        delta=float(prepared.delta),
        loss=prepared.loss,
        budgets=budgets,
        confidence=float(asker.confidence),
        noise=parts[0].price.noise.kind if parts else "none",
        expected=tuple(expected),
        notes=tuple(dict.fromkeys(notes)),
        fits_up_to=None if budgets.fits else fits_up_to(prepared, asker),
    )


def _people(prepared: Prepared, asker: answering.Asker) -> list[str]:
    """Say how many people inferring takes, and whether there are so many."""
    needed, most = people_needed(prepared, asker.catalog), asker.most_people(prepared.query)
    if needed is None:
        return []
    told = f"the {needed} are chosen privately, which takes about {needed.number:,} people"
    if most is not None and most < needed.number:
        told += f"; there are {most:,} at most, so it would be refused. Pay more, or declare them"
    return [told]
