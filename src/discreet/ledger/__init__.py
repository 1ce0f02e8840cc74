"""One budget for everything that is ever released about a population.

A :class:`Ledger` holds accounts in a signed, append-only log. A charge is durable before it
returns, so before data is touched; every entry can be proved to somebody who trusts nobody.

:mod:`discreet.ledger.verifier` checks receipts alone, without the rest of the package, and
:mod:`discreet.ledger.stores.protocol` says what a database must do to hold a ledger.

>>> from discreet.accounting import PureLoss
>>> from discreet.testing import temporary_account
>>> with temporary_account(epsilon=1) as account:
...     receipt = account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
...     account.used, account.ledger.prove(receipt).is_proven
(0.25, True)
"""

from discreet.ledger.accounts.account import Account
from discreet.ledger.accounts.creation import check_policy
from discreet.ledger.accounts.jobs import Job
from discreet.ledger.accounts.offers import NoisierOffer
from discreet.ledger.accounts.quotes import AccountQuote, Budget, BudgetQuote
from discreet.ledger.accounts.releases import Mechanism, Release
from discreet.ledger.accounts.sources import RegisteredSource
from discreet.ledger.accounts.withdrawal import withdraw
from discreet.ledger.checking.exports import Export
from discreet.ledger.checking.verification import Verification
from discreet.ledger.checking.witness import Witness, WitnessRequest
from discreet.ledger.ledger import Ledger
from discreet.ledger.plots import (
    OpenJob,
    Point,
    Standing,
    burn_down,
    charged,
    delta_beside,
    plot_burn_down,
    shares,
    standing,
)
from discreet.ledger.receipts import Receipt
from discreet.ledger.recognition.content import ColumnSample, TableContent
from discreet.ledger.rehearsal import rehearse_account, rehearse_source
from discreet.ledger.rules.definition import Policy
from discreet.ledger.rules.entry import period_label
from discreet.ledger.spenders import Spending, spending

__all__ = [
    "Account",
    "AccountQuote",
    "Budget",
    "BudgetQuote",
    "ColumnSample",
    "Export",
    "Job",
    "Ledger",
    "Mechanism",
    "NoisierOffer",
    "OpenJob",
    "Point",
    "Policy",
    "Receipt",
    "RegisteredSource",
    "Release",
    "Spending",
    "Standing",
    "TableContent",
    "Verification",
    "Witness",
    "WitnessRequest",
    "burn_down",
    "charged",
    "check_policy",
    "delta_beside",
    "period_label",
    "plot_burn_down",
    "rehearse_account",
    "rehearse_source",
    "shares",
    "spending",
    "standing",
    "withdraw",
]
