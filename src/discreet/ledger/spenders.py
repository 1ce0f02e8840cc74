"""Who spent what of an account's total, and on which purpose: read from the log.

Shares are of today's total, as in :func:`discreet.ledger.burn_down`, and add up to what is used.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import final

from discreet._exact import whole
from discreet.ledger.accounts.account import Account
from discreet.ledger.plots import Point, shares_of
from discreet.ledger.rules.definition import Line

__all__ = ["Spending", "spending"]

_KEPT = 200  # points of a curve, about


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What somebody spent on a purpose: the share, in how many charges, and how it grew.

    A charge costs what it moved the total by. A total has several sums (epsilon, delta, and more
    than one way to count them) and is as full as the one that matters, so a charge may move it
    later than it came, or not at all.

    >>> Spending(who="ana", purpose="report", used=0.25, charges=3, latest="", points=()).charges
    3
    """

    who: str
    purpose: str
    used: float
    charges: int
    latest: str
    points: tuple[Point, ...] = field(repr=False)


def spending(account: Account, *, last: int = 20_000) -> list[Spending]:
    """Return who spent what on which purpose, the largest share first.

    Only so many of the ``last`` entries of the account are looked at: what went before is nobody's
    here. What a job holds counts as spent, until it ends. Where the unit has a period, an entry
    counts with the period that it moved most.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     for who in ("ana", "ben", "ana"):
    ...         _ = account.charge(PureLoss(epsilon=0.25), who=who, purpose="report")
    ...     [(one.who, one.used, one.charges) for one in spending(account)]
    [('ana', 0.5, 2), ('ben', 0.25, 1)]
    """
    entries = account.history(last=whole(last, name="last"))
    definition = account._definition(fresh=True)  # as it is once all of them are there
    is_all = bool(entries) and entries[0]["kind"] == "account"
    before: dict[str, float] = {}
    jobs: dict[int, tuple[str, str]] = {}
    found: defaultdict[tuple[str, str], _Growing] = defaultdict(_Growing)
    for entry in entries:
        index = int(entry["index"])
        if "who" in entry and "purpose" in entry:
            jobs[index] = (str(entry["who"]), str(entry["purpose"]))
        drawn = shares_of(definition, entry)
        after = {name: share for name, share in drawn.items() if Line.is_total(name)}
        # Of a budget that began before the first entry here, nobody knows what this one moved.
        known = [name for name in after if is_all or name in before]
        moved = max((after[name] - before.get(name, 0.0) for name in known), default=0.0, key=abs)
        before |= after
        spender = jobs.get(int(entry.get("job", index)))
        if after and spender is not None:
            found[spender].add(index, str(entry["time"]), moved, is_new="loss" in entry)
    return sorted(
        (one.done(*spender) for spender, one in found.items()),
        key=lambda one: (-one.used, one.who, one.purpose),
    )


class _Growing:
    """A curve that grows, and is thinned out whenever it has too many points."""

    def __init__(self) -> None:
        self._used, self._charges = 0.0, 0
        self._points: list[Point] = []

    def add(self, entry: int, time: str, moved: float, *, is_new: bool) -> None:
        self._used += moved
        self._charges += is_new
        self._points.append(Point(entry, time, max(0.0, self._used)))
        if len(self._points) > 2 * _KEPT:
            self._points = [*self._points[:-1:2], self._points[-1]]

    def done(self, who: str, purpose: str) -> Spending:
        return Spending(
            who=who,
            purpose=purpose,
            used=max(0.0, self._used),
            charges=self._charges,
            latest=self._points[-1].time,
            points=tuple(self._points),
        )
