"""Limits of analysts, purposes and periods within an account, and what happens at exhaustion."""

from typing import TYPE_CHECKING

from discreet.accounting import FilterRules
from discreet.errors import ParameterError
from discreet.ledger.accounts.creation import check_policy
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.definition import EACH, Line, Policy
from discreet.ledger.rules.entry import Entry, fold
from discreet.ledger.rules.entry_forms import REASON, is_line
from discreet.ledger.writing.request import text
from discreet.privacy import Guarantee, Period

if TYPE_CHECKING:
    from discreet.ledger.accounts.custody import AccountCustody

__all__ = ["grant", "limit", "set_policy"]


def limit(
    account: "AccountCustody",
    guarantee: Guarantee,
    *,
    analyst: str | None,
    purpose: str | None,
    every: Period | str | None,
    who: str | None,
) -> Receipt:
    """See :meth:`discreet.ledger.Account.limit`."""
    if analyst is purpose is every is None:
        raise ParameterError(
            "a limit is for an analyst, a purpose or a period. Say which, or widen the total "
            "with grant.",
            parameter="analyst",
        )
    is_folded = account._definition().is_folded
    line = Line(
        analyst=_name_or_each(analyst, "analyst", is_folded=is_folded),
        purpose=_name_or_each(purpose, "purpose", is_folded=is_folded),
        every=_period(every),
    )
    rules = FilterRules(guarantee, neighbours=account.neighbours)
    entry: Entry = {"kind": "budget", "line": line.name, "filter": rules.settings}
    if who is not None:
        entry["who"] = text(who, name="who")
    return account._append(entry)


def grant(
    account: "AccountCustody", guarantee: Guarantee, *, who: str, reason: str, line: str
) -> Receipt:
    """See :meth:`discreet.ledger.Account.grant`."""
    definition = account._definition(fresh=True)
    lines = definition.lines
    if definition.is_folded and is_line(line):
        line = Line.read(line).folded.name
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


def set_policy(account: "AccountCustody", policy: Policy, *, who: str, reason: str) -> Receipt:
    """See :meth:`discreet.ledger.Account.set_policy`."""
    check_policy(policy, account.unit)
    receipt = account._append(
        {
            "kind": "policy",
            "policy": policy,
            "who": text(who, name="who"),
            "reason": text(reason, name="reason", longest=REASON),
        }
    )
    account._session.forget(account.name)
    return receipt


def _name_or_each(value: str | None, name: str, *, is_folded: bool) -> str | None:
    if value is None or value == EACH:
        return value
    found = text(value, name=name)
    return text(fold(found), name=name) if is_folded else found


def _period(value: Period | str | None) -> Period | None:
    try:
        return None if value is None else Period(value)
    except ValueError:
        raise ParameterError(
            f"every must be one of {', '.join(Period)}.", parameter="every"
        ) from None
