"""Names put back to ratings: a few that somebody told about find all of them [NS08]."""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet._exact import nonnegative, positive, probability, whole
from discreet._rates import interval
from discreet.attacks.frames import chosen, read
from discreet.attacks.linkage.uniqueness import Codes, coded
from discreet.attacks.report import AttackReport
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["scoreboard"]

_DAY: Final = 86_400.0
_MOST_PEOPLE: Final = 100_000


class _Sheet(NamedTuple):
    """Ratings sorted by item, so that those of one item stand together."""

    user: Codes
    item: Codes
    marks: list[tuple[NDArray[np.float64], float]]  # what was said, and how far off still counts
    starts: Codes
    weight: NDArray[np.float64]
    users: int


def scoreboard(
    data: object,
    *,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    time: str | None = None,
    known: int = 8,
    wrong: int = 0,
    near: float = 1.5,
    days: float = 14.0,
    eccentricity: float = 1.5,
    people: int = 500,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Find people among pseudonyms from ``known`` of their ratings, ``wrong`` of them made up.

    For each of ``people`` who have enough ratings, the attacker knows some drawn at random, and
    gives every pseudonym a score: for each known item that it rated, 1 / log(support) (of two
    people at least) times how near the rating is, exp(-distance / ``near``), plus the same for the
    time and ``days``. The best is claimed where it leads the second by ``eccentricity`` standard
    deviations of all scores; otherwise nobody is. This is the scoreboard of [NS08, Section 4].

    >>> from discreet.datasets import ratings
    >>> found = scoreboard(ratings(20_000), known=6, people=100)
    >>> found.success > 0.5 > found.baseline
    True
    """
    known, people = whole(known, name="known"), whole(people, name="people")
    wrong = whole(wrong, name="wrong", minimum=0)
    confidence = float(probability(confidence, name="confidence"))
    near, days = float(positive(near, name="near")), float(positive(days, name="days"))
    eccentricity = float(nonnegative(eccentricity, name="eccentricity"))
    table = read(data)
    sheet = _sheet(table, user, item, rating, time, near=near, days=days)
    rng = np.random.default_rng(seed)
    order = np.argsort(sheet.user, kind="stable")
    first = np.searchsorted(sheet.user[order], np.arange(sheet.users + 1))
    able = np.flatnonzero(np.diff(first) >= known)
    if not len(able):
        raise DataError(f"nobody has {known} ratings. Ask for fewer with known=.")
    targets = rng.permutation(able)[: min(people, _MOST_PEOPLE)]
    right = claimed = 0
    for target in targets:
        own = rng.permutation(order[first[target] : first[target + 1]])[:known]
        made_up = rng.integers(len(sheet.item), size=min(wrong, known))
        guess = _best(sheet, np.concatenate((made_up, own[len(made_up) :])), eccentricity)
        claimed += guess is not None
        right += int(guess == target)
    return AttackReport(
        attack="linkage",
        measure="people re-identified",
        success=right / len(targets),
        baseline=1 / sheet.users,
        interval=interval(right, trials=len(targets), confidence=confidence),
        confidence=confidence,
        trials=len(targets),
        summary=f"{right:,} of {len(targets):,} people are found among {sheet.users:,} pseudonyms "
        f"from {known} of their ratings"
        + (f", {wrong} of them wrong" if wrong else "")
        + f"; {claimed - right:,} others are taken for somebody else.",
        details={"claimed": claimed, "right": right, "pseudonyms": sheet.users, "known": known},
    )


def _sheet(
    table: "pa.Table",
    user: str,
    item: str,
    rating: str | None,
    time: str | None,
    *,
    near: float,
    days: float,
) -> _Sheet:
    chosen(table, [one for one in (user, item, rating, time) if one], name="ratings")
    (users, items), (many, kinds) = coded(table, [user, item])
    order = np.argsort(items, kind="stable")
    marks = []
    for column, scale in ((rating, near), (time, days * _DAY)):
        if column:
            marks.append((_numbers(table, column)[order], float(scale)))
    starts = np.searchsorted(items[order], np.arange(kinds + 1)).astype(np.int64)
    weight = 1 / np.log(np.maximum(np.diff(starts), 2))
    return _Sheet(users[order], items[order], marks, starts, weight, many)


def _numbers(table: "pa.Table", column: str) -> NDArray[np.float64]:
    import pyarrow as pa

    values = table[column].combine_chunks()
    try:
        if pa.types.is_temporal(values.type):
            values = values.cast(pa.timestamp("s")).cast(pa.int64())
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowException:  # whose words may show a value
        raise DataError(f"the column {column[:60]!r} must hold numbers or times.") from None


def _best(sheet: _Sheet, clues: Codes, eccentricity: float) -> int | None:
    """Return the pseudonym that fits the clues best, if it stands out."""
    score = np.zeros(sheet.users)
    for clue in clues:
        kind = sheet.item[clue]
        rows = slice(sheet.starts[kind], sheet.starts[kind + 1])
        likeness = np.zeros(rows.stop - rows.start) if sheet.marks else np.ones(1)
        for values, scale in sheet.marks:
            likeness = likeness + np.exp(-np.abs(values[rows] - values[clue]) / scale)
        np.add.at(score, sheet.user[rows], sheet.weight[kind] * np.nan_to_num(likeness))
    spread = float(score.std())
    if spread == 0 or len(score) < 2:
        return None
    second, first = np.partition(score, -2)[-2:]
    return int(score.argmax()) if first - second >= eccentricity * spread else None
