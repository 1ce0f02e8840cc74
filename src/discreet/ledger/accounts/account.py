"""An account: the budget of one population, and everything that draws on it."""

from collections.abc import Callable
from typing import Any, final

from discreet.accounting import Loss
from discreet.ledger.accounts import answers, quotes
from discreet.ledger.accounts.custody import AccountCustody
from discreet.ledger.accounts.jobs import Job, resume
from discreet.ledger.accounts.payments import fingerprint, pay, payment
from discreet.ledger.accounts.periods import Periods
from discreet.ledger.accounts.quotes import AccountQuote, Budget
from discreet.ledger.accounts.releases import Mechanism, Release
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.definition import Line
from discreet.ledger.rules.entry import Entry
from discreet.noise import SYSTEM, Source

__all__ = ["Account"]


@final
class Account(AccountCustody):
    """The budget of one population of units; :class:`Ledger` makes and finds accounts.

    Claim: whatever is released under an account, each release having been charged before its data
    was touched, is together (epsilon, delta)-DP for the account's unit, neighbours and guarantee,
    also when everybody chooses what to ask next after seeing all earlier answers.

    Why: the total is a privacy filter (docs/proofs/filters.md), every charge is durable before
    :meth:`charge` returns, charges are applied one after the other, and nothing is ever given back
    that was begun. Limits of analysts, purposes and periods only ever refuse more.

    >>> import tempfile, os
    >>> from discreet.accounting import LaplaceLoss
    >>> from discreet.ledger import Ledger
    >>> from discreet.privacy import Guarantee, Unit
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(os.path.join(folder.name, "budget.db"))
    >>> account = ledger.create("salaries", unit=Unit.record(), neighbours="add_remove",
    ...                         guarantee=Guarantee(epsilon=5, delta=1e-6))
    >>> bool(account.quote(LaplaceLoss(noise_multiplier=2)))
    True
    >>> receipt = account.charge(LaplaceLoss(noise_multiplier=2), who="ana", purpose="report")
    >>> round(account.used, 3)
    0.1
    >>> ledger.close(); folder.cleanup()
    """

    @property
    def used(self) -> float:
        """The share of the total that is used or held, from 0 to 1.

        Where the unit has a period, that of the fullest one. It is the share of a filter, not an
        epsilon lost so far.
        """
        return max((b.used for b in self.budgets() if Line.is_total(b.name)), default=0.0)

    @property
    def remaining(self) -> float:
        """The share of the total that is left."""
        return max(0.0, 1.0 - self.used)

    def budgets(self) -> list[Budget]:
        """Return every budget that was drawn on, and the total, with the share used.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.privacy import Guarantee
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.limit(Guarantee(epsilon=0.5), analyst="ana")
        ...     _ = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     [(budget.name, budget.used) for budget in account.budgets()]
        [('total', 0.25), ('analyst=ana', 0.5)]
        """
        return quotes.budgets(self._session, self.name)

    def quote(
        self,
        loss: Loss,
        *,
        who: str | None = None,
        purpose: str | None = None,
        periods: Periods = None,
        error: float | None = None,
    ) -> AccountQuote:
        """Say whether a loss would fit, what is left, and in whose budget. Nothing is charged.

        Without ``who`` and ``purpose`` only the total is looked at. Where it does not fit and the
        policy is to degrade, the quote has an ``offer``, with ``error`` widened accordingly.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     print(account.quote(PureLoss(epsilon=0.25)))
        fits into account 'people'
          total  0% used, 25% after, by epsilon
        """
        return quotes.quote(
            self._session,
            self.name, loss, who=who, purpose=purpose, periods=periods, error=error,
        )  # fmt: skip

    def charge(
        self,
        loss: Loss,
        *,
        who: str,
        purpose: str,
        query: str | None = None,
        version: str | None = None,
        periods: Periods = None,
        key: str | None = None,
        source: Source = SYSTEM,
    ) -> Receipt:
        """Charge a loss, durably, or raise :class:`BudgetExceeded` and charge nothing.

        Touch the data only after this has returned, and draw noise once for each charge: where
        the receipt ``is_repeated``, that was done before. ``query`` is the canonical text of the
        question and ``version`` names the data it is asked of; only a salted fingerprint of both
        is stored. ``periods`` says which periods of the data are touched, where the unit has a
        period. Repeating a request with the same ``key`` never charges twice. ``source`` is where
        the noise comes from.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     again = account.charge(
        ...         PureLoss(epsilon=1), who="ana", purpose="report"
        ...     )
        Traceback (most recent call last):
            ...
        discreet.errors.BudgetExceeded: this loss would bring the budget 'total' of account
        'people' from 25% to 125% used. Nothing was spent...
        """
        entry = payment("charge", who=who, purpose=purpose, source=source)
        if query is not None:
            entry["query"] = fingerprint(self, query, version=version, periods=periods)
        return pay(self, entry, loss, periods=periods, key=key)

    def reserve(
        self,
        loss: Loss,
        *,
        who: str,
        purpose: str,
        periods: Periods = None,
        key: str | None = None,
        source: Source = SYSTEM,
        by_steps: bool = True,
    ) -> Job:
        """Set aside a loss for a long job, durably, or raise :class:`BudgetExceeded`.

        ``loss`` is a sum of steps, such as ``step * 1000``; see :class:`Job`. Say
        ``by_steps=False`` for a bound that holds for the whole run only (correlated noise, random
        allocation): it is spent with the first step, and nothing of it comes back.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     with account.reserve(PureLoss(epsilon=0.1) * 9, who="ana", purpose="model") as job:
        ...         job.spend(PureLoss(epsilon=0.1))
        ...     round(account.used, 6)
        0.1
        """
        entry = payment("reserve", who=who, purpose=purpose, source=source)
        entry["by_steps"] = bool(by_steps)
        receipt = pay(self, entry, loss, periods=periods, key=key)
        if receipt.is_repeated:
            return self.resume(receipt.index)
        return Job(self, receipt, [times for _, times in loss.parts])

    def resume(self, index: int) -> Job:
        """Take up a job that a crash or an error left open, by the entry that reserved it.

        The step that was under way is paid for: repeating it spends another one.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     job = account.reserve(PureLoss(epsilon=0.1) * 9, who="ana", purpose="model")
        ...     job.spend(PureLoss(epsilon=0.1))
        ...     account.resume(job.index).left  # as after a crash
        8
        """
        return resume(self, index)

    def release(self, receipt: Receipt, answer: bytes, *, plan: str = "") -> Receipt:
        """Put on record what a charge was spent on: the answer's digest, the plan, the version.

        The answer itself is kept, too, so that the same question can be answered again.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     released = account.release(receipt, b"42")
        ...     [entry["kind"] for entry in released.entries]
        ['charge', 'release']
        """
        return answers.release(self, receipt, answer, plan=plan)

    def record(self, receipt: Receipt, answer: bytes, *, plan: str = "") -> Receipt:
        """Do what :meth:`release` does, and only warn where the ledger's storage fails meanwhile.

        Whoever has paid gets the answer then, too, with the receipt of the charge alone.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     len(account.record(receipt, b"42").entries)
        2
        """
        return answers.record(self, receipt, answer, plan=plan)

    def answer(
        self,
        mechanism: Mechanism,
        compute: Callable[[], Any],
        *,
        who: str,
        purpose: str,
        query: str | None = None,
        version: str | None = None,
        periods: Periods = None,
        confidence: float = 0.95,
        source: Source = SYSTEM,
        debug: bool = False,
    ) -> Release[Any]:
        """Charge, compute, add noise, put the answer on record, and return it, in that order.

        ``compute`` is what touches the data; it is called once the charge is durable, and not at
        all where the same ``query`` on the same ``version`` was answered before. Where it fails, a
        :class:`DataError` says no more than that, since its own error may show data. ``debug``
        lets that error out: only for the eyes of who may see the data. The charge stands anyway.

        >>> from discreet.mechanisms import DiscreteLaplace
        >>> from discreet.testing import temporary_account
        >>> count = DiscreteLaplace(sensitivity=1, scale=4)
        >>> with temporary_account(epsilon=1) as account:
        ...     release = account.answer(count, lambda: 412, who="ana", purpose="report")
        >>> release.error, release.receipt.index
        (12.0, 2)
        """
        asked = {"who": who, "purpose": purpose, "version": version, "periods": periods}
        return answers.answer(
            self, mechanism, compute, query=query, confidence=confidence, source=source,
            asked=asked, debug=debug,
        )  # fmt: skip

    def recall(
        self,
        query: str,
        *,
        version: str | None = None,
        periods: Periods = None,
        who: str,
        purpose: str,
        within: tuple[float, float] | None = None,
    ) -> Release[Any] | None:
        """Return what was released for this question before, or None.

        ``within`` asks for an error bar at most so wide, and its confidence.

        Free for an analyst who has seen it. Anybody else pays from the own budgets, and the total
        pays nothing, since nothing new is learnt about anybody.

        >>> from discreet.mechanisms import DiscreteLaplace
        >>> from discreet.testing import temporary_account
        >>> asked = {"who": "ana", "purpose": "report"}
        >>> count = DiscreteLaplace(sensitivity=1, scale=4)
        >>> with temporary_account(epsilon=1) as account:
        ...     first = account.answer(count, lambda: 412, **asked, query="people")
        ...     again = account.recall("people", **asked)
        >>> again.value == first.value
        True
        """
        known = fingerprint(self, query, version=version, periods=periods)
        return answers.recall(self, known, who=who, purpose=purpose, within=within)

    def askers(self, receipt: Receipt) -> frozenset[str]:
        """Return who was given the answer that a receipt's charge paid for.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     account.askers(receipt)
        frozenset({'ana'})
        """
        return answers.askers(self, receipt)

    def reread(
        self,
        query: str,
        *,
        version: str | None = None,
        periods: Periods = None,
        who: str,
        purpose: str,
        accept: Callable[[bytes], bool],
    ) -> tuple[Receipt, bytes] | None:
        """Return the bytes that :meth:`release` kept for this question, and their receipt, or None.

        ``accept`` looks at them before anything is paid: an answer that it declines counts as
        none. It costs what :meth:`recall` costs.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> asked = {"who": "ana", "purpose": "report", "query": "people"}
        >>> with temporary_account(epsilon=1) as account:
        ...     receipt = account.charge(PureLoss(epsilon=0.25), **asked)
        ...     _ = account.release(receipt, b"42")
        ...     account.reread(**asked, accept=lambda kept: True)[1]
        b'42'
        """
        known = fingerprint(self, query, version=version, periods=periods)
        return answers.reread(self, known, who=who, purpose=purpose, accept=accept)

    def history(self, *, last: int | None = None) -> list[Entry]:
        """Return the account's entries, oldest first, or only the last few.

        >>> from discreet.accounting import PureLoss
        >>> from discreet.testing import temporary_account
        >>> with temporary_account(epsilon=1) as account:
        ...     _ = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        ...     [(entry["index"], entry["kind"]) for entry in account.history()]
        [(1, 'account'), (2, 'charge')]
        """
        return self._ledger.history(self.name, last=last)

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {self.guarantee}, used={self.used:.4g})"
