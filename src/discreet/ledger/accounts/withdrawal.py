"""Take an account back that was opened by mistake."""

from typing import TYPE_CHECKING

from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.writing.request import text

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account

__all__ = ["withdraw"]


def withdraw(account: "Account", *, who: str, reason: str) -> Receipt:
    """Take an account back, while nothing was charged to it: its data may get another one.

    Nothing is deleted: an entry of the log says who did it and why, and the name is not used again.

    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     receipt = withdraw(account, who="ana", reason="wrong epsilon")
    ...     account.name in account.ledger, receipt.entries[0]["kind"]
    (False, 'withdraw')
    """
    opened = [one["index"] for one in account.history() if one["kind"] == "account"]
    receipt = account._append(
        {
            "kind": "withdraw",
            "opened": opened[-1],
            "who": text(who, name="who"),
            "reason": text(reason, name="reason", longest=REASON),
        }
    )
    account._session.forget(account.name)
    return receipt
