"""Watches: what all members of a unit can do to the questions is what is charged."""

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from discreet import Guarantee, Unit
from discreet.accounting import PureLoss
from discreet.errors import ParameterError
from discreet.tables import Rise, Watch, count, protect
from discreet.testing import temporary_tables

if TYPE_CHECKING:
    import numpy as np

COUNTS = [f"SELECT COUNT(*) FROM people WHERE age > {age}" for age in (20, 40)]


@pytest.mark.lengthy
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize(("rows", "positives"), [(1, 1), (1025, 1 << 14), (1, 1 << 39)])
def test_members_that_move_questions_apart_cost_no_more_than_is_charged(
    neighbours: str, size: int, rows: int, positives: int
) -> None:
    unit: Any = Unit.column("person_id").group(size)
    with temporary_tables(epsilon=3, unit=unit, rows=rows, neighbours=neighbours) as T:
        watch = T.watch(COUNTS, threshold=10, positives=positives, epsilon=1)
    plan = watch._session._plan
    # One member moves all questions one way by ``rows`` (an exchange: two such moves), on the grid
    # by so many steps. The next may move them the other way, and is rounded to the grid by itself.
    moved = rows * (2 if neighbours == "replace_one" else 1)
    steps = size * math.ceil(Fraction(moved) / plan.grid.spacing)
    price_of_a_step = (plan.epsilon_threshold + plan.epsilon_queries) / plan.sensitivity
    assert watch.receipt.loss == PureLoss(epsilon=1)
    assert steps * price_of_a_step <= 1


class Seen(NamedTuple):
    watch: Watch
    exact: "np.ndarray[Any, np.dtype[np.float64]]"


def visits_of(people: dict[int, list[int]]) -> dict[str, Any]:
    rows = [(person, week) for person, weeks in people.items() for week in weeks]
    return {"user_id": [person for person, _ in rows], "week": [week for _, week in rows]}


def in_week(week: int, *, what: str) -> str:
    return f"SELECT COUNT({what}) FROM visits WHERE week = {week}"


def seen_by_a_watch(tmp_path: Path, people: dict[int, list[int]], **fields: Any) -> Seen:
    """Return a watch on rises and falls between two weeks, and what it compares exactly."""
    name = f"visits{len(list(tmp_path.iterdir()))}"
    with protect(
        visits_of(people), name="visits", unit="user_id", rows=2,
        guarantee=Guarantee(epsilon=3), ledger=tmp_path / f"{name}.db", **fields,
    ) as T:  # fmt: skip
        first, second = (in_week(week, what="*") for week in (1, 2))
        asked = [Rise(now=second, before=first), Rise(now=first, before=second)]
        watch = T.watch(asked, threshold=10, positives=1, epsilon=1)
        return Seen(watch, watch._counts())


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_person_moves_a_rise_up_or_down_by_at_most_what_is_paid_for(
    tmp_path: Path, neighbours: Any
) -> None:
    everybody = {0: [1, 1], 1: [1, 2], 2: [2], 3: [3]}
    whole, exact = seen_by_a_watch(tmp_path, everybody, neighbours=neighbours)
    assert exact.tolist() == [-1, 1]
    plan = whole._session._plan
    paid = plan.sensitivity * plan.grid.spacing
    assert paid == (2 if neighbours == "add_remove" else 4)
    moves = []
    for weeks in ([2, 2, 2, 2], [1, 1, 1], [1, 2, 2]):
        more = seen_by_a_watch(tmp_path, {**everybody, 4: weeks}, neighbours=neighbours)
        moves.append((more.exact - exact)[0])
    # Up by all of the limit, down by all of it: a session that takes this for monotone is broken.
    assert moves == pytest.approx([2, -2, 1], abs=1e-4)  # weights are a little less than their name
    assert max(map(abs, moves)) <= 2
    assert not whole.mechanism.monotone


def test_rises_are_told_by_their_place_and_how_far_they_are_above(tmp_path: Path) -> None:
    people = {i: [1] if i < 300 else [2] for i in range(1000)}
    with protect(
        visits_of(people), name="visits", unit="user_id", rows=1,
        guarantee=Guarantee(epsilon=3), ledger=tmp_path / "b.db",
    ) as T:  # fmt: skip
        weeks = [in_week(week, what="DISTINCT user_id") for week in (1, 2, 3)]
        asked = [weeks[0], *(Rise(now=b, before=a) for a, b in pairwise(weeks))]
        asked.append(Rise(now=weeks[1], before=weeks[2]))
        watch = T.watch(asked, threshold=200, positives=3, epsilon=3)
        alerts = watch.ask()
    # 300 people in the first week, 400 more in the second, 700 fewer in the third: each is 100 away
    # from the threshold at least, which is wrong with probability 1e-9 at most.
    assert watch.error(confidence=1 - Fraction(1, 10**9)) < 100
    assert [alert.place for alert in alerts] == [0, 1, 3]
    assert all(
        abs(alert.gap - gap) < 100 for alert, gap in zip(alerts, (100, 200, 500), strict=True)
    )
    assert alerts[1].question == f"{weeks[1]} minus {weeks[0]}"


def test_watches_of_counts_alone_are_still_monotone() -> None:
    with temporary_tables(epsilon=3) as T:
        assert T.watch(COUNTS, threshold=10, epsilon=1).mechanism.monotone
        mixed = [COUNTS[0], Rise(now=COUNTS[0], before=COUNTS[1])]
        assert not T.watch(mixed, threshold=10, epsilon=1).mechanism.monotone


def test_more_looks_make_the_error_larger() -> None:
    with temporary_tables(epsilon=3) as T:
        watch = T.watch(COUNTS, threshold=10, epsilon=1)
        assert watch.error() < watch.error(looks=52) < watch.error(looks=52, confidence=0.999)
        with pytest.raises(ParameterError, match="looks must be"):
            watch.error(looks=0)


def test_rises_of_questions_made_step_by_step() -> None:
    with temporary_tables(epsilon=3) as T:
        old, young = (T.where(f"age {than} 40").agg(n=count()) for than in (">", "<"))
        watch = T.watch([Rise(now=old, before=young)], threshold=10, epsilon=1)  # type: ignore[arg-type]
        assert watch.questions == (f"{old.sql} minus {young.sql}",)
        with pytest.raises(ParameterError, match="must be SQL"):
            T.watch([Rise(now=COUNTS[0], before=3)], threshold=10, epsilon=1)  # type: ignore[arg-type]


def test_the_card_of_a_watch_has_all_that_was_paid_for_and_no_answer() -> None:
    with temporary_tables(epsilon=3, unit=Unit.column("person_id").group(2)) as T:
        watch = T.watch([f"{COUNTS[0]} -- {i}" for i in range(9)], threshold=10, epsilon=1)
        before = watch.card()
        watch.ask()
        assert watch.card() == before
    assert before["questions"] == 9
    assert len(before["among_them"]) == 3
    assert before["privacy"] == {
        "unit": str(Unit.column("person_id").group(2)), "neighbours": "add_remove",
        "epsilon": 1.0, "delta": 0.0, "variant": "Pure DP",
    }  # fmt: skip
    assert before["mechanisms"][0]["monotone"] is True
    assert before["evidence"]["entries"][-1]["index"] == watch.receipt.index
    assert "docs/proofs/sparse_vector.md" in before["evidence"]["proofs"]
