"""One budget for everything that is ever released about a population.

A :class:`Ledger` holds accounts in a signed, append-only log. A charge is durable before it
returns, so before data is touched; every entry can be proved to somebody who trusts nobody.

>>> Ledger.open.__name__
'open'
"""

from discreet.ledger.accounts import Account
from discreet.ledger.checking.exports import Export
from discreet.ledger.checking.verification import Verification
from discreet.ledger.checking.witness import Witness
from discreet.ledger.jobs import Job
from discreet.ledger.ledger import Ledger
from discreet.ledger.plots import (
    OpenJob,
    Point,
    Standing,
    burn_down,
    plot_burn_down,
    shares,
    standing,
)
from discreet.ledger.quotes import AccountQuote, Budget, BudgetQuote, NoisierOffer
from discreet.ledger.receipts import Receipt
from discreet.ledger.releases import Mechanism, Release

__all__ = [
    "Account",
    "AccountQuote",
    "Budget",
    "BudgetQuote",
    "Export",
    "Job",
    "Ledger",
    "Mechanism",
    "NoisierOffer",
    "OpenJob",
    "Point",
    "Receipt",
    "Release",
    "Standing",
    "Verification",
    "Witness",
    "burn_down",
    "plot_burn_down",
    "shares",
    "standing",
]
