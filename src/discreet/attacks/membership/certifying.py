"""True-positive rates at a certified rate of false positives, from scores alone."""

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet._exact import Number, probability
from discreet._rates import interval
from discreet.attacks.membership.observations import Floats, floats
from discreet.attacks.report import AttackReport, Detail
from discreet.errors import DataError
from discreet.privacy import Guarantee, detection

__all__ = ["CertifiedRate", "certified_rate", "reported", "roc"]

_CURVE = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedRate:
    """Hold the share of members that a test finds while it accuses few others.

    ``found`` is measured, ``interval`` holds the true share. ``accused`` others were among the
    ``others`` when the threshold was chosen, fewer than false_positive_rate * others: that is
    what it takes to be sure of the rate.

    >>> CertifiedRate(false_positive_rate=0.01, found=0.2, interval=(0.1, 0.3), threshold=4.0,
    ...               members=100, others=1000, accused=3).found
    0.2
    """

    false_positive_rate: float
    found: float
    interval: tuple[float, float]
    threshold: float
    members: int
    others: int
    accused: int


def certified_rate(
    members: object,
    others: object,
    *,
    false_positive_rate: Number,
    confidence: Number = 0.95,
) -> CertifiedRate:
    """Choose a threshold whose false positives are certified, and measure what it finds.

    Claim: with probability ``confidence`` or more, both hold: the test "score above threshold"
    accuses a fresh non-member with probability at most ``false_positive_rate``, and finds a
    member with a probability within ``interval``. For scores of others that are independent of
    each other, and of members likewise: drawn from one population, given the released model.

    Why: the threshold is the k-th largest score of n others. The probability that a fresh one
    exceeds it follows Beta(k, n - k + 1), or less where scores tie [W41], so k is the largest for
    which that law exceeds the rate with half of 1 - confidence; all others serve, none is set
    apart. The members did not choose the threshold, so their interval is that of Clopper and
    Pearson [CP34], with the other half.

    >>> dice = np.random.default_rng(0)
    >>> rate = certified_rate(dice.normal(2, 1, 500), dice.normal(0, 1, 10_000),
    ...                       false_positive_rate=0.01)
    >>> rate.accused, round(rate.found, 2)
    (80, 0.33)
    """
    from scipy.special import betainc

    wanted = float(probability(false_positive_rate, name="false_positive_rate"))
    spare = 1 - float(probability(confidence, name="confidence"))
    inside, outside = _scores(members, "members"), _scores(others, "others")
    n = len(outside)
    ranks = np.arange(1, n + 1)
    # The chance that the rate exceeds the wanted one grows with the rank, so these are the first.
    sure = 1 - betainc(ranks, n - ranks + 1, wanted) <= spare / 2
    rank = int(sure.sum())
    if rank == 0:
        needed = int(np.ceil(np.log(spare / 2) / np.log1p(-wanted)))
        raise DataError(
            f"a false-positive rate of {wanted:g} cannot be certified with {n:,} non-members: "
            f"at least {needed:,} are needed. Score more of them, or ask for a larger rate."
        )
    threshold = float(np.partition(outside, n - rank)[n - rank])
    hits = int((inside > threshold).sum())
    return CertifiedRate(
        false_positive_rate=wanted,
        found=hits / len(inside),
        interval=interval(hits, trials=len(inside), confidence=1 - spare / 2),
        threshold=threshold,
        members=len(inside),
        others=n,
        accused=int((outside > threshold).sum()),
    )


def roc(members: object, others: object) -> list[tuple[float, float]]:
    """Return points (false-positive rate, true-positive rate), as counted: without certificate.

    >>> roc([4, 3, 2, 1], [0, 1])[-1]
    (0.0, 0.75)
    """
    inside, outside = _scores(members, "members"), _scores(others, "others")
    lines = np.quantile(outside, [1 - each for each in _CURVE], method="higher")
    return [(float((outside > line).mean()), float((inside > line).mean())) for line in lines]


def reported(
    members: object,
    others: object,
    *,
    subject: str,
    false_positive_rate: Number,
    confidence: Number,
    guarantee: Guarantee | None,
    facts: dict[str, Detail],
) -> AttackReport:
    """Report what a test by scores finds; the next larger rates stand in the details."""
    rate = certified_rate(
        members, others, false_positive_rate=false_positive_rate, confidence=confidence
    )
    wanted = rate.false_positive_rate
    more = [
        certified_rate(members, others, false_positive_rate=each, confidence=confidence)
        for each in (0.01, 0.1)
        if each > wanted
    ]
    rates: list[Detail] = [
        {
            "false_positive_rate": each.false_positive_rate,
            "true_positive_rate": each.found,
            "interval": list(each.interval),
        }
        for each in (rate, *more)
    ]
    points: list[Detail] = [list(point) for point in roc(members, others)]
    return AttackReport(
        attack="membership",
        measure=f"members found at {100 * wanted:.3g}% false positives",
        success=rate.found,
        baseline=wanted,
        interval=rate.interval,
        confidence=float(confidence),
        trials=rate.members,
        summary=(
            f"{subject} finds {100 * rate.found:.3g}% of the members while it accuses at most "
            f"{100 * wanted:.3g}% of the others."
        ),
        allowed=None if guarantee is None else detection(guarantee, false_alarms=wanted),
        details=facts | {"others": rate.others, "rates": rates, "roc": points},
    )


def _scores(values: object, name: str) -> Floats:
    scores = floats(values, f"the scores of {name}")
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        raise DataError(f"the scores of {name} must be a list of numbers, none of them NaN.")
    return scores
