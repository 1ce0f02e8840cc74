"""The entry that opens an account."""

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterKind
from discreet.errors import ParameterError
from discreet.ledger.rules.definition import FOLDED, POLICIES, Policy
from discreet.ledger.rules.entry import Entry
from discreet.ledger.rules.entry_forms import ACCOUNT_NAME, REASON
from discreet.ledger.session import LedgerSession
from discreet.ledger.writing.request import new_key, text
from discreet.privacy import Guarantee, Neighbours, Unit

__all__ = ["account_entry", "check_policy"]


def account_entry(
    session: LedgerSession,
    name: str,
    *,
    unit: Unit,
    neighbours: Neighbours | str,
    guarantee: Guarantee,
    kind: FilterKind | None,
    policy: Policy,
    sources: Sequence[Mapping[str, Any]],
    override: str | None,
    who: str | None,
) -> tuple[Entry, dict[str, str]]:
    """See :meth:`discreet.ledger.Ledger.create`."""
    check_policy(policy, unit)
    rules = FilterRules(guarantee, kind=kind, neighbours=neighbours)
    if rules.neighbours is None:
        raise ParameterError("say which neighbours: add_remove is usual.", parameter="neighbours")
    registered = [_source_of(session, source) for source in sources]
    entry: Entry = {
        "kind": "account",
        "name": _account_name(name),
        "names": FOLDED,
        "unit": unit.to_dict(),
        "neighbours": rules.neighbours.value,
        "policy": policy,
        "filter": rules.settings,
        "sources": [source for source, _ in registered],
        "key": new_key(),
    }
    if override is not None:
        entry["override"] = text(override, name="override", longest=REASON)
    if who is not None:
        entry["who"] = text(who, name="who")
    return entry, {name: one for _, sketch in registered for name, one in sketch.items()}


def check_policy(policy: str, unit: Unit) -> None:
    """Refuse a policy that there is none of, or that means nothing for a unit.

    >>> check_policy("wait", Unit.record())
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: waiting for the next period helps only where a person is...
    """
    if policy not in POLICIES:
        raise ParameterError(f"policy must be one of {', '.join(POLICIES)}.", parameter="policy")
    if policy == "wait" and unit.period is None:
        raise ParameterError(
            "waiting for the next period helps only where a person is protected in each "
            "period by itself: Unit.column('user_id').per('day'), or --per day on the command "
            "line. Otherwise periods add up.",
            parameter="policy",
        )


def _source_of(session: LedgerSession, source: object) -> tuple[dict[str, Any], dict[str, str]]:
    needed = {"name", "version", "identities"}
    if not isinstance(source, Mapping) or source.keys() - {"content", "types"} != needed:
        raise ParameterError(
            "a source is a mapping of name, version, identities, and maybe content and types.",
            parameter="sources",
        )
    return session.source(**source)


def _account_name(name: object) -> str:
    found = text(name, name="name", longest=ACCOUNT_NAME)
    if "/" in found:
        raise ParameterError("the name of an account must not contain '/'.", parameter="name")
    return found
