"""Audit a whole query path: ask it about tables that differ in one unit, and tell them apart."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from discreet._exact import Number, nonnegative, probability, whole
from discreet.audit.query_paths.certificate import Terms, prove
from discreet.audit.query_paths.changes import KINDS, Subject, columns_of, pair_of, unit_column
from discreet.audit.query_paths.observation import CHANNELS, Columns, Seen, observe
from discreet.audit.query_paths.protected_path import ProtectedPath
from discreet.audit.query_paths.report import ChannelFinding, TableAudit
from discreet.audit.query_paths.timing import timed
from discreet.errors import ParameterError
from discreet.privacy import Neighbours, Unit

__all__ = ["table"]

QueryPath = Callable[[Columns], object]

_FAR = 7  # times the table: nothing that one unit could do


def table(
    data: Any,
    question: str | QueryPath,
    *,
    unit: Unit | str,
    epsilon: Number,
    delta: Number,
    neighbours: Neighbours | str = Neighbours.add_remove,
    kinds: Iterable[str] = KINDS,
    samples: int = 200,
    confidence: Number = 0.999,
    time: bool = False,
    seed: int | None = None,
    **settings: Any,
) -> TableAudit:
    """Audit a whole query path as a black box, with neighbours made from ``data``.

    ``question`` is either SQL, and then the path is ours: a copy of the data goes to
    :func:`discreet.protect` with these ``settings`` (its name in SQL is ``data`` unless they have a
    ``name``), in a ledger of its own, and is quoted and asked. Or it is any ``ask(table)`` that
    takes a dict of columns and returns an answer, or an :class:`Observation` where more is shown,
    or raises. Each kind of unit among ``kinds`` is added to the table or, if ``neighbours`` says
    so, exchanged for a typical one; both tables are asked ``samples`` times, in random order, and
    all that is seen is told apart: answers, prices, keys, failures and their texts, notes, sizes,
    error bars, receipts, what is left of the budget, and with ``time=True`` how long it took.

    Claim: see :class:`TableAudit`. Why: every channel is post-processing of what one question
    shows; each is certified at its share of 1 - ``confidence`` (Bonferroni).

    >>> ages = {"person": [1, 2, 3, 4], "age": [30.0, 40.0, 50.0, 60.0]}
    >>> def ask(table):
    ...     return float(len(table["age"]))  # no noise
    >>> found = table(ages, ask, unit="person", epsilon=1, delta=0, kinds=["many rows"])
    >>> found.passed, found.failures[0].kind
    (False, 'many rows')
    """
    columns, chosen = columns_of(data), _kinds(kinds)
    count = whole(samples, name="samples", minimum=100)
    relation = _relation(neighbours)
    subject = Subject(table=columns, unit=unit_column(unit, columns))
    failure = float(1 - probability(confidence, name="confidence"))
    terms = Terms(
        epsilon=float(nonnegative(epsilon, name="epsilon")),
        delta=float(probability(delta, name="delta", zero=True)),
        alpha=failure / (len(chosen) * (len(CHANNELS) + time)),
    )
    rng = np.random.default_rng(seed)
    findings: list[ChannelFinding] = []
    with ExitStack() as stack:
        ask = question
        if isinstance(ask, str):
            ask = stack.enter_context(
                ProtectedPath(
                    ask, like=columns, unit=unit, neighbours=relation,
                    epsilon=terms.epsilon, delta=terms.delta, settings=settings,
                )
            )  # fmt: skip
        elif settings:
            raise ParameterError(
                f"{', '.join(settings)}: settings of protect are for a question in SQL.",
                parameter="settings",
            )
        for kind in chosen:
            pair = pair_of(kind, subject, relation)
            seen = _sampled(ask, pair, count, rng)
            findings += [_found(kind, name, *seen, terms) for name in CHANNELS]
            if time:
                findings.append(timed(ask, pair, kind=kind, rounds=count, terms=terms, rng=rng))
        findings += _stale(ask, columns, seen, count)
    return TableAudit(epsilon=epsilon, delta=delta, confidence=confidence, findings=tuple(findings))


def _relation(neighbours: Neighbours | str) -> Neighbours:
    relation = Neighbours.of(neighbours)
    if relation is Neighbours.zero_out:
        raise ParameterError(
            "neighbours must be add_remove or replace_one: a table has no null record.",
            parameter="neighbours",
        )
    return relation


def _kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    chosen = (kinds,) if isinstance(kinds, str) else tuple(dict.fromkeys(kinds))
    unknown = [kind for kind in chosen if kind not in KINDS]
    if unknown or not chosen:
        raise ParameterError(
            f"kinds must be some of {', '.join(KINDS)}"
            + (f"; {unknown[0]!r} is none of them." if unknown else "."),
            parameter="kinds",
        )
    return chosen


def _sampled(
    ask: QueryPath, pair: tuple[Columns, Columns], count: int, rng: np.random.Generator
) -> tuple[list[Seen], list[Seen]]:
    """Ask about both tables in random order: what changes with time is then in neither alone."""
    order = np.repeat([0, 1], count)
    rng.shuffle(order)
    seen: tuple[list[Seen], list[Seen]] = ([], [])
    for side in order:
        seen[side].append(observe(ask, pair[side]))
    return seen


def _found(
    kind: str, channel: str, first: Sequence[Seen], second: Sequence[Seen], terms: Terms
) -> ChannelFinding:
    proof = prove([one[channel] for one in first], [one[channel] for one in second], terms)
    is_learned = proof.power < np.inf
    passed = "passed" if is_learned else "nothing learned"
    return ChannelFinding(
        kind=kind,
        channel=channel,
        verdict="FAILED" if proof.epsilon_lower > terms.epsilon else passed,  # type: ignore[arg-type]
        epsilon_lower=proof.epsilon_lower,
        power=proof.power,
        samples=len(first),
        event=proof.event,
    )


def _stale(
    ask: QueryPath, columns: Columns, seen: tuple[list[Seen], list[Seen]], count: int
) -> list[ChannelFinding]:
    """Tell where a table that has nothing in common gets the very same numbers."""
    known = [one["answer"] for side in seen for one in side]
    if not known[0] or any(one != known[0] for one in known):
        return []  # noise is drawn, or nothing answered
    far = {name: [*column, *column[:1]] * _FAR for name, column in columns.items()}
    if observe(ask, far)["answer"] != known[0]:
        return []
    return [
        ChannelFinding(
            kind="another table", channel="answer", verdict="FAILED", epsilon_lower=0.0,
            power=0.0, samples=count,
            event="the same numbers for every table: kept from another, or not from any",
        )
    ]  # fmt: skip
