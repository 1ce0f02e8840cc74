"""The sources of data that an account has, their versions, and the sketches they are known by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet._json import read_json
from discreet.ledger.receipts import Receipt
from discreet.ledger.recognition.content import TableContent
from discreet.ledger.rules.entry_forms import REASON
from discreet.ledger.writing import request as requests

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account
    from discreet.ledger.rules.entry import Entry

__all__ = ["register", "sketched", "versions"]


def register(
    account: "Account",
    name: str,
    *,
    version: str,
    identities: Sequence[str],
    content: TableContent | None,
    override: str | None,
) -> Receipt:
    """See :meth:`Account.register`."""
    source, sketches = account._session.source(
        name, version=version, identities=identities, content=content
    )
    entry: Entry = {"kind": "source", "source": source}
    if override is not None:
        entry["override"] = requests.text(override, name="override", longest=REASON)
    return account._append(entry, sketches=sketches)


def versions(account: "Account") -> dict[str, str]:
    """See :meth:`Account.sources`."""
    prefix = f"registered/{account.name}/"
    with account._session.read() as snapshot:
        return {
            fact.removeprefix(prefix): str(read_json(text)["version"])
            for fact, text in snapshot.facts_under(prefix)
        }


def sketched(account: "Account") -> set[str]:
    """See :meth:`Account.sketched`."""
    prefix = f"sketch/{account.name}/"
    with account._session.read() as snapshot:
        return {fact.removeprefix(prefix) for fact, _ in snapshot.facts_under(prefix)}
