"""What an account has left: its budgets now, and after a loss. Nothing is charged."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.accounting import FilterRules, Loss
from discreet.accounting.filters import Scarce
from discreet.ledger.accounts.offers import NoisierOffer, least_noise
from discreet.ledger.accounts.periods import Periods, labels
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
    ``delta_beside`` is how much delta may go with it if delta shall not run out before epsilon.

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
    delta_beside: Fraction = Fraction(0)


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
      total        0.25 used, 0.5 after
      analyst=ana  0.9 used, over the limit after
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
    def delta_beside(self) -> Fraction:
        """How much delta may go with the loss if in no budget delta shall run out first."""
        return min(budget.delta_beside for budget in self.budgets)

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        width = max(len(budget.name) for budget in self.budgets)
        lines = [f"{'fits' if self.fits else 'does not fit'} into account {self.account!r}"]
        for budget in self.budgets:
            after = f"{budget.used_after:.3g}" if budget.fits else "over the limit"
            lines.append(f"  {budget.name:{width}}  {budget.used:.3g} used, {after} after")
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
    epsilon_share, delta_share = rules.shares(price, after=after)
    return BudgetQuote(
        name=name,
        fits=rules.fits(after),
        used=rules.share(balance.total),
        used_after=rules.share(after),
        scarce=rules.scarce(after),
        epsilon_share=epsilon_share,
        delta_share=delta_share,
        delta_beside=rules.delta_beside(loss),
    )
