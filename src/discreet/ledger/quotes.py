"""What a loss would cost an account, and the least noise that would still fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from discreet.accounting import Loss
from discreet.privacy import Guarantee

__all__ = ["AccountQuote", "Budget", "BudgetQuote", "NoisierOffer", "least_noise"]

_MOST_NOISE: Final = 1e6  # nobody wants an answer with error bars a million times wider
_TOLERANCE: Final = 1e-6


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

    >>> BudgetQuote(name="analyst=ana", fits=True, used=0.25, used_after=0.5).used_after
    0.5
    """

    name: str
    fits: bool
    used: float
    used_after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisierOffer:
    """The same release with the least noise that still fits: ``factor`` times as much.

    ``error`` is the new error bar, where the old one was given. Nothing is charged: to accept an
    offer, charge ``loss``, and release with that noise.

    >>> from discreet.accounting import PureLoss
    >>> print(NoisierOffer(loss=PureLoss(epsilon=0.5), factor=2.0, error=24.0))
    2 times the noise would fit: an error bar of 24
    """

    loss: Loss
    factor: float
    error: float | None = None

    def __str__(self) -> str:
        bar = "" if self.error is None else f": an error bar of {self.error:.4g}"
        return f"{self.factor:.4g} times the noise would fit{bar}"


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


def least_noise(
    loss: Loss, fits: Callable[[Loss], bool], *, error: float | None = None
) -> NoisierOffer | None:
    """Return the least noise with which ``loss`` fits, to a millionth, or None.

    >>> from discreet.accounting import PureLoss
    >>> offer = least_noise(PureLoss(epsilon=1), lambda loss: loss.epsilon <= 0.5, error=10)
    >>> round(offer.factor, 4), round(offer.error, 3)
    (2.0, 20.0)
    """
    low, high = 1.0, 2.0
    while high <= _MOST_NOISE:
        candidate = loss.noisier(high)
        if candidate is None:
            return None
        if fits(candidate):
            break
        low, high = high, 2 * high
    else:
        return None
    while high / low > 1 + _TOLERANCE:
        middle = (low * high) ** 0.5
        trial = loss.noisier(middle)
        if trial is not None and fits(trial):
            high, candidate = middle, trial
        else:
            low = middle
    return NoisierOffer(loss=candidate, factor=high, error=None if error is None else error * high)
