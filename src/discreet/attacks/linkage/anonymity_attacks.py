"""Why groups who look alike do not protect: equal secrets, other knowledge, two releases."""

import numpy as np
from numpy.typing import NDArray

from discreet._exact import whole
from discreet.attacks.frames import chosen
from discreet.attacks.linkage.anonymity import KAnonymous
from discreet.attacks.linkage.uniqueness import Codes, coded
from discreet.attacks.report import AttackReport, Detail
from discreet.errors import DataError

__all__ = ["background", "composition", "homogeneity"]

_MEASURE = "secrets known for certain"


def homogeneity(release: KAnonymous, *, secret: str) -> AttackReport:
    """Count the people in whose group everybody has the same secret: nobody hides there [MKGV07].

    >>> from discreet.attacks.linkage import anonymise
    >>> made = anonymise({"age": [30, 31, 60, 64], "ill": [1, 0, 1, 1]}, ["age"], k=2)
    >>> homogeneity(made, secret="ill").success
    0.5
    """
    return background(release, secret=secret, excluded=0)


def background(release: KAnonymous, *, secret: str, excluded: int) -> AttackReport:
    """Count the people whose secret is known to who can exclude so many other values for each.

    A neighbour knows that somebody has no child, a doctor that somebody has no asthma: a group of
    l different secrets protects from l - 2 such facts, and no more [MKGV07].

    >>> from discreet.attacks.linkage import anonymise
    >>> made = anonymise({"age": [30, 31, 60, 64], "ill": [1, 0, 1, 1]}, ["age"], k=2)
    >>> background(made, secret="ill", excluded=1).success
    1.0
    """
    excluded = whole(excluded, name="excluded", minimum=0)
    values = _secrets(release, secret)
    different = _table(release.groups, values).sum(axis=1)[release.groups]
    known = different <= excluded + 1
    rule = (
        "in whose group all have the same"
        if not excluded
        else f"to somebody who can exclude {excluded} other value{'s' * (excluded > 1)} for each"
    )
    told = f"The {release.k}-anonymous table tells the {secret} of {{}} people {rule}."
    return _report(known, values, told, {"k": release.k, "excluded": excluded})


def composition(first: KAnonymous, second: KAnonymous, *, secret: str) -> AttackReport:
    """Count the people whose secret two releases tell together, each k-anonymous alone [GKS08].

    The rows of both are the same people in the same order, with the same secrets; the attacker
    knows to which group of each release a person belongs, and keeps the secrets that both have.

    >>> from discreet.attacks.linkage import anonymise
    >>> people = {"age": [1, 2, 3, 4], "zip": [1, 2, 1, 2], "ill": ["a", "b", "c", "d"]}
    >>> pair = [anonymise(people, [column], k=2) for column in ("age", "zip")]
    >>> homogeneity(pair[0], secret="ill").success, composition(*pair, secret="ill").success
    (0.0, 1.0)
    """
    values = _secrets(first, secret)
    _secrets(second, secret)  # or a refusal
    if first.table[secret].combine_chunks() != second.table[secret].combine_chunks():
        raise DataError("both releases must hold the same people in the same order.")
    both = _table(first.groups, values)[first.groups] & _table(second.groups, values)[second.groups]
    known = both.sum(axis=1) == 1
    alone = {
        name: homogeneity(one, secret=secret).success
        for name, one in (("first_alone", first), ("second_alone", second))
    }
    told = (
        f"Two tables, {first.k}-anonymous and {second.k}-anonymous, together tell the {secret} of "
        "{} people."
    )
    return _report(known, values, told, {**alone})


def _secrets(release: KAnonymous, secret: str) -> Codes:
    if secret in release.quasi:
        raise DataError("the secret was coarsened itself. Name a column that is not in quasi=.")
    (values,), _ = coded(release.table, chosen(release.table, [secret], name="secret"))
    return values


def _table(groups: Codes, values: Codes) -> NDArray[np.bool_]:
    """Return which secrets each group has."""
    if (int(groups.max()) + 1) * (int(values.max()) + 1) > 10**9:
        raise DataError("the secret has too many values. Name one of fewer, or a coarser one.")
    found = np.zeros((int(groups.max()) + 1, int(values.max()) + 1), dtype=np.bool_)
    found[groups, values] = True
    return found


def _report(
    known: NDArray[np.bool_], values: Codes, told: str, details: dict[str, Detail]
) -> AttackReport:
    share = float(known.mean())
    return AttackReport(
        attack="linkage",
        measure=_MEASURE,
        success=share,
        baseline=float(int(values.max()) == 0),
        interval=(share, share),
        confidence=0.95,
        trials=len(known),
        summary=told.format(f"{int(known.sum()):,} of {len(known):,}"),
        details=details,
    )
