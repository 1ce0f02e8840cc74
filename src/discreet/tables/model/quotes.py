"""What a question would cost and how far off its answer would be, before anything is spent."""

import math
from dataclasses import dataclass
from typing import Any, final

from discreet._words import fit, percent
from discreet.accounting import Loss, risk
from discreet.ledger import AccountQuote

__all__ = ["Expected", "Quote"]

_WIDEST_LABEL = 28


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How far off one aggregate would be: ``half_width`` of its interval, None if not known.

    ``words`` says it for people, also where it depends on what is not known yet.

    >>> print(Expected(text="COUNT(*)", half_width=12.0, words="within 12 rows"))
    COUNT(*): within 12 rows
    """

    text: str
    half_width: float | None
    words: str

    def __str__(self) -> str:
        return f"{self.text}: {self.words}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price of a question. True where it fits into the budget; nothing was charged.

    ``epsilon`` and ``delta`` are the guarantee of this answer taken alone, ``loss`` is what the
    account would be charged, ``budgets`` says what would be left of whose budget. ``expected``
    tells the error of each aggregate from public facts alone. ``fits_up_to`` is the largest epsilon
    with which a question that does not fit would, if any does.

    >>> from discreet.accounting import PureLoss
    >>> from discreet.ledger import AccountQuote, BudgetQuote
    >>> room = AccountQuote(account="people", budgets=(
    ...     BudgetQuote(name="total", fits=True, used=0.1, used_after=0.15, more=17,
    ...                 epsilon_share=0.05),))
    >>> print(Quote(question="SELECT COUNT(*) FROM people", epsilon=0.5, delta=0.0,
    ...             loss=PureLoss(epsilon=0.5), budgets=room, confidence=0.95, noise="laplace",
    ...             expected=(Expected(text="COUNT(*)", half_width=6.0, words="within 6"),)))
    SELECT COUNT(*) FROM people
      price     epsilon=0.5
      costs     5% of the budget; about 17 more like it fit
      runs out  epsilon first: this takes 5% of it, and nothing of delta
      left      85% of the budget of 'people' after it
      COUNT(*)  within 6 (95% confidence)
      attacker  who knows all else guesses whether somebody takes part right 63 times
                in 100
    """

    question: str
    epsilon: float
    delta: float
    loss: Loss
    budgets: AccountQuote
    confidence: float
    noise: str
    expected: tuple[Expected, ...]
    notes: tuple[str, ...] = ()
    fits_up_to: float | None = None

    @property
    def fits(self) -> bool:
        """Whether every budget has room for it."""
        return self.budgets.fits

    @property
    def share(self) -> float:
        """What it costs, as a share of the tightest budget."""
        return self.budgets.share

    @property
    def more(self) -> float | None:
        """How many more like it would fit afterwards."""
        return self.budgets.more

    @property
    def remaining(self) -> float:
        """The share of the tightest budget that would be left."""
        return self.budgets.remaining

    @property
    def success(self) -> float:
        """The best attacker's chance to tell whether somebody takes part, from an even guess."""
        return min(risk.success(self.loss, prior=0.5), 1.0)

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        rows = [(_cut(label), words) for label, words in self._rows()]
        width = max(len(label) for label, _ in rows)
        told = [fit(f"  {name:{width}}  {words}", indent=" " * (width + 4)) for name, words in rows]
        return "\n".join([fit(self.question), *told])

    def _rows(self) -> list[tuple[str, str]]:
        price = f"epsilon={self.epsilon:.4g}"
        if self.delta:
            price += f", delta={self.delta:.3g}"
        rows = [("price", price), ("costs", self.budgets.words if self.fits else "")]
        account = f"of the budget of {self.budgets.account!r}"
        if self.fits:
            rows.append(("left", f"{percent(self.remaining, up=False)} {account} after it"))
        else:
            left = percent(max(0.0, 1 - self.budgets.used), up=False)
            rows[1] = ("costs", f"{percent(self.share, up=True)} {account}: does not fit")
            rows.append(("left", f"{left} of it{self._still}"))
        rows.insert(2, ("runs out", self._binding))
        if not self.fits and self.budgets.offer is not None:
            rows.append(("offer", str(self.budgets.offer)))
        sure = f" ({_percent(self.confidence)} confidence)"
        rows += [(one.text, one.words + sure) for one in self.expected]
        guessed = math.ceil(100 * self.success)
        attack = (
            f"who knows all else guesses whether somebody takes part right {guessed} times in 100"
        )
        return [*rows, ("attacker", attack), *(("note", note) for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as data that JSON can hold.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.quote("SELECT COUNT(*) AS n FROM people", epsilon=0.3).to_dict()["more"]
        9
        """
        return {
            "question": self.question,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "fits": self.fits,
            "fits_up_to": self.fits_up_to,
            "share": _known(self.share),
            "more": _known(self.more),
            "remaining": self.remaining,
            "budgets": [
                {"name": one.name, "fits": one.fits, "used": one.used,
                 "used_after": _known(one.used_after)}
                for one in self.budgets.budgets
            ],
            "confidence": self.confidence,
            "noise": self.noise,
            "expected": [
                {"text": one.text, "half_width": _known(one.half_width), "words": one.words}
                for one in self.expected
            ],
            "success": self.success,
            "notes": list(self.notes),
        }  # fmt: skip

    @property
    def _binding(self) -> str:
        """Say whether epsilon or delta runs out first, and what this takes of either."""
        budget = self.budgets.tightest
        epsilon, delta = ("epsilon", budget.epsilon_share), ("delta", budget.delta_share)
        first, second = (epsilon, delta) if budget.scarce == "epsilon" else (delta, epsilon)
        taken = [percent(share, up=True) if share else "nothing" for _, share in (first, second)]
        return f"{first[0]} first: this takes {taken[0]} of it, and {taken[1]} of {second[0]}"

    @property
    def _still(self) -> str:
        return "" if self.fits_up_to is None else f"; epsilon={self.fits_up_to:g} would fit"

    def __rich__(self) -> str:
        from rich.markup import escape

        return escape(str(self))

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th><td>{escape(words)}</td></tr>"
            for label, words in self._rows()
        )
        return f"<pre>{escape(self.question)}</pre><table>{rows}</table>"


def _known(number: float | None) -> float | None:
    """Return a number that JSON has."""
    return number if number is not None and math.isfinite(number) else None


def _cut(label: str) -> str:
    """Cut what a line has no room for, visibly."""
    return label if len(label) <= _WIDEST_LABEL else label[: _WIDEST_LABEL - 1] + "…"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
