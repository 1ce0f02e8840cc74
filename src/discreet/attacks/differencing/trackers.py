"""Trackers: sums of answers about large groups that leave nothing but one person [DDS79]."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from discreet.attacks.differencing.interfaces import Group

__all__ = ["difference", "direct", "double_tracker", "general_tracker", "individual_tracker"]


def direct(group: Group, target: str) -> float | None:
    """Interface about the person alone, which is what a minimum size refuses.

    >>> direct({"id = 7": 3.0}.get, "id = 7")
    3.0
    """
    return group(target)


def difference(group: Group, target: str) -> float | None:
    """Interface about all, and about all but one.

    >>> difference({"TRUE": 10.0, "NOT (id = 7)": 7.0}.get, "id = 7")
    3.0
    """
    return _combined(group, (1, "TRUE"), (-1, f"NOT ({target})"))


def individual_tracker(group: Group, target: str, *, cover: str) -> float | None:
    """Interface about a crowd with the person, and without: the crowd passes every minimum.

    Why: the two groups differ by the target alone, whoever else the ``cover`` describes.

    >>> individual_tracker(lambda where: 8.0 if " OR " in where else 5.0, "id = 7", cover="a")
    3.0
    """
    crowd = f"({cover}) OR ({target})"
    return _combined(group, (1, crowd), (-1, f"({cover}) AND NOT ({target})"))


def general_tracker(group: Group, target: str, *, tracker: str) -> float | None:
    """Pad with a group T and with its complement, neither of which is small [DDS79].

    Why: q(C or T) + q(C or not T) counts everybody once, and C once more; q(T) + q(not T) is
    everybody. With a minimum of k on both sides it works for every C if T has 2k to n - 2k rows.

    >>> answers = {"(id = 7) OR (a)": 6.0, "(id = 7) OR NOT (a)": 7.0, "a": 6.0, "NOT (a)": 4.0}
    >>> general_tracker(answers.get, "id = 7", tracker="a")
    3.0
    """
    return _combined(
        group,
        (1, f"({target}) OR ({tracker})"),
        (1, f"({target}) OR NOT ({tracker})"),
        (-1, tracker),
        (-1, f"NOT ({tracker})"),
    )


def double_tracker(group: Group, target: str, *, inner: str, outer: str) -> float | None:
    """Pad with two groups, one within the other, where no group is a general tracker [DDS79].

    Why: q(C or T) - q(T) is C outside T, and q(U) - q(U but not C and T) is C inside T, for T
    within U. With a minimum of k on both sides, T has k to n - 2k rows and U 2k to n - k.

    >>> answers = {"(id = 7) OR (t)": 6.0, "t": 6.0, "u": 9.0,
    ...            "(u) AND NOT ((id = 7) AND (t))": 6.0}
    >>> double_tracker(answers.get, "id = 7", inner="t", outer="u")
    3.0
    """
    return _combined(
        group,
        (1, outer),
        (1, f"({target}) OR ({inner})"),
        (-1, inner),
        (-1, f"({outer}) AND NOT (({target}) AND ({inner}))"),
    )


def generated(group: Group, target: str, covers: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield what each kind of tracker says that the interface lets through, cheapest first."""
    kinds = [
        ("direct questions", direct(group, target)),
        ("differences", difference(group, target)),
    ]
    yield from ((name, said) for name, said in kinds if said is not None)
    for cover in covers:
        said = individual_tracker(group, target, cover=cover)
        if said is not None:
            yield "individual trackers", said
    for cover in covers:
        said = general_tracker(group, target, tracker=cover)
        if said is not None:
            yield "general trackers", said
    for first, second in pairwise(covers):
        said = double_tracker(group, target, inner=f"({first}) AND ({second})", outer=first)
        if said is not None:
            yield "double trackers", said


def _combined(group: Group, *terms: tuple[int, str]) -> float | None:
    """Return the sum of signed answers, or None at the first refusal."""
    total = 0.0
    for sign, where in terms:
        answer = group(where)
        if answer is None:
            return None
        total += sign * answer
    return total
