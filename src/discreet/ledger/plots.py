"""How a budget burned down and what stands on it now: read from the log, and drawn.

Shares are always of today's limits, so that what was granted since does not make a curve jump.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, final

import discreet.plotting as plotting
from discreet._exact import whole
from discreet._json import read_json
from discreet._words import percent
from discreet.accounting import Loss
from discreet.ledger.accounts import quotes
from discreet.ledger.accounts.account import Account
from discreet.ledger.accounts.quotes import AccountQuote
from discreet.ledger.log.proofs import Log
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.balance import Balance
from discreet.ledger.rules.definition import Definition, Line
from discreet.ledger.rules.entry import Entry, decode
from discreet.ledger.stores.protocol import Snapshot
from discreet.privacy import Guarantee

__all__ = [
    "OpenJob",
    "Point",
    "Standing",
    "burn_down",
    "charged",
    "delta_beside",
    "plot_burn_down",
    "shares",
    "standing",
]


class Point(NamedTuple):
    """The share of an account's total that was used after an entry.

    >>> Point(entry=7, time="2026-11-15T08:00:00.000000Z", used=0.25).used
    0.25
    """

    entry: int
    time: str
    used: float


class OpenJob(NamedTuple):
    """A job that has not ended: the entry that reserved it, whose it is, its steps not begun.

    >>> OpenJob(entry=7, who="trainer", purpose="model", left=990).left
    990
    """

    entry: int
    who: str
    purpose: str
    left: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an account consists of now: its limits by name, its sources, its open jobs.

    >>> Standing(kind="basic", limits={}, sources={"payroll": "2026-11"}, jobs=()).sources
    {'payroll': '2026-11'}
    """

    kind: str
    limits: Mapping[str, Guarantee]
    sources: Mapping[str, str]  # the newest version of each
    jobs: tuple[OpenJob, ...]


def standing(account: Account) -> Standing:
    """Return an account's limits, sources and open jobs.

    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=5) as account:
    ...     dict(standing(account).limits)
    {'total': Guarantee(epsilon=5, delta=0)}
    """
    definition = account._definition(fresh=True)
    with account._session.read() as snapshot:
        jobs = tuple(sorted(_jobs(snapshot, account.name)))
    limits = {name: rules.guarantee for name, rules in definition.lines.items()}
    return Standing(kind=definition.total.kind, limits=limits, sources=account.sources(), jobs=jobs)


def shares(account: Account, entry: Entry) -> dict[str, float]:
    """Return the share used of every budget that an entry drew on, after it.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
    ...     shares(account, receipt.entries[0])
    {'total': 0.25}
    """
    return shares_of(account._definition(fresh=True), entry)


def charged(account: Account, receipt: Receipt) -> AccountQuote:
    """Return what a charge took of the budgets that it drew on, and how many more like it fitted.

    Read from the receipt alone, in the words and the measure of :meth:`Account.quote`.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
    ...     charged(account, receipt).words
    '25% of the budget; about 3 more like it fit'
    """
    return quotes.charged(account._session, receipt)


def delta_beside(
    account: Account, loss: Loss, *, who: str | None = None, purpose: str | None = None
) -> Fraction:
    """Return how much delta may go with a loss if in no budget delta shall run out first.

    That follows from the budgets as they were granted, whatever has been spent.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1, delta=1e-6) as account:
    ...     0 < delta_beside(account, PureLoss(epsilon=0.25)) < 1e-6
    True
    """
    return quotes.delta_beside(account._session, account.name, loss, who=who, purpose=purpose)


def burn_down(account: Account, *, points: int = 200) -> list[Point]:
    """Return how much of the total was used over time, at no more than about so many entries.

    Where the unit has a period, each point tells of the fullest period that its entry drew on.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=5) as account:
    ...     for _ in range(3):
    ...         _ = account.charge(PureLoss(epsilon=1), who="ana", purpose="report")
    ...     [(point.entry, point.used) for point in burn_down(account)]
    [(1, 0.0), (2, 0.2), (3, 0.4), (4, 0.6)]
    """
    most = whole(points, name="points")
    definition = account._definition(fresh=True)
    with account._session.read() as snapshot:
        size = Log(snapshot).head().size
        born = decode(next(snapshot.rows(0, size, account=account.name)).body)
        found = [Point(int(born["index"]), str(born["time"]), 0.0)]
        start = found[0].entry + 1
        # A window has one point, its last: only the ends of windows are read, so that an account
        # with millions of entries is shown as quickly as any.
        step = max(1, -(-(size - start) // most))
        for begin in range(start, size, step):
            found += _last_in(snapshot, definition, begin, min(begin + step, size))
    return found


def plot_burn_down(account: Account, *, path: str | Path) -> Path:
    """Draw what is left of an account's total over time into a file; needs matplotlib.

    The ending of ``path`` decides the format: .png, .svg, .pdf.

    >>> import os, tempfile
    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     plot_burn_down(account, path=os.path.join(tempfile.mkdtemp(), "burn.svg")).suffix
    '.svg'
    """
    points = burn_down(account, points=1000)
    figure, (axes,) = plotting.panels(room="discreet.ledger")
    times = [datetime.fromisoformat(point.time) for point in points]
    left = [100 * (1 - min(1.0, point.used)) for point in points]
    axes.step(times, left, where="post")
    axes.fill_between(times, left, step="post", alpha=0.2)
    axes.plot(times[-1:], left[-1:], "o", color=plotting.look().colours[0])
    axes.set(ylabel="left of the total, %", ylim=(0, 102))
    plotting.titled(
        axes,
        f"{percent(left[-1] / 100, up=False)} of {account.name}'s budget is left",
        under=_told(account.guarantee),
    )
    plotting.dated(axes)
    return plotting.save(figure, path)


def _told(guarantee: Guarantee) -> str:
    return f"epsilon = {float(guarantee.epsilon):g}, delta = {float(guarantee.delta):g}"


def shares_of(definition: Definition, entry: Entry) -> dict[str, float]:
    """Return the share used of every budget that an entry drew on, by an account as it is now."""
    found = {}
    for budget, text in entry.get("after", {}).items():
        rules = definition.lines[budget.partition(":")[0]]
        found[budget] = rules.share(Balance.read(text).total)
    return found


def _jobs(snapshot: Snapshot, account: str) -> Iterator[OpenJob]:
    for name, text in snapshot.facts_under("job/"):
        job = read_json(text)
        if job.get("over"):
            continue
        index = int(name.removeprefix("job/"))
        row = snapshot.row(index) if job["account"] == account else None
        if row is not None:
            entry = decode(row.body)
            yield OpenJob(index, str(entry["who"]), str(entry["purpose"]), sum(job["left"]))


def _last_in(snapshot: Snapshot, definition: Definition, begin: int, end: int) -> Sequence[Point]:
    """Return the last point of a window, looking back from its end in growing strides."""
    stride = 64
    while begin < end:
        low = max(begin, end - stride)
        found: list[Point] = []
        for row in snapshot.rows(low, end, account=definition.name):
            entry = decode(row.body)
            totals = [s for name, s in shares_of(definition, entry).items() if Line.is_total(name)]
            if totals:
                found = [Point(row.index, str(entry["time"]), max(totals))]
        if found:
            return found
        end, stride = low, 4 * stride
    return ()
