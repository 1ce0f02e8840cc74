"""What the ledger would say to a custodian who brings data: the same rules, and nothing written."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from discreet.ledger.accounts.account import Account
from discreet.ledger.accounts.creation import account_entry
from discreet.ledger.ledger import Ledger
from discreet.ledger.log.proofs import Log
from discreet.ledger.rules.definition import Policy
from discreet.ledger.rules.entry import NOTHING_BEFORE, Entry
from discreet.ledger.rules.entry_forms import check_form
from discreet.ledger.rules.state import State
from discreet.ledger.rules.table import RULES
from discreet.ledger.session import LedgerSession
from discreet.ledger.writing import recognising
from discreet.ledger.writing.request import new_key
from discreet.privacy import Guarantee, Neighbours, Unit

__all__ = ["rehearse_account", "rehearse_source"]

_FREE: Final = 0  # what custodians do costs nothing


def rehearse_account(
    ledger: Ledger,
    name: str,
    *,
    unit: Unit | str,
    neighbours: Neighbours | str,
    guarantee: Guarantee,
    policy: Policy = "deny",
    sources: Sequence[Mapping[str, Any]] = (),
    override: str | None = None,
    who: str | None = None,
) -> None:
    """Raise what :meth:`Ledger.create` would raise now, and write nothing.

    >>> from discreet.testing import temporary_ledger
    >>> with temporary_ledger() as ledger:
    ...     rehearse_account(ledger, "visits", unit=Unit.record(), neighbours="add_remove",
    ...                      guarantee=Guarantee(epsilon=1))
    ...     list(ledger)
    []
    """
    entry, sketches = account_entry(
        ledger._session,
        name,
        unit=Unit.of(unit),
        neighbours=neighbours,
        guarantee=guarantee,
        kind=None,
        policy=policy,
        sources=sources,
        override=override,
        who=who,
    )
    _rehearse(ledger._session, entry, sketches)


def rehearse_source(account: Account, **source: Any) -> None:
    """Raise what :meth:`Account.register` would raise for a source, and write nothing.

    >>> from discreet.testing import temporary_account
    >>> with temporary_account(epsilon=1) as account:
    ...     rehearse_source(account, name="payroll", version="1", identities=["/data/payroll"])
    ...     account.sources()
    {}
    """
    found, sketches = account._session.source(**source)
    entry = {"kind": "source", "account": account.name, "source": found, "key": new_key()}
    _rehearse(account._session, entry, sketches)


def _rehearse(session: LedgerSession, entry: Entry, sketches: Mapping[str, str]) -> None:
    session.keyring()  # refuses where nothing may be written
    with session.read() as snapshot:
        log = Log(snapshot)
        head = log.head()

        def read(names: Sequence[str]) -> dict[str, str]:
            return session.facts(snapshot, names)

        entry |= {"index": head.size, "time": head.time, "previous": NOTHING_BEFORE}
        check_form(entry, is_new=True)
        state = State(read=read, entry=log.entry)
        matches = recognising.matches(entry, sketches, state, read)
        if matches:
            entry["matches"] = matches
        RULES[entry["kind"]](entry, state, lambda *_: (_FREE,))
