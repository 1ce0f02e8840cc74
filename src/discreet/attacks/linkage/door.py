"""The door of linkage: learn a secret by finding the person, also through protected tables."""

# ruff: noqa: S608  (statements are made of quoted names)

import contextlib
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._exact import Number, exact, probability, whole
from discreet._rates import interval
from discreet.attacks.frames import chosen, connected, quoted, read
from discreet.attacks.linkage.uniqueness import encoded, listed, uniqueness, worst_set
from discreet.attacks.report import AttackReport, Detail
from discreet.errors import BudgetExceeded, DataError, ParameterError
from discreet.privacy import detection

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables import Protected

__all__ = ["run"]


def run(
    data: object,
    quasi: Sequence[str] | None = None,
    *,
    worst: int | None = None,
    auxiliary: object = None,
    secret: str | None = None,
    people: int = 200,
    epsilon: Number | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Attack a table without names.

    With ``quasi`` alone: how many people are alone with these columns; with ``worst``: for which so
    many columns the most are. With an ``auxiliary`` table of ``people`` that the attacker knows
    (all, or so many drawn): how many of their ``secret`` is learned by looking up their ``quasi``
    values. The auxiliary table has the secret as well, to score the guesses with, and for its most
    usual value, which is guessed of people who are not found.

    ``data`` may be a protected table. Then the attacker asks it for counts by secret among those
    who look like each person, pays ``epsilon`` for each question (an equal part of the guarantee,
    if not said) from its account, and guesses the most usual secret where the budget has ended.
    ``allowed`` is what the guarantee lets anybody reach whose guess is right as often as the
    baseline without the person's row (:func:`discreet.privacy.detection`).

    >>> from discreet.datasets import voters
    >>> register = voters(2000)
    >>> hospital = {name: register[name] for name in ("zip", "birth_date", "sex", "diagnosis")}
    >>> found = run(hospital, ["zip", "birth_date", "sex"], auxiliary=register, secret="diagnosis")
    >>> found.success > 0.95
    True
    """
    from discreet.tables import Protected

    confidence = float(probability(confidence, name="confidence"))
    if auxiliary is None:
        return _singled_out(data, quasi, worst, confidence, isinstance(data, Protected))
    if quasi is None or secret is None:
        raise ParameterError(
            "quasi and secret must be given with auxiliary: what is looked up, and what for.",
            parameter="secret",
        )
    known = read(auxiliary, name="auxiliary")
    columns = chosen(known, quasi, name="quasi")
    chosen(known, [secret], name="secret")
    if secret in columns:
        raise ParameterError(
            "secret must not be one of quasi, which the attacker knows.", parameter="secret"
        )
    encoded(known, secret)  # or a refusal: what is no single value cannot be guessed
    drawn = np.random.default_rng(seed).permutation(known.num_rows)[: whole(people, name="people")]
    targets = known.select([*columns, secret]).take(drawn)
    usual = Counter(known[secret].to_pylist()).most_common(1)[0]
    if isinstance(data, Protected):
        guesses, facts = _through(data, targets, columns, secret, epsilon)
    else:
        guesses, facts = _looked_up(read(data), targets, columns, secret), {}
    truths = targets[secret].to_pylist()
    right = sum(guesses.get(place, usual[0]) == true for place, true in enumerate(truths))
    baseline = usual[1] / known.num_rows
    allowed = (
        detection(data.account.guarantee, false_alarms=baseline)
        if isinstance(data, Protected)
        else None
    )
    return AttackReport(
        attack="linkage",
        measure="secrets guessed right",
        success=right / len(truths),
        baseline=baseline,
        interval=interval(right, trials=len(truths), confidence=confidence),
        confidence=confidence,
        trials=len(truths),
        allowed=allowed,
        summary=f"The {secret} of {right:,} of {len(truths):,} people is guessed right from their "
        f"{listed(columns)}{_ending(facts)}.",
        details=facts,
    )


def _singled_out(
    data: object,
    quasi: Sequence[str] | None,
    worst: int | None,
    confidence: float,
    is_protected: bool,
) -> AttackReport:
    if is_protected:
        raise ParameterError(
            "auxiliary must be given for a protected table, whose rows nobody sees.",
            parameter="auxiliary",
        )
    if worst is not None:
        return worst_set(data, size=worst, columns=quasi, confidence=confidence)
    if quasi is None:
        raise ParameterError("quasi or worst must be given.", parameter="quasi")
    return uniqueness(data, quasi, confidence=confidence)


def _ending(facts: dict[str, Detail]) -> str:
    if not facts:
        return ""
    if facts["budget_ended"]:
        return f"; the budget ended after {facts['answers']:,} answers"
    return f", by {facts['answers']:,} paid answers"


def _looked_up(
    released: "pa.Table", targets: "pa.Table", columns: list[str], secret: str
) -> dict[int, Any]:
    """Return the most frequent secret among the rows that look like each person who is found."""
    chosen(released, [*columns, secret], name="data")
    on = " AND ".join(f"t.{quoted(c)} IS NOT DISTINCT FROM r.{quoted(c)}" for c in columns)
    import duckdb
    import pyarrow as pa

    numbered = targets.append_column("place of target", pa.array(np.arange(targets.num_rows)))
    with connected({"released": released, "targets": numbered}) as run:
        try:
            # Of equally frequent ones the first, so that the same data gives the same report.
            rows = run.execute(
                "SELECT place, first(told ORDER BY many DESC, told) FROM ("
                f'SELECT t."place of target" AS place, r.{quoted(secret)} AS told, count(*) AS many'
                f" FROM targets t JOIN released r ON {on} GROUP BY 1, 2) GROUP BY place"
            ).fetchall()
        except duckdb.Error:  # whose words may show a value
            raise DataError(
                "the two tables cannot be compared: a column of quasi= must have one type in both."
            ) from None
    return dict(rows)


def _through(
    table: "Protected",
    targets: "pa.Table",
    columns: list[str],
    secret: str,
    epsilon: Number | None,
) -> tuple[dict[int, Any], dict[str, Detail]]:
    """Ask, and pay, for the secrets of those who look like each person."""
    name = next(iter(table.tables))
    each = (
        exact(table.account.guarantee.epsilon, name="epsilon") / targets.num_rows
        if epsilon is None
        else epsilon
    )
    guesses: dict[int, Any] = {}
    answers, is_over = 0, False
    for place, target in enumerate(targets.select(columns).to_pylist()):
        where = " AND ".join(
            f"{quoted(c)} {'IS' if value is None else '='} {_literal(value)}"
            for c, value in target.items()
        )
        asked = (
            f"SELECT {quoted(secret)} AS secret, COUNT(*) AS n FROM {quoted(name)} "
            f"WHERE {where} GROUP BY {quoted(secret)}"
        )
        is_over = True
        with contextlib.suppress(BudgetExceeded):
            counted = {row["secret"]: row["n"] for row in table.sql(asked, epsilon=each)}
            is_over = False
        if is_over:
            break
        answers += 1
        if counted:
            guesses[place] = max(counted, key=lambda one: counted[one])
    return guesses, {"answers": answers, "budget_ended": is_over, "epsilon_each": float(each)}


def _literal(value: object) -> str:
    """Write a value as SQL does."""
    if value is None or isinstance(value, bool | int | float):
        return "NULL" if value is None else repr(value)
    text = "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP {text}"
    return f"DATE {text}" if isinstance(value, date) else text
