"""Limits of analysts, purposes and periods within an account: how they are set and widened."""

from typing import TYPE_CHECKING

from discreet.accounting import FilterRules
from discreet.errors import ParameterError
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.definition import EACH, Line
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.writing.request import text
from discreet.privacy import Guarantee, Period

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account

__all__ = ["grant", "limit"]


def limit(
    account: "Account",
    guarantee: Guarantee,
    *,
    analyst: str | None,
    purpose: str | None,
    every: Period | str | None,
) -> Receipt:
    """See :meth:`discreet.ledger.Account.limit`."""
    if analyst is purpose is every is None:
        raise ParameterError(
            "a limit is for an analyst, a purpose or a period. Say which, or widen the total "
            "with grant.",
            parameter="analyst",
        )
    line = Line(
        analyst=_name_or_each(analyst, "analyst"),
        purpose=_name_or_each(purpose, "purpose"),
        every=_period(every),
    )
    rules = FilterRules(guarantee, neighbours=account.neighbours)
    return account._append({"kind": "budget", "line": line.name, "filter": rules.settings})


def grant(account: "Account", guarantee: Guarantee, *, who: str, reason: str, line: str) -> Receipt:
    """See :meth:`discreet.ledger.Account.grant`."""
    lines = account._definition(fresh=True).lines
    if line not in list(lines):  # a list, since a line may be anything by mistake
        raise ParameterError(
            f"account {account.name!r} has no limit {line!r}; it has {', '.join(lines)}.",
            parameter="line",
        )
    return account._append(
        {
            "kind": "grant",
            "line": line,
            "filter": lines[line].widened(guarantee).settings,
            "who": text(who, name="who"),
            "reason": text(reason, name="reason", longest=REASON),
        }
    )


def _name_or_each(value: str | None, name: str) -> str | None:
    return value if value is None or value == EACH else text(value, name=name)


def _period(value: Period | str | None) -> Period | None:
    try:
        return None if value is None else Period(value)
    except ValueError:
        raise ParameterError(
            f"every must be one of {', '.join(Period)}.", parameter="every"
        ) from None
