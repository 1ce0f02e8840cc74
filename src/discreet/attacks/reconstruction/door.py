"""Ask, decode, and compare with the truth."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._exact import Number, probability, whole
from discreet._rates import interval
from discreet.attacks.reconstruction.decoding import (
    Floats,
    Method,
    Subsets,
    check_method,
    decode,
)
from discreet.attacks.reconstruction.interfaces import CountSubsets
from discreet.attacks.reconstruction.protected_counts import ProtectedCounts
from discreet.attacks.report import AttackReport, share
from discreet.errors import DataError, DiscreetError

__all__ = ["run"]


def run(
    secret: ArrayLike,
    ask: CountSubsets,
    *,
    questions: int = 512,
    subsets: Subsets | None = None,
    method: Method = "least squares",
    largest: int = 1,
    confidence: Number = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Decode a secret column from an interface's answers about random subsets.

    ``secret`` is the truth, whole numbers from 0 to ``largest``: the report compares with it, and
    the attack never looks. ``ask`` is any callable that takes a boolean array and returns the sum
    over those people; :func:`through` makes one of a protected table. What it refuses, with a
    :class:`discreet.errors.DiscreetError` or NaN, is left out. ``subsets``, one row for each
    question, replaces the random ones: ``np.eye(n, dtype=bool)`` asks about each person alone.

    The baseline is the share of the most frequent value. The interval takes people as trials.

    >>> from discreet.attacks.reconstruction import count_subsets
    >>> secret = np.random.default_rng(1).integers(0, 2, size=64)
    >>> print(run(secret, count_subsets(secret, noise=1), questions=256))
    reconstruction: 256 of 256 questions about 64 people were answered, and their
        secrets computed from that: 100% are right, and 56.2% by guessing.
      secrets right       100% (94.4% to 100% at 95% confidence, 64 trials)
      without the attack  56.2%
    """
    truth, top = _checked(secret, largest)
    level = float(probability(confidence, name="confidence"))
    check_method(method)
    chance = np.random.default_rng(seed)
    if subsets is None:
        count = whole(questions, name="questions", hint="It is how many subsets are asked about.")
        subsets = chance.random((count, len(truth))) < 0.5
    asked = np.asarray(subsets, dtype=bool)
    if asked.ndim != 2 or asked.shape[1] != len(truth):
        raise DataError(f"subsets must have one column for each of the {len(truth)} people.")
    answers = ask.many(asked) if isinstance(ask, ProtectedCounts) else _one_by_one(ask, asked)
    is_told = np.isfinite(answers)
    found = decode(asked[is_told], answers[is_told], largest=top, method=method)
    if not is_told.any():  # nothing was learned: toss a coin for everybody
        found = chance.integers(0, top + 1, size=len(truth))
    hits = int((found == truth).sum())
    baseline = float(np.bincount(truth).max() / len(truth))
    success, told = hits / len(truth), int(is_told.sum())
    protected = ask if isinstance(ask, ProtectedCounts) and top == 1 else None
    return AttackReport(
        attack="reconstruction",
        measure="secrets right",
        success=success,
        baseline=baseline,
        interval=interval(hits, trials=len(truth), confidence=level),
        confidence=level,
        trials=len(truth),
        summary=f"{told:,} of {len(asked):,} questions about {len(truth):,} people were answered, "
        f"and their secrets computed from that: {share(success)} are right, and {share(baseline)} "
        "by guessing.",
        allowed=None if protected is None else protected.allowed(baseline=baseline),
        details={
            "people": len(truth),
            "questions": len(asked),
            "answered": told,
            "method": method,
            "largest": top,
            "seed": seed,
        },
    )


def _checked(secret: ArrayLike, largest: int) -> tuple[NDArray[np.int64], int]:
    top = whole(largest, name="largest", hint="Secrets are whole numbers from 0 to it.")
    truth = np.asarray(secret)
    is_whole = truth.ndim == 1 and len(truth) > 0 and truth.dtype.kind in "biu"
    if not is_whole or truth.min() < 0 or truth.max() > top:
        raise DataError(f"secret must be a column of whole numbers from 0 to {top}.")
    return truth.astype(np.int64), top


def _one_by_one(ask: CountSubsets, asked: Subsets) -> Floats:
    answers = np.full(len(asked), np.nan)
    for i, subset in enumerate(asked):
        try:
            said = ask(subset)
        except DiscreetError:
            continue
        try:
            answers[i] = said
        except (TypeError, ValueError):  # whose words may show an answer
            raise DataError(
                f"ask must answer each question with a number, got {type(said).__name__}."
            ) from None
    return answers
