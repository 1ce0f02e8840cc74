"""The door of differencing: recover secrets one by one, from any interface that counts and sums."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from discreet._exact import Number, exact, nonnegative, probability, whole
from discreet._rates import interval
from discreet.attacks.differencing.interfaces import Interface, checked, grouped, paid
from discreet.attacks.differencing.rounded import averaged, over_the_edge
from discreet.attacks.differencing.trackers import generated
from discreet.attacks.frames import quoted
from discreet.attacks.report import AttackReport, Detail
from discreet.errors import ParameterError
from discreet.privacy import Unit, detection

if TYPE_CHECKING:
    from discreet.tables import Protected

__all__ = ["run"]

_AGREEING = 3  # trackers that must say the same before one is believed


def run(
    ask: "Interface | Protected",
    targets: Mapping[int, int],
    *,
    table: str,
    key: str,
    keys: tuple[int, int],
    secret: str,
    bounds: tuple[int, int],
    tolerance: float = 0,
    baseline: float | None = None,
    epsilon: Number | None = None,
    times: int = 100,
    confidence: float = 0.95,
) -> AttackReport:
    """Recover the secret of each target through an interface that answers about groups.

    ``ask`` takes a question in SQL and returns a number, or None where it refuses; or it is a
    protected table. ``targets`` are values of the whole-numbered ``key`` column with the true
    secrets, which are used to score alone; ``keys`` and ``bounds`` are the ranges that keys and
    secrets may lie in, which an attacker knows roughly. What is off by at most ``tolerance`` is
    recovered. ``baseline`` is how often the best guess is right that asks nothing; it is estimated
    from the targets' secrets, if not said.

    Trackers are tried first, until several that differ agree; where they do not, the answers are
    rounded or blurred, and crowds at the edge of rounding and ``times`` averages are tried. A
    protected table has no minimum to get around: the sum over one person is asked for outright,
    for ``epsilon`` each (an equal part of the guarantee, if not said), until the budget ends.
    ``allowed`` is what its guarantee lets anybody reach (:func:`discreet.privacy.detection`), where
    ``key`` is the unit of its account.

    >>> from discreet.datasets import salaries
    >>> from discreet.attacks.differencing import Guarded
    >>> payroll = salaries()
    >>> desk = Guarded(payroll, name="payroll", minimum=10, is_two_sided=True)
    >>> report = run(desk, {7: int(payroll["salary"][7])}, table="payroll", key="employee_id",
    ...              keys=(0, 99), secret="salary", bounds=(0, 200_000))
    >>> print(report)
    differencing: 1 of 1 secrets are recovered, by individual trackers.
      secrets recovered   100% (2.5% to 100% at 95% confidence, 1 trials)
      without the attack  0.0005%
    """
    from discreet.tables import Protected

    if not targets:
        raise ParameterError("targets must name somebody.", parameter="targets")
    whole(times, name="times", minimum=2)
    confidence = float(probability(confidence, name="confidence"))
    tolerance = float(nonnegative(tolerance, name="tolerance"))
    _check(keys=keys, bounds=bounds)
    if baseline is None:
        baseline = _guessed(list(targets.values()), bounds, tolerance)
    baseline = float(probability(baseline, name="baseline", zero=True, one=True))
    is_paid = isinstance(ask, Protected)
    allowed, how, recovered, refused = None, Counter[str](), 0, 0
    answer: Interface
    if isinstance(ask, Protected):
        guarantee = ask.account.guarantee
        if ask.catalog.unit == Unit.column(key):
            allowed = detection(guarantee, false_alarms=baseline)
        each = exact(guarantee.epsilon, name="epsilon") / len(targets)
        answer = paid(ask, epsilon=each if epsilon is None else epsilon)
    else:
        answer = checked(ask)
    for number, truth in targets.items():
        target = f"{quoted(key)} = {number}"
        if is_paid:
            said = grouped(answer, f"SUM({quoted(secret)})", table=table)(target)
            found = None if said is None else ("paid answers", said)
        else:
            found = _recovered(answer, target, table, key, keys, secret, bounds, times)
        refused += found is None
        if found is not None and abs(found[1] - truth) <= tolerance:
            how[found[0]] += 1
            recovered += 1
    return _report(
        recovered,
        len(targets),
        baseline,
        allowed,
        confidence,
        how,
        refused,
        is_paid=is_paid,
    )


def _check(**ranges: tuple[int, int]) -> None:
    for name, (low, high) in ranges.items():
        if exact(low, name=name) > exact(high, name=name):
            raise ParameterError(f"{name} must have the lower end first.", parameter=name)


def _recovered(
    ask: Interface,
    target: str,
    table: str,
    key: str,
    keys: tuple[int, int],
    secret: str,
    bounds: tuple[int, int],
    times: int,
) -> tuple[str, float] | None:
    """Return what the first attack says that is sure of itself, and its name."""
    count = grouped(ask, "COUNT(*)", table=table)
    total = grouped(ask, f"SUM({quoted(secret)})", table=table)
    covers = [f"{quoted(key)} % {m} < {m // 2}" for m in (2, 3, 5, 7)]
    said = list(islice(generated(total, target, covers), _AGREEING))
    counted = [one for _, one in islice(generated(count, target, covers), _AGREEING)]
    if said and set(counted) == {1.0} and len({one for _, one in said}) == 1:
        return said[0]
    tipped = over_the_edge(
        count, target, key=quoted(key), keys=keys, secret=quoted(secret), bounds=bounds
    )
    if tipped is not None:
        return "crowds at the edge of rounding", tipped
    mean = averaged(total, target, key=quoted(key), keys=keys, times=times)
    return None if mean is None else ("averages", round(mean[0]))


def _guessed(truths: list[int], bounds: tuple[int, int], tolerance: float) -> float:
    """Return how often the most usual secret is right, rather too often where targets are few."""
    if len(truths) == 1:
        return min(1.0, (2 * tolerance + 1) / (bounds[1] - bounds[0] + 1))
    known = np.sort(np.array(truths, dtype=np.float64))
    # A guess is right for all whose secrets lie within twice the tolerance, from the lowest on.
    most = np.searchsorted(known, known + 2 * tolerance, side="right") - np.arange(len(known))
    return float(most.max() / len(known))


def _report(
    recovered: int,
    trials: int,
    baseline: float,
    allowed: float | None,
    confidence: float,
    how: Counter[str],
    refused: int,
    *,
    is_paid: bool,
) -> AttackReport:
    by = "" if is_paid or not how else f", by {' and '.join(how)}"
    ended = ""
    if refused:
        ended = f"; {'the budget ended before' if is_paid else 'nothing is said about'} {refused}"
    details: dict[str, Detail] = {"by": dict(how), "refused": refused}
    return AttackReport(
        attack="differencing",
        measure="secrets recovered",
        success=recovered / trials,
        baseline=baseline,
        interval=interval(recovered, trials=trials, confidence=confidence),
        confidence=confidence,
        trials=trials,
        allowed=allowed,
        summary=f"{recovered:,} of {trials:,} secrets are recovered{by}{ended}.",
        details=details,
    )
