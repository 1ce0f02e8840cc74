"""What an account has left: its budgets now, and after a loss. Nothing is charged."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import final
from urllib.parse import unquote

from discreet._words import more_words, percent
from discreet.accounting import FilterRules, Loss
from discreet.accounting.filters import FilterSums, Scarce
from discreet.ledger.accounts.offers import NoisierOffer, least_noise
from discreet.ledger.accounts.periods import Periods, labels
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.balance import Balance
from discreet.ledger.rules.definition import TOTAL, Line
from discreet.ledger.rules.entry import now
from discreet.ledger.session import LedgerSession
from discreet.privacy import Guarantee

__all__ = ["AccountQuote", "Budget", "BudgetQuote", "budgets", "quote"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One budget of an account: the share used, and the share of it held for jobs under way.

    >>> from discreet.privacy import Guarantee
    >>> Budget(name="total", guarantee=Guarantee(epsilon=1), used=0.25, held=0.0).used
    0.25
    """

    name: str
    guarantee: Guarantee
    used: float
    held: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetQuote:
    """One budget that a loss draws on: the share used before and after it.

    A budget is used up by epsilon or by delta. ``scarce`` names what would be used most afterwards,
    and ``epsilon_share`` and ``delta_share`` are the shares of either that this loss takes.

    ``alone`` is the share that it would use of the budget if nothing else did, and ``more`` how
    many more like it would fit afterwards.

    >>> BudgetQuote(name="analyst=ana", fits=True, used=0.25, used_after=0.5).used_after
    0.5
    """

    name: str
    fits: bool
    used: float
    used_after: float
    scarce: Scarce = "epsilon"
    epsilon_share: float = 0.0
    delta_share: float = 0.0
    alone: float = 0.0
    more: float | None = None

    @property
    def share(self) -> float:
        """What the loss costs: the share that it adds, and never less than it takes by itself.

        A budget has several sums (epsilon, delta, and more than one way to count them) and is as
        full as the one that matters. A loss that adds to another one moves it later, or never, but
        takes room all the same.

        >>> quote = BudgetQuote(name="total", fits=True, used=0.5, used_after=0.5, alone=0.08)
        >>> quote.share
        0.08
        """
        return max(self.used_after - self.used, self.alone)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountQuote:
    """Say whether a loss fits, and in whose budgets; true where it fits. Nothing was charged.

    >>> overall = BudgetQuote(name="total", fits=True, used=0.25, used_after=0.5)
    >>> ana = BudgetQuote(name="analyst=ana", fits=False, used=0.9, used_after=1.2)
    >>> quote = AccountQuote(account="salaries", budgets=(overall, ana))
    >>> bool(quote), quote.tightest.name
    (False, 'analyst=ana')
    >>> print(quote)
    does not fit into account 'salaries'
      total        25% used, 50% after, by epsilon
      analyst=ana  90% used, over the limit after, by epsilon
    """

    account: str
    budgets: tuple[BudgetQuote, ...]
    offer: NoisierOffer | None = None

    @property
    def fits(self) -> bool:
        """Whether every budget has room."""
        return all(budget.fits for budget in self.budgets)

    @property
    def tightest(self) -> BudgetQuote:
        """The budget that would be fullest afterwards."""
        return max(self.budgets, key=lambda budget: (not budget.fits, budget.used_after))

    @property
    def used(self) -> float:
        """The share of the tightest budget that is used now."""
        return self.tightest.used

    @property
    def used_after(self) -> float:
        """The share of the tightest budget that would be used afterwards."""
        return self.tightest.used_after

    @property
    def share(self) -> float:
        """What the loss costs, as a share of the tightest budget."""
        return self.tightest.share

    @property
    def remaining(self) -> float:
        """The share of the tightest budget that would be left afterwards."""
        return max(0.0, 1 - self.used_after)

    @property
    def more(self) -> float | None:
        """How many more like it would fit into all budgets afterwards, where that was counted."""
        counted = [budget.more for budget in self.budgets if budget.more is not None]
        return min(counted, default=None)

    @property
    def words(self) -> str:
        """The price in words: the share of the budget, and how many more like it fit.

        >>> total = BudgetQuote(name="total", fits=True, used=0, used_after=0.04, more=24)
        >>> AccountQuote(account="salaries", budgets=(total,)).words
        '4% of the budget; about 24 more like it fit'
        """
        told = [f"{percent(self.share, up=True)} of {_budget_words(self.tightest.name)}"]
        if self.more is not None:
            told.append(more_words(self.more))
        return "; ".join(told)

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        width = max(len(budget.name) for budget in self.budgets)
        lines = [f"{'fits' if self.fits else 'does not fit'} into account {self.account!r}"]
        for budget in self.budgets:
            after = percent(budget.used_after, up=True) if budget.fits else "over the limit"
            used = percent(budget.used, up=True)
            lines.append(f"  {budget.name:{width}}  {used} used, {after} after, by {budget.scarce}")
        if self.offer is not None:
            lines.append(f"  {self.offer}")
        return "\n".join(lines)


def budgets(session: LedgerSession, account: str) -> list[Budget]:
    """See :meth:`discreet.ledger.Account.budgets`."""
    prefix = f"budget/{account}/"
    with session.read() as snapshot:
        definition = session.definition(account, fresh=True)
        found = {}
        for fact, text in snapshot.facts_under(prefix):
            name = fact.removeprefix(prefix)
            rules = definition.lines[name.partition(":")[0]]
            found[name] = (rules, Balance.read(text).checked(rules))
    if definition.unit.period is None:
        found.setdefault(TOTAL, (definition.total, Balance.empty(definition.total)))
    drawn = []
    for name, (rules, balance) in found.items():
        used = rules.share(balance.total)
        held = max(0.0, used - rules.share(balance.spent))
        drawn.append(Budget(name=name, guarantee=rules.guarantee, used=used, held=held))
    return sorted(drawn, key=lambda budget: (not Line.is_total(budget.name), budget.name))


def quote(
    session: LedgerSession,
    account: str,
    loss: Loss,
    *,
    who: str | None,
    purpose: str | None,
    periods: Periods,
    error: float | None,
) -> AccountQuote:
    """See :meth:`discreet.ledger.Account.quote`."""
    definition = session.definition(account, fresh=True)
    touched = labels(definition, periods)
    time = max(now(), session.time())
    drawn = definition.budgets(who=who, purpose=purpose, periods=touched, time=time)
    lines = [(name, rules) for name, _, rules in drawn]
    balances = _balances(session, account, lines)

    def look(one: Loss) -> tuple[BudgetQuote, ...]:
        return tuple(
            _quoted(name, rules, balance, one)
            for (name, rules), balance in zip(lines, balances, strict=True)
        )

    found = look(loss)
    offer = None
    if definition.policy == "degrade" and not all(budget.fits for budget in found):
        offer = least_noise(loss, lambda one: all(each.fits for each in look(one)), error=error)
    in_order = sorted(found, key=lambda budget: not Line.is_total(budget.name))
    return AccountQuote(account=account, budgets=tuple(in_order), offer=offer)


def delta_beside(
    session: LedgerSession, account: str, loss: Loss, *, who: str | None, purpose: str | None
) -> Fraction:
    """See :func:`discreet.ledger.delta_beside`."""
    definition = session.definition(account)
    lines = definition.lines_of(who=who, purpose=purpose)
    return min(definition.lines[line].delta_beside(loss) for line in lines)


def _balances(
    session: LedgerSession, account: str, lines: Sequence[tuple[str, FilterRules]]
) -> list[Balance]:
    names = [f"budget/{account}/{name}" for name, _ in lines]
    with session.read() as snapshot:
        found = snapshot.facts(names)
    return [
        Balance.read(found[name]).checked(rules) if name in found else Balance.empty(rules)
        for name, (_, rules) in zip(names, lines, strict=True)
    ]


def _quoted(name: str, rules: FilterRules, balance: Balance, loss: Loss) -> BudgetQuote:
    price = rules.price(loss)  # first, since it refuses what is no loss
    rules.relation(loss, rules.neighbours)
    after = balance.after_charge(price).total
    return _counted(name, rules, loss, before=balance.total, after=after)


def _counted(
    name: str, rules: FilterRules, loss: Loss, *, before: FilterSums, after: FilterSums
) -> BudgetQuote:
    price = rules.price(loss)
    epsilon_share, delta_share = rules.shares(price, after=after)
    return BudgetQuote(
        name=name,
        fits=rules.fits(after),
        used=rules.share(before),
        used_after=rules.share(after),
        scarce=rules.scarce(after),
        epsilon_share=epsilon_share,
        delta_share=delta_share,
        alone=rules.share(price),
        more=rules.times(after, price),
    )


def charged(session: LedgerSession, receipt: Receipt) -> AccountQuote:
    """See :func:`discreet.ledger.charged`."""
    entry, loss = receipt.entries[0], receipt.loss
    definition = session.definition(receipt.account)
    found = []
    for name, text in entry["after"].items():
        rules = definition.lines[name.partition(":")[0]]
        after, price = Balance.read(text).checked(rules).total, rules.price(loss)
        before = tuple(a - p if p < inf else inf for a, p in zip(after, price, strict=True))
        found.append(_counted(name, rules, loss, before=before, after=after))
    in_order = sorted(found, key=lambda budget: not Line.is_total(budget.name))
    return AccountQuote(account=receipt.account, budgets=tuple(in_order))


def _budget_words(name: str) -> str:
    if name == TOTAL:
        return "the budget"
    told = unquote(name.removeprefix(f"{TOTAL}:"))
    return f"the budget of {told}" if Line.is_total(name) else f"the allowance {told!r}"
